/** System: the health of each part, what waits, and how much was done. */

import { useCall } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Chips, Head, Problem, Skeleton, Status } from "#/kit/base";
import { Chart } from "#/kit/chart";
import { has } from "#/routes";
import { lasts, number, took, useWords } from "#/words";
import { Slots } from "../workers/slots";
import { spread } from "./spread";
import { own } from "./words";

export default function System() {
  const w = useWords(own);
  const names = w as unknown as Record<string, string>;
  const health = useCall("health", {}, { every: 5 });
  const stats = useCall("get_stats", {}, { every: 2 });
  const lately = useCall("get_history", { query: { hours: 0.05 } }, { every: 30 }).data?.samples.at(-1)?.lanes ?? {};
  const since = new Date(Date.now() - 29 * 86_400_000).toISOString().slice(0, 10);
  const usage = useCall("get_usage", { query: { by: ["day"], since } }, { every: 60, enabled: may("get_usage") });
  const firing = useCall("list_alerts", { query: { state: "firing" } }, { every: 10, enabled: may("list_alerts") });
  const wrong = firing.data?.alerts ?? [];
  if (health.error) return <Problem error={health.error} again={() => health.refetch()} />;
  if (!health.data || !stats.data) return <Skeleton />;
  const { jobs, runs, queue, workers } = stats.data;
  const sum = (all: Record<string, number>) => Object.values(all).reduce((total, one) => total + one, 0);
  return (
    <>
      <Head
        title={w.title}
        about={
          <>
            <Status of={health.data.status} /> · {w.version(health.data.version)}
            {wrong.length > 0 && has("/alerts") && (
              <>
                {" · "}
                <a class="status bad" href="/alerts">
                  ! {w.alertsNow(number(wrong.length))}
                </a>
              </>
            )}
          </>
        }
      >
        <a class="button" href="/docs">
          {w.reference}
        </a>
        <a class="button" href="/metrics">
          {w.metrics}
        </a>
      </Head>
      <div class="grid">
        <section class="panel">
          <h2>{w.parts}</h2>
          <dl class="facts">
            {Object.entries(health.data.dependencies).map(([name, one]) => (
              <div key={name}>
                <dt>{names[`${name}_`] ?? name}</dt>
                <dd>
                  <Status of={one.state} /> {one.latency_ms === null ? "" : took(one.latency_ms)} {one.detail}
                </dd>
              </div>
            ))}
          </dl>
        </section>
        <section class="panel">
          <h2>{w.queue}</h2>
          {queue.length === 0 && <p class="muted">{w.queueEmpty}</p>}
          {queue.map((lane) => (
            <p key={lane.lane + lane.priority}>
              {lane.lane} · {lane.priority}: {w.waiting(number(lane.waiting))}
              {lately[lane.lane] ? ` · ${w.age} ${lasts(lately[lane.lane])}` : ""}
            </p>
          ))}
          <dl class="facts">
            <div>
              <dt>{w.runs}</dt>
              <dd>
                <a href="/runs?status=running">{number(sum(runs))}</a>
              </dd>
            </div>
            <div>
              <dt>{w.jobs}</dt>
              <dd>
                <a href="/jobs?state=active">{number(sum(jobs.by_status))}</a>
              </dd>
            </div>
            <div>
              <dt>{w.items}</dt>
              <dd>{number(jobs.items.in_progress + jobs.items.queued)}</dd>
            </div>
          </dl>
        </section>
        <section class="panel">
          <h2>{has("/workers") ? <a href="/workers">{w.workers}</a> : w.workers}</h2>
          {workers.count === 0 ? (
            <p class="bad">{w.noWorkers}</p>
          ) : (
            <p>{w.slots(number(workers.busy), number(workers.slots))}</p>
          )}
          <Slots busy={workers.busy} all={workers.slots} />
        </section>
      </div>
      <History />
      <div class="grid">
        {usage.data && (
          <section class="panel">
            <h2>
              {w.done} <span class="muted">{w.days}</span>
            </h2>
            <Days rows={usage.data.rows.map((row) => ({ day: row.day ?? "", runs: row.runs, fetches: row.fetches }))} />
          </section>
        )}
      </div>
    </>
  );
}

/** The last hour or day, minute by minute, as the server has written it down. */
function History() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const span = query.span === "day" ? "day" : "hour";
  const found = useCall("get_history", { query: { hours: span === "day" ? 24 : 1 } }, { every: 30 });
  const samples = spread(found.data?.samples ?? []);
  const at = samples.map((each) => Date.parse(each.at) / 1000);
  const longest = (lanes: Record<string, number>) => Math.max(0, ...Object.values(lanes));
  return (
    <section class="stack history">
      <div class="line">
        <h2>{w.history}</h2>
        <Chips
          label={w.span}
          value={span}
          options={[
            ["hour", w.hour],
            ["day", w.day],
          ]}
          choose={(each) => change({ span: each })}
        />
      </div>
      <Problem error={found.error} />
      {samples.length < 2 ? (
        <p class="muted">{w.noHistory}</p>
      ) : (
        <div class="grid">
          <section class="panel">
            <h2>{w.workers}</h2>
            <Chart
              label={w.workers}
              at={at}
              shown={(value) => number(value)}
              series={[
                { name: w.busySlots, tone: "--busy", values: samples.map((each) => each.busy) },
                { name: w.allSlots, tone: "--off", values: samples.map((each) => each.slots) },
              ]}
            />
          </section>
          <section class="panel">
            <h2>{w.endedAMinute}</h2>
            <Chart
              label={w.endedAMinute}
              at={at}
              shown={(value) => number(value)}
              series={[{ name: w.runsDone, tone: "--good", values: samples.map((each) => each.ended) }]}
            />
          </section>
          <section class="panel">
            <h2>{w.oldest}</h2>
            <Chart
              label={w.oldest}
              at={at}
              shown={(value) => lasts(value)}
              series={[
                {
                  name: w.age,
                  tone: "--warn",
                  values: samples.map((each) => (each.busy === null ? null : longest(each.lanes))),
                },
              ]}
            />
          </section>
          <section class="panel">
            <h2>{w.waitingTitle}</h2>
            <Chart
              label={w.waitingItems}
              at={at}
              shown={(value) => number(value)}
              series={[{ name: w.waitingItems, tone: "--warn", values: samples.map((each) => each.waiting) }]}
            />
          </section>
        </div>
      )}
    </section>
  );
}

/** A bar for each day. */
function Days({ rows }: { rows: { day: string; runs: number; fetches: number }[] }) {
  const w = useWords(own);
  const most = Math.max(1, ...rows.map((row) => row.runs));
  return (
    <ul class="days">
      {rows.map((row) => (
        <li key={row.day}>
          <span>{row.day}</span>
          <span class="lane">
            <span style={{ width: `${(100 * row.runs) / most}%` }} />
          </span>
          <span class="num">
            {number(row.runs)} {w.runsDone} · {number(row.fetches)} {w.fetches}
          </span>
        </li>
      ))}
    </ul>
  );
}
