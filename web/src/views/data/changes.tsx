/** What changed between two crawls: pages on the left, the chosen one before and now on the right. */

import { useQuery } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { api, send, useAction, useCall } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Chips, Empty, Field, Head, Problem, Skeleton, Time } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { exact, number, useWords } from "#/words";
import type { ExportDocument } from "#client";
import { titleOf } from "../jobs";
import { own } from "./words";

interface Change {
  url: string;
  change_type: "ADDED" | "MODIFIED" | "REMOVED" | "UNCHANGED" | "FAILED" | "UNKNOWN";
  fields_changed: string | null;
  reason: string | null;
  prev_crawl_at: string | null;
  curr_crawl_at: string | null;
  [field: string]: string | number | null;
}

const KINDS = ["MODIFIED", "ADDED", "REMOVED", "FAILED", "UNKNOWN", "UNCHANGED"] as const;
const TONES: Record<Change["change_type"], string> = {
  ADDED: "good",
  MODIFIED: "warn",
  REMOVED: "bad",
  FAILED: "bad",
  UNKNOWN: "off",
  UNCHANGED: "off",
};
const FIELDS = ["title", "price", "availability"] as const;

export default function Changes({ job_id }: { job_id: string }) {
  const w = useWords(own);
  const { query, change } = useAddress();
  const path = { job_id };
  const job = useCall("get_job", { path });
  const others = useCall("list_jobs", { query: { limit: 100 } });
  const exports = useCall("list_exports", { path }, { every: 2 });
  const against = query.against ?? "";
  const made = [...(exports.data?.exports ?? [])]
    .reverse()
    .find((one) => one.type === "diff" && one.format === "json" && (one.against ?? "") === against);
  const make = useAction(
    () => api.call("create_export", { path, body: { type: "diff", format: "json", against: against || undefined } }),
    { touches: ["list_exports"] },
  );
  if (job.error) return <Problem error={job.error} />;
  if (!job.data) return <Skeleton />;
  const choices = (others.data?.jobs ?? []).filter(
    (one) => one.id !== job_id && one.scraper === job.data?.scraper && one.counts.success > 0,
  );
  return (
    <>
      <Head title={`${w.changes}: ${titleOf(job.data)}`} about={<Time at={job.data.finished_at} />}>
        <Field label={w.compareWith}>
          {(id) => (
            <select
              id={id}
              value={against}
              onChange={(event) => change({ against: event.currentTarget.value, kind: null, page: null })}
            >
              <option value="">{w.before}</option>
              {choices.map((one) => (
                <option key={one.id} value={one.id}>
                  {titleOf(one)} · {exact(one.finished_at ?? one.created_at)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <button
          type="button"
          class={made ? "low" : "main low"}
          disabled={make.isPending}
          onClick={() => make.mutate(undefined)}
        >
          {made ? w.rerun : w.compare}
        </button>
      </Head>
      <Problem error={make.error} />
      {made &&
        (made.state === "done" ? (
          <Compared key={made.id + made.sha256} made={made} />
        ) : made.error ? (
          <Problem error={new Error(made.error)} />
        ) : (
          <p role="status">{w.comparing}</p>
        ))}
    </>
  );
}

function Compared({ made }: { made: ExportDocument }) {
  const w = useWords(own);
  const { query, change } = useAddress();
  const found = useQuery({
    queryKey: ["download", made.id, made.sha256],
    queryFn: async () => (await (await send(made.links.download!)).json()) as Change[],
    staleTime: Number.POSITIVE_INFINITY,
  });
  const [search, setSearch] = useState("");
  if (found.error) return <Problem error={found.error} />;
  if (!found.data) return <Skeleton />;
  const counts = Object.fromEntries(
    KINDS.map((kind) => [kind, found.data.filter((one) => one.change_type === kind).length]),
  ) as Record<(typeof KINDS)[number], number>;
  const kind = (query.kind ?? KINDS.find((one) => counts[one] > 0) ?? "MODIFIED") as Change["change_type"];
  const rows = found.data.filter((one) => one.change_type === kind && (!search || one.url.includes(search)));
  const page = found.data.find((one) => one.url === query.page);
  const columns: Column<Change>[] = [
    {
      id: "page",
      head: w.page,
      width: "minmax(0, 2.4fr)",
      cell: (one) => one.url.replace(/^https?:\/\/[^/]+/, "") || "/",
    },
    {
      id: "type",
      head: w.type,
      width: "110px",
      cell: (one) => <span class={`status ${TONES[one.change_type]}`}>● {w[one.change_type]}</span>,
    },
    { id: "fields", head: w.fields, width: "minmax(0, 1.4fr)", cell: (one) => one.fields_changed ?? one.reason ?? "" },
  ];
  const href = (one: Change) => {
    const next = new URLSearchParams(location.search);
    next.set("page", one.url);
    return `${location.pathname}?${next}`;
  };
  return (
    <>
      <div class="line filters">
        <Chips
          label={w.type}
          value={kind}
          options={KINDS.filter((one) => counts[one] > 0).map((one) => [one, `${w[one]} ${number(counts[one])}`])}
          choose={(next) => change({ kind: next, page: null })}
        />
        <input
          class="narrow-input"
          type="search"
          aria-label={w.page}
          placeholder={w.page}
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      </div>
      <div class="halves">
        {rows.length ? (
          <Table
            label={w.changes}
            columns={columns}
            rows={rowsOf(rows)}
            id={(one) => one.url}
            href={href}
            selected={query.page}
            most={18}
          />
        ) : (
          <Empty title={w.noneChanged} />
        )}
        <section class="panel">{page ? <Side change={page} /> : <p class="muted">{w.choosePage}</p>}</section>
      </div>
    </>
  );
}

/** One page, before and now, field by field. */
function Side({ change }: { change: Change }) {
  const w = useWords(own);
  const names = { title: w.titleField, price: w.price, availability: w.availability };
  const value = (given: string | number | null | undefined) =>
    given === null || given === undefined ? "–" : String(given);
  return (
    <>
      <h2>
        <a href={change.url} rel="noreferrer noopener" target="_blank">
          {change.url}
        </a>
      </h2>
      {change.reason && <p class="muted">{change.reason}</p>}
      <table class="compare">
        <thead>
          <tr>
            <th scope="col">{w.field}</th>
            <th scope="col">{w.was}</th>
            <th scope="col">{w.is}</th>
          </tr>
        </thead>
        <tbody>
          {FIELDS.map((name) => {
            const [before, now] = [value(change[`${name}_prev`]), value(change[`${name}_curr`])];
            return (
              <tr key={name}>
                <th scope="row">{names[name]}</th>
                <td>{before === now ? before : <del>{before}</del>}</td>
                <td>{before === now ? now : <mark>{now}</mark>}</td>
              </tr>
            );
          })}
          <tr>
            <th scope="row">{w.crawledAt}</th>
            <td>{exact(change.prev_crawl_at)}</td>
            <td>{exact(change.curr_crawl_at)}</td>
          </tr>
        </tbody>
      </table>
      {change.fields_changed && (
        <p>
          {w.fields}: <code>{change.fields_changed}</code>
        </p>
      )}
    </>
  );
}
