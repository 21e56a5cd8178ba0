/** The items of a job: any of a million by its number, or those that fit a filter; and one of them, whole. */

import { useQueries } from "@tanstack/preact-query";
import { useEffect, useState } from "preact/hooks";
import { api, useCall, usePages } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Chips, Empty, Facts, Problem, Skeleton, Status } from "#/kit/base";
import { Data } from "#/kit/json";
import { type Column, type Rows, rowsOf, Table } from "#/kit/table";
import { bytes, number, took, useWords } from "#/words";
import { common } from "#/words/common";
import type { ExitReason, ItemDocument, ItemStatus, JobDocument } from "#client";
import { brief } from "../runs";
import { Logs } from "../runs/logs";
import { FINAL } from ".";
import { own } from "./words";

const STATES: ItemStatus[] = ["success", "error", "in_progress", "pending", "cancelled"];
const PAGE = 100;

const last = (item: ItemDocument) =>
  item.started_at && item.finished_at
    ? new Date(item.finished_at).getTime() - new Date(item.started_at).getTime()
    : null;

export function Items({ job }: { job: JobDocument }) {
  const w = useWords(own);
  const c = useWords(common) as unknown as Record<string, string>;
  const { query, change } = useAddress();
  const filtered = Boolean(query.status || query.reason || query.http || query.site || query.q);
  const columns: Column<ItemDocument>[] = [
    { id: "input", head: w.input, width: "minmax(0, 3fr)", cell: (item) => brief(item.input) || item.id },
    { id: "status", head: w.status, width: "104px", cell: (item) => <Status of={item.status} /> },
    {
      id: "reason",
      head: w.reason,
      width: "minmax(0, 1.2fr)",
      cell: (item) => (item.exit_reason === "succeeded" ? "" : (item.exit_reason ?? "")),
    },
    { id: "http", head: w.http, width: "52px", end: true, cell: (item) => item.http_status ?? "" },
    {
      id: "attempt",
      head: w.attempt,
      width: "44px",
      end: true,
      line: 0,
      cell: (item) => (item.attempt > 1 ? number(item.attempt) : ""),
    },
    { id: "took", head: w.took, width: "80px", end: true, cell: (item) => took(last(item)) },
    { id: "number", head: w.number, width: "84px", end: true, line: 0, cell: (item) => number(item.number) },
  ];
  const href = (item: ItemDocument) => {
    const next = new URLSearchParams(location.search);
    next.set("tab", "items");
    next.set("item", item.id);
    return `${location.pathname}?${next}`;
  };
  const given = { job, columns, href, selected: query.item };
  return (
    <div class="stack">
      <div class="line">
        <Chips
          label={w.status}
          value={query.status ?? ""}
          options={[["", c.all!], ...STATES.map((one) => [one, c[`st_${one}`]!] as [string, string])]}
          choose={(status) => change({ status, reason: null, http: null, site: null })}
        />
        <input
          class="narrow-input"
          type="search"
          aria-label={w.searchItems}
          placeholder={w.searchItems}
          value={query.q ?? ""}
          onChange={(event) => change({ q: event.currentTarget.value.trim() })}
        />
        {(["reason", "http", "site"] as const).map(
          (name) =>
            query[name] && (
              <button key={name} type="button" class="small" onClick={() => change({ [name]: null })}>
                {query[name]} ✕
              </button>
            ),
        )}
      </div>
      {query.item && <Item job={job} id={query.item} close={() => change({ item: null })} />}
      {filtered ? <Filtered {...given} /> : <All {...given} />}
    </div>
  );
}

interface Shown {
  job: JobDocument;
  columns: Column<ItemDocument>[];
  href: (item: ItemDocument) => string;
  selected?: string;
}

/** All items by their number: only the pages that are seen are asked for. */
function All({ job, columns, href, selected }: Shown) {
  const w = useWords(own);
  const [[first, end], setSeen] = useState<[number, number]>([0, 0]);
  const pages: number[] = [];
  for (let page = Math.floor(first / PAGE); page <= Math.floor(end / PAGE); page++) pages.push(page);
  const isOver = FINAL.includes(job.status);
  const path = { job_id: job.id };
  const found = useQueries({
    queries: pages.map((page) => ({
      queryKey: ["list_items", { path, page }],
      queryFn: () => api.call("list_items", { path, query: { first: page * PAGE, limit: PAGE } }),
      refetchInterval: isOver ? (false as const) : 2000,
      staleTime: 2000,
      structuralSharing: false, // comparing a page of items costs more than drawing the rows one sees
      gcTime: 30_000,
    })),
  });
  const byPage = new Map(pages.map((page, index) => [page, found[index]?.data?.items]));
  const rows: Rows<ItemDocument> = {
    count: job.counts.total,
    at: (index) => byPage.get(Math.floor(index / PAGE))?.[index % PAGE],
    seen: (from, to) =>
      (Math.floor(from / PAGE) !== Math.floor(first / PAGE) || Math.floor(to / PAGE) !== Math.floor(end / PAGE)) &&
      setSeen([from, to]),
  };
  if (job.counts.total === 0) return <Empty title={w.noItems} />;
  return (
    <>
      <Problem error={found.find((one) => one.error)?.error} />
      <Table label={w.items} columns={columns} rows={rows} id={(item) => item.id} href={href} selected={selected} />
    </>
  );
}

function Filtered({ job, columns, href, selected }: Shown) {
  const w = useWords(own);
  const { query } = useAddress();
  const wanted =
    query.status === "in_progress"
      ? (["in_progress", "queued"] as ItemStatus[])
      : query.status
        ? [query.status as ItemStatus]
        : undefined;
  const asked = {
    status: wanted,
    exit_reason: query.reason ? [query.reason as ExitReason] : undefined,
    http_status: query.http ? [Number(query.http)] : undefined,
    site: query.site ? [query.site] : undefined,
    q: query.q,
    limit: PAGE,
  };
  const every = query.q ? undefined : 2;
  const found = usePages("list_items", { path: { job_id: job.id }, query: asked }, (page) => page.items, { every });
  const goesOn = found.rows.length === 0 && found.hasNextPage; // a search looks at a part of the job in each call
  useEffect(() => {
    if (goesOn) found.more();
  }, [goesOn, found.isFetching]);
  if (found.error) return <Problem error={found.error} />;
  if (found.isPending || goesOn) return <Skeleton />;
  if (!found.rows.length) return <Empty title={w.noItems} />;
  return (
    <Table
      label={w.items}
      columns={columns}
      rows={rowsOf(found.rows, found.more)}
      id={(item) => item.id}
      href={href}
      selected={selected}
    />
  );
}

function Item({ job, id, close }: { job: JobDocument; id: string; close: () => void }) {
  const w = useWords(own);
  const c = useWords(common);
  const found = useCall("get_item", { path: { job_id: job.id, key: id } });
  const item = found.data;
  return (
    <section class="panel stack" aria-label={w.item}>
      <div class="line">
        <h2>{item ? brief(item.input) || id : id}</h2>
        <span class="spring" />
        <button type="button" class="small" onClick={close}>
          {c.close}
        </button>
      </div>
      <Problem error={found.error} />
      {item && (
        <>
          <Facts
            facts={[
              [w.status, <Status key="status" of={item.status} />],
              ...(item.exit_reason ? ([[w.reason, item.exit_reason]] as [string, string][]) : []),
              ...(item.http_status ? ([[w.http, String(item.http_status)]] as [string, string][]) : []),
              [w.took, took(last(item))],
              ...(item.strategy_used
                ? ([["strategy", [item.strategy_used, item.proxy_used].filter(Boolean).join(" · ")]] as [
                    string,
                    string,
                  ][])
                : []),
            ]}
          />
          {item.error && <Problem error={new Error(item.error.message)} />}
          {item.logs.length > 0 && <Logs lines={item.logs} cut={false} flow="ended" />}
          {item.artifacts.length > 0 && (
            <ul class="files">
              {item.artifacts.map((one) => (
                <li key={one.name}>
                  <a href={one.href} download={one.name}>
                    {one.name}
                  </a>{" "}
                  <span class="muted">{bytes(one.size)}</span>
                </li>
              ))}
            </ul>
          )}
          {item.result !== null && <Data value={item.result} />}
        </>
      )}
    </section>
  );
}
