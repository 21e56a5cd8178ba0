/** One scraper: its versions with the channels that point to them, roll back, schemas, and its last runs. */

import { useState } from "preact/hooks";
import { api, cache, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Copy, Empty, Facts, Head, Problem, Said, Skeleton, Status, type Tab, Tabs, Time } from "#/kit/base";
import { Confirm, note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { has } from "#/routes";
import { number, percent, took, useWords } from "#/words";
import type { Summary, VersionDocument } from "#client";
import { Drift } from "./drift";
import { Source } from "./source";
import { byVersion } from "./success";
import { own } from "./words";

const STABLE = "stable";

export default function Scraper({ site, task }: { site: string; task: string }) {
  const w = useWords(own);
  const path = { site, task };
  const id = `${site}/${task}`;
  const found = useCall("get_scraper", { path, query: {} });
  const channels = useCall("get_channels", { path }, { enabled: found.data?.builtin === false });
  const runs = useCall("list_runs", { query: { scraper: id, limit: 200 } }, { every: 5 });
  const jobs = useCall("list_jobs", { query: { scraper: id, limit: 100 } }, { every: 30 });
  const drift = useCall(
    "get_drift",
    { path },
    { every: 10, enabled: found.data?.builtin === false && may("get_drift") },
  );
  const { query, change } = useAddress();
  const [asking, setAsking] = useState<VersionDocument | null>(null);
  const one = found.data;
  const again = () =>
    Promise.all(
      ["get_scraper", "get_channels", "list_scrapers"].map((name) => cache.invalidateQueries({ queryKey: [name] })),
    );
  /** Point a channel to a version; to where the repository points it, if none is given. */
  const point = (channel: string, version?: string) =>
    version
      ? api.call("move_channel", { path: { ...path, channel }, body: { version } })
      : api.call("unmove_channel", { path: { ...path, channel } });
  const move = useAction(async ({ channel, version, said }: { channel: string; version?: string; said: string }) => {
    const before = channels.data?.moved[channel];
    await point(channel, version);
    await again();
    note(said, () => void point(channel, before).then(again));
  });
  if (found.error) return <Problem error={found.error} />;
  if (!one) return <Skeleton />;
  const releases = one.versions.filter((each) => each.valid && !each.prerelease);
  const stable = channels.data?.channels[STABLE] ?? one.all_channels[STABLE] ?? releases[0]?.version ?? one.version;
  const last = runs.data?.runs.filter((run) => run.exit_reason !== null) ?? [];
  const good = last.filter((run) => run.status === "succeeded").length;
  const did = byVersion(runs.data?.runs ?? [], jobs.data?.jobs ?? []);
  const versions: Column<VersionDocument>[] = [
    { id: "version", head: w.version, width: "minmax(0, 1fr)", cell: (each) => each.version },
    {
      id: "channels",
      head: w.pinned,
      width: "minmax(0, 1fr)",
      cell: (each) =>
        [...new Set([...each.channels, ...(each.version === stable ? [STABLE] : [])])].map((name) => (
          <span key={name} class="tag">
            {name}
          </span>
        )),
    },
    {
      id: "state",
      head: w.state,
      width: "110px",
      cell: (each) => <Status of={each.valid ? "ok" : "failed"}>{each.valid ? w.valid : w.invalid}</Status>,
    },
    {
      id: "success",
      head: w.succeeded,
      width: "150px",
      end: true,
      cell: (each) => {
        const found = did.get(each.version);
        return found?.ended ? w.successOf(percent(found.good / found.ended), number(found.ended)) : "–";
      },
    },
    {
      id: "took",
      head: w.took,
      width: "80px",
      end: true,
      line: 0,
      cell: (each) => took(did.get(each.version)?.ms),
    },
    {
      id: "move",
      head: "",
      width: "110px",
      end: true,
      cell: (each) =>
        !one.builtin && each.valid && each.version !== stable && may("move_channel") ? (
          <button
            type="button"
            class="small"
            aria-label={w.moveTo(STABLE, each.version)}
            onClick={() => setAsking(each)}
          >
            → {STABLE}
          </button>
        ) : (
          ""
        ),
    },
  ];
  const runColumns: Column<Summary>[] = [
    { id: "when", head: w.when, width: "minmax(0, 1fr)", cell: (run) => <Time at={run.created_at} /> },
    { id: "state", head: w.state, width: "110px", cell: (run) => <Status of={run.status} /> },
    { id: "version", head: w.version, width: "90px", cell: (run) => run.version ?? "" },
    {
      id: "reason",
      head: w.reason,
      width: "minmax(0, 1fr)",
      cell: (run) => (run.exit_reason === "succeeded" ? "" : (run.exit_reason ?? "")),
    },
    { id: "took", head: w.took, width: "80px", end: true, cell: (run) => took(run.usage?.wall_ms) },
  ];
  const overview = () => (
    <div class="halves">
      <section class="stack">
        <h2>{w.versions}</h2>
        <Table label={w.versions} columns={versions} rows={rowsOf(one.versions)} id={(each) => each.version} />
        {!one.builtin && (
          <p class="muted">
            <Said text={w.channelsAbout} />
          </p>
        )}
        {Object.entries(channels.data?.moved ?? {}).map(([channel, version]) => (
          <p key={channel}>
            <span class="tag">{channel}</span> → {version}{" "}
            {may("unmove_channel") && (
              <button
                type="button"
                class="small"
                onClick={() => move.mutate({ channel, said: w.tookBack(channel) })}
                disabled={move.isPending}
              >
                {w.takeBack}
              </button>
            )}
          </p>
        ))}
        <h2>
          {w.lastRuns}{" "}
          {last.length > 0 && <span class="muted">{w.success(percent(good / last.length), number(last.length))}</span>}
        </h2>
        {last.length > 0 && <Outcomes runs={last} good={good} />}
        {runs.data?.runs.length ? (
          <Table
            label={w.lastRuns}
            columns={runColumns}
            rows={rowsOf(runs.data.runs)}
            id={(run) => run.id}
            href={(run) => `/runs/${run.id}`}
            most={8}
          />
        ) : (
          <Empty title={w.noRuns}>{w.noRunsAbout}</Empty>
        )}
      </section>
      <section class="stack">
        <div class="panel">
          <h2>{w.details}</h2>
          <Facts
            facts={[
              [w.version, one.version],
              [w.source_, one.builtin ? w.builtin : one.source],
              [w.place, one.place || "–"],
              [w.entry, one.entry ?? "–"],
              [w.hosts, one.allowed_hosts?.length ? one.allowed_hosts.join(", ") : w.anyHost],
              [w.requires, one.requirements?.length ? one.requirements.join(", ") : "–"],
              [w.environment, one.environment?.problem || one.environment?.status || "–"],
              [w.digest, <code key="digest">{one.digest.slice(0, 16) || "–"}</code>],
            ]}
          />
        </div>
        {one.limits && (
          <details class="panel">
            <summary>{w.limits}</summary>
            <Facts facts={Object.entries(one.limits).map(([name, value]) => [name, number(value)])} />
          </details>
        )}
      </section>
    </div>
  );
  const schema = (title: string, given: unknown) => (
    <section class="panel">
      <h2>{title}</h2>
      <Copy text={JSON.stringify(given, null, 2)} />
      <pre>{JSON.stringify(given, null, 2)}</pre>
    </section>
  );
  const readable = one.versions.filter((each) => each.valid).map((each) => each.version);
  const tabs: Tab[] = [{ id: "versions", name: w.versions, body: overview }];
  if (!one.builtin && may("get_source") && readable.length)
    tabs.push({
      id: "source",
      name: w.source,
      body: () => <Source site={site} task={task} versions={readable} />,
    });
  if (!one.builtin && may("get_drift"))
    tabs.push({
      id: "drift",
      name: drift.data?.drifted ? `${w.drift} ! ${number(drift.data.drifted)}` : w.drift,
      body: () => <Drift site={site} task={task} />,
    });
  tabs.push({
    id: "schema",
    name: w.schemas,
    body: () => (
      <div class="grid">
        {schema(w.schema, one.input_schema)}
        {one.output_schema && schema(w.output, one.output_schema)}
      </div>
    ),
  });
  return (
    <>
      <Head title={id} about={one.description || one.name}>
        {may("scrape") && (
          <a class="button main" href={`/try?scraper=${encodeURIComponent(id)}`}>
            {w.try}
          </a>
        )}
        {has("/jobs/new") && (
          <a class="button" href={`/jobs/new?kind=paste&scraper=${encodeURIComponent(id)}`}>
            {w.many}
          </a>
        )}
      </Head>
      {one.problem && <Problem error={new Error(one.problem)} />}
      <Problem error={asking ? null : move.error} />
      <Tabs label={id} tabs={tabs} chosen={query.tab} choose={(tab) => change({ tab })} />
      {asking && (
        <Confirm
          title={w.moveAsk(STABLE)}
          verb={w.moveTo(STABLE, asking.version)}
          close={() => setAsking(null)}
          act={() =>
            move.mutateAsync({ channel: STABLE, version: asking.version, said: w.moved(STABLE, asking.version) })
          }
        >
          {w.moveAbout(STABLE, stable, asking.version)}
        </Confirm>
      )}
    </>
  );
}

const SQUARES = 100;

/** How the last runs ended, as little squares. */
function Outcomes({ runs, good }: { runs: Summary[]; good: number }) {
  const w = useWords(own);
  const words = w.outcomes(number(good), number(runs.length));
  return (
    <span class="squares" role="img" aria-label={words} title={words}>
      {runs.slice(0, SQUARES).map((run) => (
        <span key={run.id} class={{ succeeded: "good", failed: "bad" }[run.status as string] ?? ""} />
      ))}
    </span>
  );
}
