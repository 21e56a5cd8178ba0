/** Workers: how busy each is, what it takes, and what keeps its scripts in. */

import { useState } from "preact/hooks";
import { api, cache, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Empty, Facts, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { Confirm, Dialog, note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { bytes, lasts, number, useWords } from "#/words";
import type { WorkerDocument } from "#client";
import { Slots } from "./slots";
import { own } from "./words";

export default function Workers() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const found = useCall("list_workers", {}, { every: 2 });
  const workers = found.data?.workers ?? [];
  const chosen = workers.find((worker) => worker.id === query.worker);
  const columns: Column<WorkerDocument>[] = [
    {
      id: "host",
      head: w.host,
      width: "minmax(120px, 1fr)",
      cell: (worker) => (
        <>
          {worker.host} <span class="muted">{worker.pid}</span>
        </>
      ),
    },
    { id: "state", head: w.state, width: "120px", cell: (worker) => <State of={worker} /> },
    {
      id: "slots",
      head: w.slots,
      width: "minmax(140px, 2fr)",
      cell: (worker) => <Slots busy={worker.busy} all={worker.slots} />,
    },
    {
      id: "load",
      head: <span title={w.loadHint}>{w.load}</span>,
      width: "64px",
      end: true,
      line: 0,
      cell: (worker) => number(worker.load, 2),
    },
    { id: "memory", head: w.memory, width: "80px", end: true, cell: (worker) => bytes(worker.memory_mb * 1e6) },
    { id: "done", head: w.done, width: "80px", end: true, line: 0, cell: (worker) => number(worker.runs_done) },
    { id: "each", head: w.each, width: "80px", end: true, line: 0, cell: (worker) => lasts(worker.run_seconds) },
    { id: "lanes", head: w.lanes, width: "minmax(0, 1fr)", line: 0, cell: (worker) => worker.lanes.join(", ") },
    { id: "seen", head: w.seen, width: "90px", end: true, cell: (worker) => <Time at={worker.seen_at} /> },
  ];
  return (
    <>
      <Head title={w.title} about={w.about} />
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton />
      ) : workers.length === 0 ? (
        <Empty title={w.none}>{w.noneAbout}</Empty>
      ) : (
        <div class="stack">
          <Together of={workers} />
          <Table
            label={w.title}
            columns={columns}
            rows={rowsOf(workers)}
            id={(worker) => worker.id}
            href={(worker) => `/workers?worker=${worker.id}`}
            selected={query.worker}
          />
        </div>
      )}
      {chosen && <One of={chosen} left={others(workers, chosen)} close={() => change({ worker: null })} />}
    </>
  );
}

const others = (workers: WorkerDocument[], one: WorkerDocument) =>
  workers.filter((worker) => worker.id !== one.id && !worker.draining).length;

function State({ of }: { of: WorkerDocument }) {
  const w = useWords(own);
  return of.draining || of.drain ? <Status of="degraded">{w.draining}</Status> : <Status of="ok">{w.takes}</Status>;
}

/** All slots at once, and whether they suffice for what waits. */
function Together({ of }: { of: WorkerDocument[] }) {
  const w = useWords(own);
  const scale = useCall("get_scale", { query: {} }, { every: 5 }).data;
  const busy = of.reduce((sum, worker) => sum + worker.busy, 0);
  const slots = of.reduce((sum, worker) => sum + worker.slots, 0);
  const target = lasts(scale?.target_seconds);
  return (
    <section class="panel line">
      <strong>{w.slotsAre(number(busy), number(slots))}</strong>
      {scale && (
        <span class={scale.wanted_workers > scale.workers ? "status warn" : "muted"}>
          {scale.wanted_workers > scale.workers ? w.wanted(number(scale.wanted_workers), target) : w.enough(target)}{" "}
          {!scale.measured && w.measured}
        </span>
      )}
    </section>
  );
}

function One({ of, left, close }: { of: WorkerDocument; left: number; close: () => void }) {
  const w = useWords(own);
  const [asking, setAsking] = useState(false);
  const path = { worker_id: of.id };
  const undrain = useAction(() => api.call("undrain_worker", { path }), {
    touches: ["list_workers"],
    done: () => note(w.undrained),
  });
  if (asking)
    return (
      <Confirm
        title={w.drainAsk(`${of.host} ${of.pid}`)}
        verb={w.drain}
        close={close}
        act={async () => {
          await api.call("drain_worker", { path, query: {} });
          note(w.drained, () => undrain.mutate(undefined));
          void cache.invalidateQueries({ queryKey: ["list_workers"] });
        }}
      >
        {w.drainAbout(number(of.busy), number(left))}
      </Confirm>
    );
  const environments = Object.entries(of.environments);
  return (
    <Dialog title={`${of.host} ${of.pid}`} close={close}>
      <div class="stack">
        <Slots busy={of.busy} all={of.slots} />
        <Facts
          facts={[
            [w.state, <State of={of} />],
            [w.lanes, of.lanes.join(", ")],
            [w.scrapers, of.takes.join(" ") || w.every],
            [w.engines, of.engines.join(", ")],
            [<span title={w.wallsHint}>{w.walls}</span>, of.walls.join(", ")],
            [w.load, number(of.load, 2)],
            [w.memory, bytes(of.memory_mb * 1e6)],
            [w.done, number(of.runs_done)],
            [w.each, lasts(of.run_seconds)],
            [w.perItem, lasts(of.item_seconds)],
            [w.started, <Time at={of.started_at} />],
            [w.seen, <Time at={of.seen_at} />],
            [w.version, of.version],
            [w.id, <code>{of.id}</code>],
          ]}
        />
        <h3>{w.environments}</h3>
        {environments.length === 0 ? (
          <p class="muted">{w.noEnvironments}</p>
        ) : (
          <Facts
            facts={environments.map(([name, state]) => [
              name,
              <>
                {state.status} {state.size_bytes > 0 && <span class="muted">{bytes(state.size_bytes)}</span>}
                {state.problem && <div class="status bad">{state.problem}</div>}
              </>,
            ])}
          />
        )}
        <Problem error={undrain.error} />
      </div>
      {may("drain_worker") && (
        <footer>
          {of.draining || of.drain ? (
            <button type="button" class="main" disabled={undrain.isPending} onClick={() => undrain.mutate(undefined)}>
              {w.undrain}
            </button>
          ) : (
            <button type="button" onClick={() => setAsking(true)}>
              {w.drain}
            </button>
          )}
        </footer>
      )}
    </Dialog>
  );
}
