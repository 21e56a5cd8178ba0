/** Runs: every call of a scraper, newest first, live while the list is at its top. */

import { usePages } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Chips, Empty, Head, Problem, Said, Skeleton, Status, Time } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { took, useWords } from "#/words";
import { common } from "#/words/common";
import type { ExitReason, RunStatus, Summary } from "#client";
import { own } from "./words";

const STATES = ["queued", "running", "succeeded", "failed", "cancelled"] as const;

/** An input in a few words: its address, or its first values. */
export function brief(input: Record<string, unknown>): string {
  if (typeof input.url === "string") return input.url.replace(/^https?:\/\//, "");
  return Object.entries(input)
    .map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
    .join(", ");
}

export default function Runs() {
  const w = useWords(own);
  const c = useWords(common) as unknown as Record<string, string>;
  const { query, change } = useAddress();
  const asked = {
    status: query.status ? [query.status as RunStatus] : undefined,
    exit_reason: query.reason ? [query.reason as ExitReason] : undefined,
    scraper: query.scraper || undefined,
    limit: 100,
  };
  const found = usePages("list_runs", { query: asked }, (page) => page.runs, { every: 2 });
  const columns: Column<Summary>[] = [
    {
      id: "scraper",
      head: w.scraper,
      width: "minmax(150px, 1.2fr)",
      cell: (run) => `${run.scraper}${run.version && !run.scraper.startsWith("builtin/") ? `@${run.version}` : ""}`,
    },
    { id: "status", head: w.status, width: "110px", cell: (run) => <Status of={run.status} /> },
    { id: "input", head: w.input, width: "minmax(0, 3fr)", cell: (run) => brief(run.input) },
    {
      id: "reason",
      head: w.reason,
      width: "minmax(0, 1.4fr)",
      cell: (run) => (run.exit_reason === "succeeded" ? "" : (run.waiting?.message ?? run.exit_reason ?? "")),
    },
    { id: "waited", head: w.waited, width: "80px", end: true, line: 0, cell: (run) => took(run.timing?.queue_ms) },
    { id: "took", head: w.took, width: "80px", end: true, cell: (run) => took(run.usage?.wall_ms) },
    { id: "started", head: w.started, width: "110px", end: true, cell: (run) => <Time at={run.created_at} /> },
  ];
  const filtered = Boolean(query.status || query.reason || query.scraper);
  return (
    <>
      <Head title={w.title} about={w.about} />
      <div class="line filters">
        <Chips
          label={w.status}
          value={(query.status ?? "") as "" | RunStatus}
          options={[["", w.allStates], ...STATES.map((one) => [one, c[`st_${one}`]] as [RunStatus, string])]}
          choose={(status) => change({ status })}
        />
        <input
          class="narrow-input"
          type="search"
          aria-label={w.byScraper}
          placeholder={w.byScraper}
          value={query.scraper ?? ""}
          onChange={(event) => change({ scraper: event.currentTarget.value })}
        />
        {query.reason && (
          <button type="button" class="small" onClick={() => change({ reason: null })}>
            {query.reason} ✕
          </button>
        )}
      </div>
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton rows={10} />
      ) : found.rows.length === 0 ? (
        <Empty title={filtered ? w.noneFit : w.none}>
          {!filtered && (
            <>
              <Said text={w.noneAbout} /> <a href="/try">{w.tryPage}</a>
            </>
          )}
        </Empty>
      ) : (
        <Table
          label={w.title}
          columns={columns}
          rows={rowsOf(found.rows, found.more)}
          id={(run) => run.id}
          href={(run) => `/runs/${run.id}`}
          most={20}
        />
      )}
    </>
  );
}
