/** The records of a job as a table: any of a million, with figures of each column in its head. */

import { useQueries } from "@tanstack/preact-query";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, useCall } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Empty, Head, Problem, Skeleton } from "#/kit/base";
import { type Column, type Rows, rowsOf, Table } from "#/kit/table";
import { number, percent, useWords } from "#/words";
import type { ItemDocument } from "#client";
import { titleOf } from "../jobs";
import { type Condition, conditionOf, type Flat, flat, searchFor, shown, statsOf, telling, valuesOf } from "./stats";
import { own } from "./words";

const PAGE = 100;
const SAMPLE = 10;
const WIDTH = 150;
const MOST_FOUND = 1000;
/** Items that the server looks at in one call of a search. */
const LOOKED = 50 * PAGE;

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
      structuralSharing: false, // comparing a page of items costs more than drawing the rows one sees
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
  const where = conditionOf(query.where);
  const words = (query.q ?? "").trim();
  const asking = words || (where ? searchFor(where.value) : "");
  const searched = useSearch(job_id, asking, total, where);
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
          {stats?.steps && <Steps counts={stats.steps} />}
        </span>
      ),
      width: `minmax(${WIDTH - 12}px, 1fr)`,
      end: stats?.low !== undefined,
      cell: (one) => shown(one.row[name]),
    };
  });
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
          onChange={(event) => change({ q: event.currentTarget.value })}
        />
        <Columns names={names} chosen={chosen} choose={(columns) => change({ columns: columns.join(",") })} />
        <Filter names={chosen} rows={sample} choose={({ name, value }) => change({ where: `${name}=${value}` })} />
        {where && (
          <button type="button" class="small" onClick={() => change({ where: null })}>
            {where.name} = {where.value} ✕
          </button>
        )}
        {asking && (
          <span class="muted" role="status">
            {w.searched(number(Math.min(total, searched.looked)), number(total), number(searched.rows.length))}
          </span>
        )}
        {asking && searched.isLooking && (
          <button type="button" class="small" onClick={searched.stop}>
            {w.stop}
          </button>
        )}
      </div>
      {sample.length === 0 ? (
        <Empty title={w.noRecords} />
      ) : (
        <Table
          label={w.records}
          columns={columns}
          rows={asking ? rowsOf(searched.rows.map(recordOf)) : all}
          id={(one) => one.id}
          href={(one) => `/jobs/${job_id}?tab=items&item=${encodeURIComponent(one.id)}`}
          most={18}
          wide={chosen.length * WIDTH + 24}
        />
      )}
    </>
  );
}

/** All records with these words, as they are found: the server looks at a part of the job in each call. */
function useSearch(job_id: string, words: string, total: number, where: Condition | null) {
  const [rows, setRows] = useState<ItemDocument[]>([]);
  const [looked, setLooked] = useState(0);
  const [isLooking, setLooking] = useState(false);
  const stopped = useRef<AbortController | null>(null);
  useEffect(() => {
    setRows([]);
    setLooked(0);
    if (!words || total === 0) return;
    const stop = new AbortController();
    stopped.current = stop;
    setLooking(true);
    void (async () => {
      let cursor: string | undefined;
      let count = 0;
      do {
        const query = { q: words, status: ["success" as const], limit: PAGE, cursor };
        const page = await api.call("list_items", { path: { job_id }, query, signal: stop.signal }).catch(() => null);
        if (!page || stop.signal.aborted) break;
        cursor = page.next_cursor ?? undefined;
        const fitting = where
          ? page.items.filter((item) => shown(recordOf(item).row[where.name]) === where.value)
          : page.items;
        setRows((now) => [...now, ...fitting]);
        const last = page.items.at(-1)?.number;
        count += fitting.length;
        setLooked((now) =>
          cursor === undefined ? total : last === undefined ? now + LOOKED : Math.max(now, last + 1),
        );
      } while (cursor !== undefined && count < MOST_FOUND);
      if (stopped.current === stop) setLooking(false);
    })();
    return () => stop.abort();
  }, [job_id, words, where?.name, where?.value, total > 0]);
  const stop = () => {
    stopped.current?.abort();
    setLooking(false);
  };
  return { rows, looked, isLooking, stop };
}

/** How the numbers of a column lie, from the lowest to the highest. */
function Steps({ counts }: { counts: number[] }) {
  const most = Math.max(...counts);
  return (
    <svg class="histogram" viewBox={`0 0 ${counts.length} 10`} preserveAspectRatio="none" aria-hidden="true">
      {counts.map((count, at) => (
        <rect key={at} x={at} width="0.8" y={10 - (10 * count) / most} height={(10 * count) / most} />
      ))}
    </svg>
  );
}

/** Only records with one value in one column: the values are those of the first records. */
function Filter({ names, rows, choose }: { names: string[]; rows: Record_[]; choose: (condition: Condition) => void }) {
  const w = useWords(own);
  const box = useRef<HTMLDetailsElement>(null);
  const [name, setName] = useState(names[0] ?? "");
  const now = names.includes(name) ? name : (names[0] ?? "");
  const values = useMemo(
    () =>
      valuesOf(
        rows.map((one) => one.row),
        now,
      ),
    [rows, now],
  );
  return (
    <details class="columns" ref={box}>
      <summary class="button">{w.filter}</summary>
      <div class="panel">
        <select aria-label={w.filterColumn} value={now} onChange={(event) => setName(event.currentTarget.value)}>
          {names.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
        {values.length === 0 && <p class="muted">{w.noValues}</p>}
        {values.map(([value, count]) => (
          <button
            key={value}
            type="button"
            class="quiet small value"
            onClick={() => {
              if (box.current) box.current.open = false;
              choose({ name: now, value });
            }}
          >
            <span>{value}</span> <span class="muted">{number(count)}</span>
          </button>
        ))}
      </div>
    </details>
  );
}

/** Which columns, and in which order. The first stays when the others scroll. */
function Columns({
  names,
  chosen,
  choose,
}: {
  names: string[];
  chosen: string[];
  choose: (columns: string[]) => void;
}) {
  const w = useWords(own);
  const others = names.filter((name) => !chosen.includes(name));
  const moved = (name: string, to: number) => {
    const rest = chosen.filter((one) => one !== name);
    choose([...rest.slice(0, Math.max(0, to)), name, ...rest.slice(Math.max(0, to))]);
  };
  const act = (label: string, mark: string, name: string, to: number, off: boolean) => (
    <button
      type="button"
      class="quiet small"
      aria-label={`${label}: ${name}`}
      title={label}
      disabled={off}
      onClick={() => moved(name, to)}
    >
      {mark}
    </button>
  );
  return (
    <details class="columns">
      <summary class="button">
        {w.columns} {chosen.length}
      </summary>
      <div class="panel">
        {[...chosen, ...others].map((name, at) => {
          const isChosen = at < chosen.length;
          return (
            <div key={name} class="column">
              <label class="check">
                <input
                  type="checkbox"
                  checked={isChosen}
                  disabled={isChosen && chosen.length === 1}
                  onChange={() => choose(isChosen ? chosen.filter((one) => one !== name) : [...chosen, name])}
                />{" "}
                {name}
              </label>
              {isChosen && act(w.pin, "⇤", name, 0, at === 0)}
              {isChosen && act(w.earlier, "↑", name, at - 1, at === 0)}
              {isChosen && act(w.later, "↓", name, at + 1, at === chosen.length - 1)}
            </div>
          );
        })}
      </div>
    </details>
  );
}
