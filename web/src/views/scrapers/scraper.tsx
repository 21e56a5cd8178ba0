/** One scraper: its versions with the channels that point to them, roll back, schemas, and its last runs. */

import { useState } from "preact/hooks";
import { api, cache, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { Empty, Facts, Head, Problem, Said, Skeleton, Status, Time } from "#/kit/base";
import { Confirm, note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { has } from "#/routes";
import { number, percent, took, useWords } from "#/words";
import type { Summary, VersionDocument } from "#client";
import { own } from "./words";

const STABLE = "stable";

export default function Scraper({ site, task }: { site: string; task: string }) {
  const w = useWords(own);
  const path = { site, task };
  const id = `${site}/${task}`;
  const found = useCall("get_scraper", { path, query: {} });
  const channels = useCall("get_channels", { path }, { enabled: found.data?.builtin === false });
  const runs = useCall("list_runs", { query: { scraper: id, limit: 50 } }, { every: 5 });
  const [asking, setAsking] = useState<VersionDocument | null>(null);
  const one = found.data;
  const again = () =>
    Promise.all(
      ["get_scraper", "get_channels", "list_scrapers"].map((name) => cache.invalidateQueries({ queryKey: [name] })),
    );
  const back = useAction((channel: string) => api.call("unmove_channel", { path: { ...path, channel } }), {
    done: () => void again(),
  });
  if (found.error) return <Problem error={found.error} />;
  if (!one) return <Skeleton />;
  const releases = one.versions.filter((each) => each.valid && !each.prerelease);
  const stable = channels.data?.channels[STABLE] ?? one.all_channels[STABLE] ?? releases[0]?.version ?? one.version;
  const last = runs.data?.runs.filter((run) => run.exit_reason !== null) ?? [];
  const good = last.filter((run) => run.status === "succeeded").length;
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
      id: "move",
      head: "",
      width: "140px",
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
                <button type="button" class="small" onClick={() => back.mutate(channel)}>
                  {w.takeBack}
                </button>
              )}
            </p>
          ))}
          <h2>
            {w.lastRuns}{" "}
            {last.length > 0 && (
              <span class="muted">{w.success(percent(good / last.length), number(last.length))}</span>
            )}
          </h2>
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
            <Empty title={w.noRuns} />
          )}
        </section>
        <section class="stack">
          <div class="panel">
            <h2>{w.details}</h2>
            <Facts
              facts={[
                [w.version, one.version],
                [w.source, one.builtin ? w.builtin : one.source],
                [w.entry, one.entry ?? "–"],
                [w.hosts, one.allowed_hosts?.length ? one.allowed_hosts.join(", ") : w.anyHost],
                [w.requires, one.requirements?.length ? one.requirements.join(", ") : "–"],
                [w.environment, one.environment?.problem || one.environment?.status || "–"],
                [w.digest, <code key="digest">{one.digest.slice(0, 16) || "–"}</code>],
              ]}
            />
          </div>
          <details class="panel" open>
            <summary>{w.schema}</summary>
            <pre>{JSON.stringify(one.input_schema, null, 2)}</pre>
          </details>
          {one.output_schema && (
            <details class="panel">
              <summary>{w.output}</summary>
              <pre>{JSON.stringify(one.output_schema, null, 2)}</pre>
            </details>
          )}
          {one.limits && (
            <details class="panel">
              <summary>{w.limits}</summary>
              <Facts facts={Object.entries(one.limits).map(([name, value]) => [name, number(value)])} />
            </details>
          )}
        </section>
      </div>
      {asking && (
        <Confirm
          title={w.moveAsk(STABLE)}
          verb={w.moveTo(STABLE, asking.version)}
          close={() => setAsking(null)}
          act={async () => {
            await api.call("move_channel", { path: { ...path, channel: STABLE }, body: { version: asking.version } });
            note(w.moved(STABLE, asking.version), () => back.mutate(STABLE));
            await again();
          }}
        >
          {w.moveAbout(STABLE, stable, asking.version)}
        </Confirm>
      )}
    </>
  );
}
