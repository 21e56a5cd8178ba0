/** Data: which jobs found something. */

import { usePages } from "#/api/client";
import { Empty, Head, Problem, Skeleton, Time } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { number, useWords } from "#/words";
import type { JobDocument } from "#client";
import { titleOf } from "../jobs";
import { own } from "./words";

export default function Data() {
  const w = useWords(own);
  const found = usePages("list_jobs", { query: { limit: 100 } }, (page) => page.jobs, { every: 10 });
  const jobs = found.rows.filter((job) => job.counts.success > 0);
  const columns: Column<JobDocument>[] = [
    { id: "job", head: w.job, width: "minmax(0, 2fr)", cell: titleOf },
    { id: "scraper", head: w.scraper, width: "minmax(0, 1fr)", line: 0, cell: (job) => job.scraper },
    { id: "records", head: w.records, width: "110px", end: true, cell: (job) => number(job.counts.success) },
    {
      id: "changes",
      head: "",
      width: "130px",
      end: true,
      cell: (job) => <a href={`/data/${job.id}/changes`}>{w.changes}</a>,
    },
    { id: "when", head: w.when, width: "110px", end: true, cell: (job) => <Time at={job.finished_at} /> },
  ];
  return (
    <>
      <Head title={w.title} about={w.about} />
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton />
      ) : jobs.length === 0 ? (
        <Empty title={w.none}>
          {w.noneAbout} <a href="/jobs/new">{w.makeJob}</a>
        </Empty>
      ) : (
        <Table
          label={w.title}
          columns={columns}
          rows={rowsOf(jobs, found.more)}
          id={(job) => job.id}
          href={(job) => `/data/${job.id}`}
          most={20}
        />
      )}
    </>
  );
}
