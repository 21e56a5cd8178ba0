/** What a job's view begins with: how far it is, how fast, and why items fail. */

import { useState } from "preact/hooks";
import { api, cache, useCall } from "#/api/client";
import { may } from "#/api/session";
import { Bar, Facts, Problem, Status } from "#/kit/base";
import { Chart } from "#/kit/chart";
import { Confirm, note } from "#/kit/dialog";
import { bytes, clock, lasts, number, percent, useWords } from "#/words";
import type { JobDocument, RedriveCall } from "#client";
import { FINAL, Progress } from ".";
import { own } from "./words";

const MEGABYTE = 2 ** 20;

export function Counts({ job }: { job: JobDocument }) {
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
                    {Object.entries(job.http_statuses).map(([status, count], at) => (
                      <span key={status}>
                        {at > 0 && " · "}
                        <a href={`/jobs/${job.id}?tab=items&http=${status}`}>
                          {status} × {number(count)}
                        </a>
                      </span>
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
export const ended = ({ total, success, error, cancelled }: JobDocument["counts"]) =>
  total ? (success + error + cancelled) / total : 0;

export function Pace({ job, isOver }: { job: JobDocument; isOver: boolean }) {
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

export function Why({ job }: { job: JobDocument }) {
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
