/** What changed between two crawls: pages on the left, the chosen one before and now on the right. */

import { useQuery } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { api, send, useAction, useCall } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Chips, Empty, Field, Head, Problem, Skeleton, Time } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { exact, number, useWords } from "#/words";
import type { ExportDocument, JobDocument } from "#client";
import { titleOf } from "../jobs";
import { heeded } from "./compare";
import { type Change, Lasting, Side } from "./side";
import { own } from "./words";

const KINDS = ["MODIFIED", "ADDED", "REMOVED", "FAILED", "UNKNOWN", "UNCHANGED"] as const;
const TONES: Record<Change["change_type"], string> = {
  ADDED: "good",
  MODIFIED: "warn",
  REMOVED: "bad",
  FAILED: "bad",
  UNKNOWN: "off",
  UNCHANGED: "off",
};

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
          <Compared key={made.id + made.sha256} {...{ made, against }} job={job.data} jobs={others.data?.jobs ?? []} />
        ) : made.error ? (
          <Problem error={new Error(made.error)} />
        ) : (
          <p role="status">{w.comparing}</p>
        ))}
    </>
  );
}

interface Shown {
  made: ExportDocument;
  job: JobDocument;
  jobs: JobDocument[];
  against: string;
}

function Compared({ made, job, jobs, against }: Shown) {
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
  const ignored = (query.ignore ?? "").split(";").filter(Boolean);
  const isNoise = (one: Change) =>
    ignored.length > 0 && one.change_type === "MODIFIED" && heeded(one.fields_changed, ignored).length === 0;
  const heard = found.data.filter((one) => !isNoise(one));
  const counts = Object.fromEntries(
    KINDS.map((kind) => [kind, heard.filter((one) => one.change_type === kind).length]),
  ) as Record<(typeof KINDS)[number], number>;
  const kind = (query.kind ?? KINDS.find((one) => counts[one] > 0) ?? "MODIFIED") as Change["change_type"];
  const rows = heard.filter((one) => one.change_type === kind && (!search || one.url.includes(search)));
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
    {
      id: "fields",
      head: w.fields,
      width: "minmax(0, 1.4fr)",
      cell: (one) => heeded(one.fields_changed, ignored).join(", ") || (one.reason ?? ""),
    },
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
      {ignored.length > 0 && (
        <p class="line">
          <span class="muted">{w.ignoring(number(found.data.length - heard.length))}</span>
          {ignored.map((name) => (
            <button
              key={name}
              type="button"
              class="small"
              onClick={() => change({ ignore: ignored.filter((one) => one !== name).join(";") })}
            >
              {name} ✕
            </button>
          ))}
          <Lasting job={job} ignored={ignored} />
        </p>
      )}
      <div class="halves even">
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
        <section class="panel">
          {page ? (
            <Side key={page.url} change={page} {...{ job, jobs, against, ignored }} />
          ) : (
            <p class="muted">{w.choosePage}</p>
          )}
        </section>
      </div>
    </>
  );
}
