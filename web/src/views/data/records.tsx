/** The records of a job as a table: any of a million, with figures of each column in its head. */

import { useQueries } from "@tanstack/preact-query";
import { useMemo, useState } from "preact/hooks";
import { api, useCall } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Empty, Head, Problem, Skeleton } from "#/kit/base";
import { type Column, type Rows, rowsOf, Table } from "#/kit/table";
import { number, percent, useWords } from "#/words";
import type { ItemDocument } from "#client";
import { titleOf } from "../jobs";
import { type Flat, flat, shown, statsOf, telling } from "./stats";
import { own } from "./words";

const PAGE = 200;
const SAMPLE = 5;

interface Record_ {
  id: string;
  row: Flat;
}

const recordOf = (item: ItemDocument): Record_ => ({ id: item.id, row: flat(item.result ?? item.input) });

export default function Records({ job_id }: { job_id: string }) {
  const w = useWords(own);
  const { query, change } = useAddress();
  const path = { job_id };
  const job = useCall("get_job", { path });
  const total = job.data?.counts.total ?? 0;
  const [[first, end], setSeen] = useState<[number, number]>([0, 0]);
  const asked = new Set(Array.from({ length: Math.min(SAMPLE, Math.ceil(total / PAGE)) }, (_, page) => page));
  for (let page = Math.floor(first / PAGE); page <= Math.floor(end / PAGE); page++) asked.add(page);
  const pages = [...asked].sort((a, b) => a - b);
  const found = useQueries({
    queries: pages.map((page) => ({
      queryKey: ["list_items", { path, page }],
      queryFn: () => api.call("list_items", { path, query: { first: page * PAGE, limit: PAGE } }),
      enabled: total > 0,
      staleTime: 30_000,
      gcTime: 60_000,
    })),
  });
  const byPage = new Map(pages.map((page, index) => [page, found[index]?.data?.items]));
  const loaded = pages.slice(0, SAMPLE).flatMap((page) => (page < SAMPLE ? (byPage.get(page) ?? []) : []));
  const count = loaded.length;
  const sample = useMemo(() => loaded.filter((item) => item.status === "success").map(recordOf), [count, job_id]);
  const names = useMemo(() => [...new Set(sample.flatMap((one) => Object.keys(one.row)))], [sample]);
  const chosen = useMemo(
    () => query.columns?.split(",") ?? telling(sample.map((one) => one.row)),
    [query.columns, sample],
  );
  const figures = useMemo(() => {
    const rows = sample.map((one) => one.row);
    return new Map(chosen.map((name) => [name, statsOf(rows, name)]));
  }, [sample, chosen]);
  if (job.error) return <Problem error={job.error} />;
  if (!job.data || (total > 0 && found[0]?.isPending)) return <Skeleton rows={10} />;
  const columns: Column<Record_>[] = chosen.map((name) => {
    const stats = figures.get(name);
    const range =
      stats?.low !== undefined && stats.high !== undefined
        ? w.range(number(stats.low, 2), number(stats.high, 2))
        : w.distinct(number(stats?.distinct));
    return {
      id: name,
      head: (
        <span title={w.sample(number(sample.length))}>
          {name}
          <small>
            {w.filled(percent(stats?.filled))} · {range}
          </small>
        </span>
      ),
      width: "minmax(110px, 1fr)",
      end: stats?.low !== undefined,
      cell: (one) => shown(one.row[name]),
    };
  });
  const search = (query.q ?? "").toLowerCase();
  const fit = search
    ? sample.filter((one) => chosen.some((name) => shown(one.row[name]).toLowerCase().includes(search)))
    : [];
  const all: Rows<Record_> = {
    count: total,
    at: (index) => {
      const item = byPage.get(Math.floor(index / PAGE))?.[index % PAGE];
      return item && recordOf(item);
    },
    seen: (from, to) =>
      (Math.floor(from / PAGE) !== Math.floor(first / PAGE) || Math.floor(to / PAGE) !== Math.floor(end / PAGE)) &&
      setSeen([from, to]),
  };
  return (
    <>
      <Head title={titleOf(job.data)} about={`${w.records}: ${number(job.data.counts.success)}`}>
        <a class="button" href={`/data/${job_id}/changes`}>
          {w.changes}
        </a>
        <a class="button" href={`/jobs/${job_id}?tab=exports`}>
          {w.exports}
        </a>
      </Head>
      <div class="line filters">
        <input
          class="narrow-input"
          type="search"
          aria-label={w.search}
          placeholder={w.search}
          value={query.q ?? ""}
          onInput={(event) => change({ q: event.currentTarget.value })}
        />
        <details class="columns">
          <summary class="button">
            {w.columns} {chosen.length}
          </summary>
          <div class="panel">
            {names.map((name) => (
              <label key={name} class="check">
                <input
                  type="checkbox"
                  checked={chosen.includes(name)}
                  onChange={(event) =>
                    change({
                      columns: (event.currentTarget.checked
                        ? [...chosen, name]
                        : chosen.filter((one) => one !== name)
                      ).join(","),
                    })
                  }
                />{" "}
                {name}
              </label>
            ))}
          </div>
        </details>
        {search && <span class="muted">{w.searched(number(sample.length), number(total))}</span>}
      </div>
      {sample.length === 0 ? (
        <Empty title={w.noRecords} />
      ) : (
        <div class="sideways">
          <Table
            label={w.records}
            columns={columns}
            rows={search ? rowsOf(fit) : all}
            id={(one) => one.id}
            href={(one) => `/jobs/${job_id}?tab=items&item=${encodeURIComponent(one.id)}`}
            most={18}
          />
        </div>
      )}
    </>
  );
}
