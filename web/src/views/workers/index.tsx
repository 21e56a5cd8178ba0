/** Workers: their load and slots, and drain before a machine is taken away. */

import { useState } from "preact/hooks";
import { api, cache, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { Empty, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { Confirm } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { bytes, number, useWords } from "#/words";
import type { WorkerDocument } from "#client";
import { own } from "../system/words";

/** Slots as little squares: busy and free. */
export function Squares({ busy, slots, label }: { busy: number; slots: number; label: string }) {
  return (
    <span class="squares" role="img" aria-label={label}>
      {Array.from({ length: Math.min(slots, 128) }, (_, at) => (
        <span key={at} class={at < busy ? "busy" : ""} />
      ))}
    </span>
  );
}

export default function Workers() {
  const w = useWords(own);
  const found = useCall("list_workers", {}, { every: 2 });
  const [asking, setAsking] = useState<WorkerDocument | null>(null);
  const undrain = useAction((worker_id: string) => api.call("undrain_worker", { path: { worker_id } }), {
    touches: ["list_workers"],
  });
  const columns: Column<WorkerDocument>[] = [
    { id: "host", head: w.host, width: "minmax(0, 1.4fr)", cell: (one) => `${one.host} · ${one.pid}` },
    {
      id: "state",
      head: w.state,
      width: "120px",
      cell: (one) => <Status of={one.draining ? "paused" : "ok"}>{one.draining ? w.draining : w.takes}</Status>,
    },
    {
      id: "slots",
      head: w.busy,
      width: "minmax(80px, 1.2fr)",
      cell: (one) => <Squares busy={one.busy} slots={one.slots} label={w.slots(number(one.busy), number(one.slots))} />,
    },
    { id: "done", head: w.doneRuns, width: "90px", end: true, cell: (one) => number(one.runs_done) },
    { id: "load", head: w.load, width: "60px", end: true, line: 0, cell: (one) => number(one.load, 2) },
    { id: "memory", head: w.memory, width: "80px", end: true, line: 0, cell: (one) => bytes(one.memory_mb * 1e6) },
    { id: "lanes", head: w.lanes, width: "90px", line: 0, cell: (one) => one.lanes.join(", ") },
    {
      id: "walls",
      head: w.walls,
      width: "minmax(0, 1.2fr)",
      line: 0,
      cell: (one) => <span title={one.walls.join(", ")}>{one.walls.join(", ")}</span>,
    },
    { id: "seen", head: w.seen, width: "90px", end: true, cell: (one) => <Time at={one.seen_at} /> },
    {
      id: "act",
      head: "",
      width: "120px",
      end: true,
      cell: (one) =>
        !may("drain_worker") ? (
          ""
        ) : one.drain || one.draining ? (
          <button type="button" class="small" onClick={() => undrain.mutate(one.id)}>
            {w.undrain}
          </button>
        ) : (
          <button type="button" class="small" onClick={() => setAsking(one)}>
            {w.drain}
          </button>
        ),
    },
  ];
  return (
    <>
      <Head title={w.workers} />
      <Problem error={found.error ?? undrain.error} />
      {found.isPending ? (
        <Skeleton />
      ) : found.data?.workers.length ? (
        <Table label={w.workers} columns={columns} rows={rowsOf(found.data.workers)} id={(one) => one.id} />
      ) : (
        <Empty title={w.noWorkers} />
      )}
      {asking && (
        <Confirm
          title={w.drainAsk}
          verb={w.drain}
          close={() => setAsking(null)}
          act={() =>
            api
              .call("drain_worker", { path: { worker_id: asking.id }, query: {} } as Parameters<
                typeof api.call<"drain_worker">
              >[1])
              .then(() => cache.invalidateQueries({ queryKey: ["list_workers"] }))
          }
        >
          {w.drainAbout(number(asking.busy))}
        </Confirm>
      )}
    </>
  );
}
