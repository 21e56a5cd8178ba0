/** What can be done about a job: pause, resume, another rate, cancel, delete. */

import { useState } from "preact/hooks";
import { api, cache, type Name, useAction } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Field, Problem } from "#/kit/base";
import { Confirm, Dialog, note } from "#/kit/dialog";
import { has } from "#/routes";
import { number, useWords } from "#/words";
import type { JobDocument } from "#client";
import { FINAL } from ".";
import { own } from "./words";

const TOUCHED: Name[] = ["get_job", "list_jobs", "list_items", "list_errors"];

export function Acts({ job }: { job: JobDocument }) {
  const w = useWords(own);
  const { go } = useAddress();
  const path = { job_id: job.id };
  const [asking, setAsking] = useState<"cancel" | "delete" | "rate" | null>(null);
  const resume = useAction(() => api.call("resume_job", { path }), {
    touches: TOUCHED,
    done: () => note(w.resumedNote),
  });
  const pause = useAction(() => api.call("pause_job", { path }), {
    touches: TOUCHED,
    done: () => note(w.pausedNote, () => resume.mutate(undefined)),
  });
  const isOver = FINAL.includes(job.status);
  const close = () => setAsking(null);
  return (
    <>
      {job.status === "running" && may("pause_job") && (
        <button type="button" onClick={() => pause.mutate(undefined)} disabled={pause.isPending}>
          {w.pause}
        </button>
      )}
      {job.status === "paused" && may("resume_job") && (
        <button type="button" class="main" onClick={() => resume.mutate(undefined)} disabled={resume.isPending}>
          {w.resume}
        </button>
      )}
      {!isOver && may("change_job") && (
        <button type="button" onClick={() => setAsking("rate")}>
          {w.setRate} {job.policy.rate ? w.perSecond(number(job.policy.rate as number, 2)) : ""} ▾
        </button>
      )}
      {!isOver && may("cancel_job") && (
        <button type="button" onClick={() => setAsking("cancel")}>
          {w.cancel}
        </button>
      )}
      {has("/data/:job_id") && job.counts.success > 0 && (
        <a class="button" href={`/data/${job.id}`}>
          {w.openData}
        </a>
      )}
      {isOver && may("delete_job") && (
        <button type="button" onClick={() => setAsking("delete")}>
          {w.delete}
        </button>
      )}
      <Problem error={pause.error ?? resume.error} />
      {asking === "rate" && <Rate job={job} close={close} />}
      {asking === "cancel" && (
        <Confirm
          title={w.cancelAsk}
          verb={w.cancel}
          close={close}
          act={() => api.call("cancel_job", { path, query: { mode: "kill" } }).then(() => cache.invalidateQueries())}
        >
          {w.cancelAbout(number(job.counts.in_progress + job.counts.queued), number(job.counts.pending))}
        </Confirm>
      )}
      {asking === "delete" && (
        <Confirm
          title={w.deleteAsk}
          verb={w.delete}
          close={close}
          act={() =>
            api.call("delete_job", { path }).then(() => {
              void cache.invalidateQueries({ queryKey: ["list_jobs"] });
              go("/jobs");
            })
          }
        >
          {w.deleteAbout(number(job.counts.total), number(job.exports.length))}
        </Confirm>
      )}
    </>
  );
}

function Rate({ job, close }: { job: JobDocument; close: () => void }) {
  const w = useWords(own);
  const [rate, setRate] = useState(job.policy.rate ? String(job.policy.rate) : "");
  const [most, setMost] = useState(job.policy.concurrency ? String(job.policy.concurrency) : "");
  const budget = (job.policy.budget ?? {}) as { megabytes?: number | null };
  const [megabytes, setMegabytes] = useState(budget.megabytes ? String(budget.megabytes) : "");
  const wish = (text: string) => (text ? Number(text) : null);
  const save = useAction(
    () =>
      api.call("change_job", {
        path: { job_id: job.id },
        body: {
          policy: {
            rate: wish(rate),
            concurrency: wish(most),
            ...(wish(megabytes) === (budget.megabytes ?? null)
              ? {}
              : { budget: { ...budget, megabytes: wish(megabytes) } }),
          },
        },
      }),
    {
      touches: TOUCHED,
      done: () => {
        note(w.changed);
        close();
      },
    },
  );
  return (
    <Dialog title={w.rateTitle} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate(undefined);
        }}
      >
        <Amount label={w.rateLabel} hint={w.rateHint} value={rate} set={setRate} />
        <Amount label={w.concurrency} value={most} set={setMost} whole />
        <Amount label={w.budgetMost} hint={w.budgetHint} value={megabytes} set={setMegabytes} />
        <Problem error={save.error} />
        <footer>
          <button type="submit" class="main" disabled={save.isPending}>
            {w.change}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function Amount({
  label,
  hint,
  value,
  set,
  whole,
}: {
  label: string;
  hint?: string;
  value: string;
  set: (text: string) => void;
  whole?: boolean;
}) {
  const [least, step] = whole ? ["1", "1"] : ["0.001", "any"];
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <input
          id={id}
          type="number"
          min={least}
          step={step}
          value={value}
          onInput={(event) => set(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
