/** One schedule: when it starts next, what became of its times, and pause, resume, run now. */

import { useState } from "preact/hooks";
import { api, cache, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Empty, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { Confirm, note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { exact, useWords } from "#/words";
import type { FiringDocument } from "#client";
import { nameOf, useWhen } from ".";
import { own } from "./words";

const TOUCHED = ["get_schedule", "list_schedules", "get_schedule_history"] as const;

export default function Schedule({ schedule_id }: { schedule_id: string }) {
  const w = useWords(own);
  const when = useWhen();
  const { go } = useAddress();
  const path = { schedule_id };
  const found = useCall("get_schedule", { path }, { every: 5 });
  const history = useCall("get_schedule_history", { path }, { every: 5 });
  const [asking, setAsking] = useState(false);
  const touches = [...TOUCHED];
  const resume = useAction(() => api.call("resume_schedule", { path }), { touches, done: () => note(w.resumedNote) });
  const pause = useAction(() => api.call("pause_schedule", { path }), {
    touches,
    done: () => note(w.pausedNote, () => resume.mutate(undefined)),
  });
  const start = useAction(() => api.call("run_schedule", { path }), { touches, done: () => note(w.started) });
  const one = found.data;
  if (found.error) return <Problem error={found.error} />;
  if (!one) return <Skeleton />;
  const columns: Column<FiringDocument>[] = [
    { id: "due", head: w.due, width: "minmax(0, 1fr)", cell: (each) => exact(each.due_at) },
    { id: "state", head: w.state, width: "120px", cell: (each) => <Status of={each.state} /> },
    {
      id: "kind",
      head: w.kind,
      width: "100px",
      line: 0,
      cell: (each) => (each.kind === "manual" ? w.manual : w.scheduled),
    },
    {
      id: "result",
      head: w.result,
      width: "minmax(0, 2fr)",
      cell: (each) =>
        each.id ? (
          <a href={each.id.startsWith("run_") ? `/runs/${each.id}` : `/jobs/${each.id}`}>{each.id}</a>
        ) : (
          (each.reason ?? "")
        ),
    },
  ];
  return (
    <>
      <Head
        title={nameOf(one)}
        about={
          <>
            <Status of={one.paused ? "paused" : "ok"}>{one.paused ? w.paused : w.on}</Status> · {when(one)} ·{" "}
            {one.time_zone}
          </>
        }
      >
        {may("run_schedule") && (
          <button type="button" onClick={() => start.mutate(undefined)} disabled={start.isPending}>
            {w.runNow}
          </button>
        )}
        {may("pause_schedule") &&
          (one.paused ? (
            <button type="button" class="main" onClick={() => resume.mutate(undefined)}>
              {w.resume}
            </button>
          ) : (
            <button type="button" onClick={() => pause.mutate(undefined)}>
              {w.pause}
            </button>
          ))}
        {may("delete_schedule") && (
          <button type="button" onClick={() => setAsking(true)}>
            {w.delete}
          </button>
        )}
      </Head>
      <Problem error={pause.error ?? resume.error ?? start.error} />
      <div class="grid">
        <section class="panel">
          <h2>{w.nextTimes}</h2>
          <table class="compare times">
            <thead>
              <tr>
                <th scope="col">{w.yours}</th>
                <th scope="col">{w.hers(one.time_zone)}</th>
              </tr>
            </thead>
            <tbody>
              {one.next_runs.map((at) => (
                <tr key={at}>
                  <td>
                    {exact(at)}{" "}
                    <span class="muted">
                      (<Time at={at} />)
                    </span>
                  </td>
                  <td>{at.replace("T", " ").slice(0, 16)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
        <section class="panel">
          <h2>{w.target}</h2>
          <pre>{JSON.stringify(one.job ?? one.scrape, null, 2)}</pre>
        </section>
      </div>
      <h2>{w.history}</h2>
      {history.data?.firings.length ? (
        <Table
          label={w.history}
          columns={columns}
          rows={rowsOf(history.data.firings)}
          id={(each) => each.due_at + each.kind}
        />
      ) : (
        <Empty title={w.noHistory} />
      )}
      {asking && (
        <Confirm
          title={w.deleteAsk}
          verb={w.delete}
          close={() => setAsking(false)}
          act={() =>
            api.call("delete_schedule", { path }).then(() => {
              void cache.invalidateQueries({ queryKey: ["list_schedules"] });
              go("/schedules");
            })
          }
        >
          {w.deleteAbout}
        </Confirm>
      )}
    </>
  );
}
