/** One job: how far it is, how fast, why items fail, and everything that can be done about it. */

import { useEffect, useState } from "preact/hooks";
import { api, cache, type Name, useAction, useCall } from "#/api/client";
import { type LiveEvent, useLive } from "#/api/live";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Bar, Copy, Facts, Field, Head, Problem, Skeleton, Status, Tabs, Time } from "#/kit/base";
import { Chart } from "#/kit/chart";
import { Confirm, Dialog, note } from "#/kit/dialog";
import { has } from "#/routes";
import { bytes, clock, lasts, number, percent, useWords } from "#/words";
import type { JobDocument, RedriveCall } from "#client";
import { Progress, titleOf } from ".";
import { Exports } from "./exports";
import { Items } from "./items";
import { own } from "./words";

const MEGABYTE = 2 ** 20;
const USAGE_MS = 5000;
const FINAL = ["completed", "cancelled", "failed"];
const TOUCHED: Name[] = ["get_job", "list_jobs", "list_items", "list_errors"];

interface Told {
  at: string;
  kind: string;
  data: Record<string, unknown>;
}

export default function Job({ job_id }: { job_id: string }) {
  const w = useWords(own);
  const { query, change } = useAddress();
  const path = { job_id };
  const found = useCall("get_job", { path });
  const job = found.data;
  const isOver = job ? FINAL.includes(job.status) && !job.files_pending : false;
  useEffect(() => {
    if (isOver) return;
    // the stream tells the counts; what was used and what the site answered is asked for. The query's own interval
    // begins anew with every event, and would never end
    const again = () => void cache.invalidateQueries({ queryKey: ["get_job", { path }] });
    const timer = setInterval(again, USAGE_MS);
    return () => clearInterval(timer);
  }, [job_id, isOver]);
  const [told, setTold] = useState<Told[]>([]);
  const flow = useLive(job ? `/api/jobs/${job_id}/stream` : null, (events: LiveEvent[]) => {
    const last = events.findLast((event) => event.name === "progress");
    if (last)
      cache.setQueryData(
        ["get_job", { path }],
        (now: JobDocument | undefined) =>
          now && { ...now, ...(last.data as Partial<JobDocument>), breaker: now.breaker },
      );
    if (events.some((event) => event.name !== "progress"))
      void cache.invalidateQueries({ queryKey: ["get_job", { path }] });
    const said = events.filter((event) => !["progress", "item", "items_left_out", "end"].includes(event.name));
    if (said.length)
      setTold((now) =>
        [
          ...said
            .map((event) => ({
              at: (event.data as Told).at,
              kind: event.name,
              data: event.data as Record<string, unknown>,
            }))
            .reverse(),
          ...now,
        ].slice(0, 500),
      );
  });
  if (found.error) return <Problem error={found.error} again={() => found.refetch()} />;
  if (!job) return <Skeleton rows={8} />;
  return (
    <>
      <Head
        title={titleOf(job)}
        about={
          <>
            <Status of={job.status} /> {percent(ended(job.counts))} · <Time at={job.started_at ?? job.created_at} /> ·{" "}
            {job.scraper}
            {job.version && ` · ${w.pinned(job.version)}`}
            {job.owner && ` · ${w.by(job.owner)}`}
            {job.schedule_id && (
              <>
                {" · "}
                <a href={`/schedules/${job.schedule_id}`}>{w.schedule}</a>
              </>
            )}{" "}
            <code>{job.id}</code>
            {flow === "broken" && <span class="status warn"> ! {w.broken}</span>}
          </>
        }
      >
        <Acts job={job} />
      </Head>
      {job.error && <Problem error={new Error(job.error.message)} />}
      {job.pause_reason && <p class="lost">{job.pause_reason}</p>}
      {job.warnings.map((text) => (
        <p key={text} class="muted">
          ! {text}
        </p>
      ))}
      <div class="grid job-grid">
        <Counts job={job} />
        <Pace job={job} isOver={isOver} />
        <Why job={job} />
      </div>
      <Tabs
        label={titleOf(job)}
        chosen={query.tab}
        choose={(tab) => change({ tab, status: null, reason: null, http: null, site: null, item: null, q: null })}
        tabs={[
          { id: "items", name: `${w.tabItems} ${number(job.counts.total)}`, body: () => <Items job={job} /> },
          { id: "exports", name: w.tabExports, body: () => <Exports job={job} /> },
          { id: "log", name: w.tabLog, body: () => <Events told={told} /> },
          {
            id: "policy",
            name: w.tabPolicy,
            body: () => (
              <div class="grid">
                <section class="panel">
                  <h2>{w.tabPolicy}</h2>
                  <p class="muted">{w.policyAbout}</p>
                  <pre>{JSON.stringify(job.policy, null, 2)}</pre>
                </section>
                <section class="panel">
                  <h2>{w.source}</h2>
                  <pre>{JSON.stringify(job.source, null, 2)}</pre>
                  <Copy text={JSON.stringify(job.source)} />
                </section>
              </div>
            ),
          },
        ]}
      />
    </>
  );
}

function Acts({ job }: { job: JobDocument }) {
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
        <Field label={w.rateLabel} hint={w.rateHint}>
          {(id) => (
            <input
              id={id}
              type="number"
              min="0.001"
              step="any"
              value={rate}
              onInput={(event) => setRate(event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label={w.concurrency}>
          {(id) => (
            <input
              id={id}
              type="number"
              min="1"
              step="1"
              value={most}
              onInput={(event) => setMost(event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label={w.budgetMost} hint={w.budgetHint}>
          {(id) => (
            <input
              id={id}
              type="number"
              min="0.001"
              step="any"
              value={megabytes}
              onInput={(event) => setMegabytes(event.currentTarget.value)}
            />
          )}
        </Field>
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

function Counts({ job }: { job: JobDocument }) {
  const w = useWords(own);
  const { counts } = job;
  const to = (status: string, text: string) => <a href={`/jobs/${job.id}?tab=items&status=${status}`}>{text}</a>;
  const ends =
    job.eta_seconds !== null && job.status === "running"
      ? new Date(Date.now() + job.eta_seconds * 1000).toISOString()
      : null;
  return (
    <section class="panel">
      <h2>
        {w.itemsTotal(number(counts.total))}
        {job.reading && <span class="muted"> · {w.reading}</span>}
      </h2>
      <div class="tall">
        <Progress counts={counts} />
      </div>
      <p>
        {to("success", `${number(counts.success)} ${w.ok}`)} · {to("error", `${number(counts.error)} ${w.failed}`)} ·{" "}
        {to("in_progress", `${number(counts.in_progress + counts.queued)} ${w.running}`)}
        {" · "}
        {to("pending", `${number(counts.pending)} ${w.pending}`)}
        {counts.cancelled > 0 && <> · {to("cancelled", `${number(counts.cancelled)} ${w.cancelled}`)}</>}
      </p>
      <Facts
        facts={[
          ...(ends ? ([[w.eta, `${lasts(job.eta_seconds)} · ${w.doneAbout(clock(ends))}`]] as [string, string][]) : []),
          [w.usage, `${bytes(job.usage.bytes_received)} · ${number(job.usage.requests)} ${w.requests}`],
          ...spent(job).map(
            (one) =>
              [
                `${w.budget}: ${w[`budget_${one.name}`]}`,
                <span key={one.name} class="gauge">
                  {number(one.used, one.used < 10 ? 1 : 0)} / {number(one.most)} {one.unit} (
                  {percent(one.used / one.most)})
                  <Bar
                    label={w.budget}
                    parts={[
                      {
                        tone: one.used < 0.8 * one.most ? "good" : one.used < one.most ? "warn" : "bad",
                        value: Math.min(one.used, one.most),
                        name: "",
                      },
                      { tone: "off", value: Math.max(0, one.most - one.used), name: "" },
                    ]}
                  />
                </span>,
              ] as [string, preact.JSX.Element],
          ),
          [
            w.breaker,
            <Status key="breaker" of={job.breaker.state}>
              {job.breaker.reason ? w.breakerOpen(job.breaker.reason) : undefined}
            </Status>,
          ],
          ...(Object.keys(job.http_statuses).length
            ? ([
                [
                  w.httpStatuses,
                  <span key="http">
                    {Object.entries(job.http_statuses).map(([status, count]) => (
                      <a key={status} href={`/jobs/${job.id}?tab=items&http=${status}`}>
                        {status} × {number(count)}{" "}
                      </a>
                    ))}
                  </span>,
                ],
              ] as [string, preact.JSX.Element][])
            : []),
        ]}
      />
    </section>
  );
}

/** Each budget of a job that has a limit. */
function spent(job: JobDocument) {
  const most = (job.policy.budget ?? {}) as Record<string, number | null | undefined>;
  const paid = ["residential", "unlocker"].reduce((sum, name) => sum + (job.usage.bytes_by_class[name] ?? 0), 0);
  const all = [
    { name: "requests", used: job.usage.requests, unit: "" },
    { name: "megabytes", used: job.usage.bytes_received / MEGABYTE, unit: "MB" },
    { name: "residential_megabytes", used: paid / MEGABYTE, unit: "MB" },
  ] as const;
  return all.flatMap((one) => (most[one.name] ? [{ ...one, most: most[one.name]! }] : []));
}

/** The share that has ended, by the same counts as the bar. */
const ended = ({ total, success, error, cancelled }: JobDocument["counts"]) =>
  total ? (success + error + cancelled) / total : 0;

function Pace({ job, isOver }: { job: JobDocument; isOver: boolean }) {
  const w = useWords(own);
  const found = useCall(
    "get_metrics",
    { path: { job_id: job.id }, query: { name: ["items", "items_per_second"] } },
    { every: isOver ? 0 : 5 },
  );
  const series = found.data?.series ?? [];
  const rate = series.find((one) => one.name === "items_per_second");
  const at = (rate?.points ?? []).map((point) => new Date(point.timestamp).getTime() / 1000);
  const states = (["success", "error", "in_progress"] as const).map((state) =>
    series.find((one) => one.name === "items" && one.labels.state === state),
  );
  const [names, tones] = [
    [w.ok, w.failed, w.running],
    ["--good", "--bad", "--busy"],
  ];
  const when = (states[0]?.points ?? []).map((point) => new Date(point.timestamp).getTime() / 1000);
  return (
    <section class="panel">
      <h2>
        {w.perSecondTitle}{" "}
        <span class="muted">
          {job.status === "running" && job.items_per_second !== null
            ? w.perSecond(number(job.items_per_second, 1))
            : ""}
        </span>
      </h2>
      <Chart
        label={w.perSecondTitle}
        height={104}
        at={at}
        series={[
          { name: w.perSecondTitle, tone: "--accent", values: (rate?.points ?? []).map((point) => point.value) },
        ]}
      />
      <h3>{w.stateTitle}</h3>
      <Chart
        label={w.stateTitle}
        height={104}
        stacked
        at={when}
        series={states.map((one, index) => ({
          name: names![index]!,
          tone: tones![index]!,
          values: (one?.points ?? []).map((point) => point.value),
        }))}
      />
    </section>
  );
}

function Why({ job }: { job: JobDocument }) {
  const w = useWords(own);
  const found = useCall(
    "list_errors",
    { path: { job_id: job.id } },
    { every: FINAL.includes(job.status) ? 0 : 5, enabled: job.counts.error > 0 },
  );
  const [asking, setAsking] = useState<{ call: RedriveCall; count: number; why: string } | null>(null);
  const groups = job.counts.error > 0 ? (found.data?.groups ?? []) : [];
  const redrive = async () => {
    const done = await api.call("redrive_job", { path: { job_id: job.id }, body: asking!.call });
    note(w.redriven(number(done.items)));
    await cache.invalidateQueries();
  };
  return (
    <section class="panel">
      <h2>{w.why}</h2>
      {groups.length === 0 &&
        (job.counts.error > 0 ? <Problem error={found.error} /> : <p class="muted">{w.whyNone}</p>)}
      <ul class="why">
        {groups.slice(0, 6).map((group) => {
          const why = [group.http_status, group.exit_reason, group.site].filter(Boolean).join(" ");
          const query = new URLSearchParams({ tab: "items", status: "error", reason: group.exit_reason });
          if (group.http_status) query.set("http", String(group.http_status));
          if (group.site) query.set("site", group.site);
          const call: RedriveCall = {
            statuses: ["error"],
            exit_reasons: [group.exit_reason],
            http_statuses: group.http_status ? [group.http_status] : undefined,
            sites: group.site ? [group.site] : undefined,
          };
          return (
            <li key={why}>
              <a href={`/jobs/${job.id}?${query}`} title={group.example.error?.message}>
                {why}
              </a>
              <span class="num">{number(group.count)}</span>
              {may("redrive_job") && (
                <button
                  type="button"
                  class="small"
                  aria-label={w.redriveGroup(number(group.count), why)}
                  onClick={() => setAsking({ call, count: group.count, why })}
                >
                  {w.redrive}
                </button>
              )}
              <small class="muted">{group.example.error?.message}</small>
            </li>
          );
        })}
      </ul>
      {groups.length > 1 && may("redrive_job") && (
        <button
          type="button"
          class="small"
          onClick={() => setAsking({ call: { statuses: ["error"] }, count: job.counts.error, why: w.failed })}
        >
          {w.redriveAll}
        </button>
      )}
      {asking && (
        <Confirm title={w.redriveAsk} verb={w.redrive} close={() => setAsking(null)} act={redrive}>
          {w.redriveAbout(number(asking.count), asking.why)}
        </Confirm>
      )}
    </section>
  );
}

function Events({ told }: { told: Told[] }) {
  const w = useWords(own);
  if (!told.length) return <p class="muted">{w.eventsNone}</p>;
  return (
    <div class="logs" tabIndex={0} role="log" aria-label={w.tabLog}>
      {told.map((one) => {
        const { at: _, ...rest } = one.data;
        return (
          <pre key={one.at + one.kind} class={one.kind.includes("fail") ? "error" : ""}>
            <Time at={one.at} />
            <span>{one.kind}</span>
            <span>{JSON.stringify(rest)}</span>
          </pre>
        );
      })}
    </div>
  );
}
