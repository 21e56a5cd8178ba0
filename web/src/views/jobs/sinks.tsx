/** Where the results of a job are delivered, and how each delivery stands. */

import { api, useAction } from "#/api/client";
import { may } from "#/api/session";
import { Problem, Status, Time } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { number, useWords } from "#/words";
import type { JobSinkDocument, WholeJobDocument } from "#client";
import { own } from "./words";

export function Sinks({ job }: { job: WholeJobDocument }) {
  const w = useWords(own);
  const deliver = useAction(
    (sink: string) => api.call("deliver_job", { path: { job_id: job.id, sink }, query: { from_start: false } }),
    { touches: ["get_job"] },
  );
  const columns: Column<JobSinkDocument>[] = [
    { id: "sink", head: w.sink, width: "minmax(0, 1fr)", cell: (one) => one.sink },
    { id: "state", head: w.status, width: "110px", cell: (one) => <Status of={one.state} /> },
    { id: "delivered", head: w.sinkDelivered, width: "110px", end: true, cell: (one) => number(one.delivered) },
    { id: "behind", head: w.sinkBehind, width: "110px", end: true, cell: (one) => number(one.behind) },
    { id: "failed", head: w.failed, width: "90px", end: true, cell: (one) => number(one.failed) },
    { id: "error", head: w.sinkError, width: "minmax(0, 2fr)", cell: (one) => one.last_error ?? "" },
    {
      id: "at",
      head: w.sinkLast,
      width: "110px",
      end: true,
      line: 0,
      cell: (one) => (one.delivered_at ? <Time at={one.delivered_at} /> : ""),
    },
    {
      id: "again",
      head: "",
      width: "120px",
      end: true,
      cell: (one) =>
        one.state === "failed" && may("deliver_job") ? (
          <button type="button" class="low" disabled={deliver.isPending} onClick={() => deliver.mutate(one.sink)}>
            {w.sinkResume}
          </button>
        ) : (
          ""
        ),
    },
  ];
  return (
    <div class="stack">
      <p class="muted">{w.sinksAbout}</p>
      <Problem error={deliver.error} />
      <Table label={w.tabSinks} columns={columns} rows={rowsOf([...job.sink_deliveries])} id={(one) => one.sink} />
    </div>
  );
}
