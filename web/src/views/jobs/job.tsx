/** One job: how far it is, how fast, why items fail, and everything that can be done about it. */

import { useEffect, useState } from "preact/hooks";
import { cache, useCall } from "#/api/client";
import { type LiveEvent, useLive } from "#/api/live";
import { useAddress } from "#/kit/address";
import { Copy, Head, Problem, Skeleton, Status, Tabs, Time } from "#/kit/base";
import { number, percent, useWords } from "#/words";
import type { WholeJobDocument } from "#client";
import { FINAL, titleOf } from ".";
import { Acts } from "./acts";
import { Exports } from "./exports";
import { Items } from "./items";
import { Counts, ended, Pace, Why } from "./panels";
import { Sinks } from "./sinks";
import { own } from "./words";

const USAGE_MS = 5000;

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
  const isDelivered = isOver && !job?.sink_deliveries.some((one) => one.state === "active");
  useEffect(() => {
    if (isDelivered) return;
    // the stream tells the counts; what was used and what the site answered is asked for. The query's own interval
    // begins anew with every event, and would never end
    const again = () => void cache.invalidateQueries({ queryKey: ["get_job", { path }] });
    const timer = setInterval(again, USAGE_MS);
    return () => clearInterval(timer);
  }, [job_id, isDelivered]);
  const [told, setTold] = useState<Told[]>([]);
  const flow = useLive(job ? `/api/jobs/${job_id}/stream` : null, (events: LiveEvent[]) => {
    const last = events.findLast((event) => event.name === "progress");
    if (last)
      cache.setQueryData(
        ["get_job", { path }],
        (now: WholeJobDocument | undefined) =>
          now && { ...now, ...(last.data as Partial<WholeJobDocument>), breaker: now.breaker },
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
          ...(job.sinks.length
            ? [{ id: "sinks", name: `${w.tabSinks} ${number(job.sinks.length)}`, body: () => <Sinks job={job} /> }]
            : []),
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
