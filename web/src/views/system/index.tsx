/** System: the health of each part, what waits, and how much was done. */

import { useEffect, useRef, useState } from "preact/hooks";
import { useCall } from "#/api/client";
import { may } from "#/api/session";
import { Head, Problem, Skeleton, Status } from "#/kit/base";
import { Chart } from "#/kit/chart";
import { has } from "#/routes";
import { number, took, useWords } from "#/words";
import { Slots } from "../workers/slots";
import { own } from "./words";

const MOST = 900;

export default function System() {
  const w = useWords(own);
  const names = w as unknown as Record<string, string>;
  const health = useCall("health", {}, { every: 5 });
  const stats = useCall("get_stats", {}, { every: 2 });
  const since = new Date(Date.now() - 29 * 86_400_000).toISOString().slice(0, 10);
  const usage = useCall("get_usage", { query: { by: ["day"], since } }, { every: 60, enabled: may("get_usage") });
  const kept = useRef<[number, number, number][]>([]);
  const [, beat] = useState(0);
  useEffect(() => {
    if (!stats.data) return;
    const waiting = stats.data.queue.reduce((sum, lane) => sum + lane.waiting, 0);
    kept.current = [
      ...kept.current,
      [stats.dataUpdatedAt / 1000, stats.data.workers.busy, waiting] as [number, number, number],
    ].slice(-MOST);
    beat((n) => n + 1);
  }, [stats.dataUpdatedAt, stats.data]);
  if (health.error) return <Problem error={health.error} again={() => health.refetch()} />;
  if (!health.data || !stats.data) return <Skeleton />;
  const { jobs, runs, queue, workers } = stats.data;
  const sum = (all: Record<string, number>) => Object.values(all).reduce((total, one) => total + one, 0);
  const at = kept.current.map(([when]) => when);
  return (
    <>
      <Head
        title={w.title}
        about={
          <>
            <Status of={health.data.status} /> · {w.version(health.data.version)}
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
      <div class="grid">
        <section class="panel">
          <h2>{w.since}</h2>
          <Chart
            label={w.since}
            at={at}
            series={[
              { name: w.busySlots, tone: "--busy", values: kept.current.map(([, busy]) => busy) },
              { name: w.waitingItems, tone: "--warn", values: kept.current.map(([, , waiting]) => waiting) },
            ]}
          />
        </section>
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
