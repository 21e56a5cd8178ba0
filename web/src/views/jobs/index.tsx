/** Jobs: each with a bar that shows how far it is and how well it goes. */

import { usePages } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Bar, Chips, Empty, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { bytes, lasts, number, useWords } from "#/words";
import type { CountsDocument, JobDocument, JobStatus } from "#client";
import { own } from "./words";

/** States in which nothing of a job runs any more. */
export const FINAL: string[] = ["completed", "cancelled", "failed"];
const GROUPS: Record<string, JobStatus[]> = {
  active: ["creating", "running", "paused", "cancelling", "finishing"],
  ended: FINAL as JobStatus[],
};

export const titleOf = (job: { name: string; domain: string; scraper: string }) =>
  job.name || [job.domain, job.scraper].filter(Boolean).join(" · ");

/** How far a job is: ok, failed, running and pending as tones of one bar. */
export function Progress({ counts }: { counts: CountsDocument }) {
  const w = useWords(own);
  return (
    <Bar
      label={w.progress}
      parts={[
        { tone: "good", value: counts.success, name: w.ok },
        { tone: "bad", value: counts.error, name: w.failed },
        { tone: "busy", value: counts.in_progress + counts.queued, name: w.running },
        { tone: "off", value: counts.pending + counts.cancelled, name: w.pending },
      ]}
    />
  );
}

export default function Jobs() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const asked = {
    status: GROUPS[query.state ?? ""],
    scraper: query.scraper,
    domain: query.domain,
    schedule_id: query.schedule,
    limit: 100,
  };
  const found = usePages("list_jobs", { query: asked }, (page) => page.jobs, { every: 2 });
  const columns: Column<JobDocument>[] = [
    { id: "name", head: w.name, width: "minmax(0, 2fr)", cell: titleOf },
    { id: "status", head: w.status, width: "112px", cell: (job) => <Status of={job.status} /> },
    {
      id: "progress",
      head: w.progress,
      width: "minmax(80px, 1.6fr)",
      line: 0,
      cell: (job) => <Progress counts={job.counts} />,
    },
    { id: "items", head: w.items, width: "84px", end: true, cell: (job) => w.itemsTotal(number(job.counts.total)) },
    {
      id: "rate",
      head: w.rate,
      width: "72px",
      end: true,
      line: 0,
      cell: (job) =>
        job.status === "running" && job.items_per_second ? w.perSecond(number(job.items_per_second, 1)) : "",
    },
    {
      id: "eta",
      head: w.eta,
      width: "90px",
      end: true,
      line: 0,
      cell: (job) => (job.eta_seconds === null || job.status !== "running" ? "" : lasts(job.eta_seconds)),
    },
    {
      id: "errors",
      head: w.errors,
      width: "80px",
      end: true,
      cell: (job) =>
        job.counts.error > 0 ? (
          <a class="bad" href={`/jobs/${job.id}?tab=items&status=error`}>
            {number(job.counts.error)}
          </a>
        ) : (
          ""
        ),
    },
    {
      id: "traffic",
      head: w.traffic,
      width: "80px",
      end: true,
      line: 0,
      cell: (job) => bytes(job.usage.bytes_received),
    },
    { id: "created", head: w.created, width: "100px", end: true, cell: (job) => <Time at={job.created_at} /> },
  ];
  const filtered = Boolean(query.state || query.scraper || query.domain || query.schedule);
  return (
    <>
      <Head title={w.title} about={w.about}>
        {may("create_job") && (
          <a class="button main" href="/jobs/new">
            {w.new}
          </a>
        )}
      </Head>
      <div class="line filters">
        <Chips
          label={w.status}
          value={query.state ?? ""}
          options={[
            ["", w.allJobs],
            ["active", w.active],
            ["ended", w.ended],
          ]}
          choose={(state) => change({ state })}
        />
      </div>
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton rows={8} />
      ) : found.rows.length === 0 ? (
        <Empty title={filtered ? w.noneFit : w.none}>{!filtered && w.noneAbout}</Empty>
      ) : (
        <Table
          label={w.title}
          columns={columns}
          rows={rowsOf(found.rows, found.more)}
          id={(job) => job.id}
          href={(job) => `/jobs/${job.id}`}
          most={20}
        />
      )}
    </>
  );
}
