/** How the fields of a scraper's results are doing, site by site: how often each is filled, and which drift. */

import { useState } from "preact/hooks";
import { api, cache, useCall } from "#/api/client";
import { may } from "#/api/session";
import { Bar, Empty, Problem, Skeleton, Status, Time } from "#/kit/base";
import { Confirm, note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { number, percent, useWords } from "#/words";
import type { FieldHealthDocument, SiteHealthDocument } from "#client";
import { own } from "./words";

/** Fields that drift first, then by name. */
export function byDrift(fields: FieldHealthDocument[]): FieldHealthDocument[] {
  return [...fields].sort(
    (a, b) => Number(b.drift !== null) - Number(a.drift !== null) || a.name.localeCompare(b.name),
  );
}

export function Drift({ site, task }: { site: string; task: string }) {
  const w = useWords(own);
  const path = { site, task };
  const found = useCall("get_drift", { path }, { every: 10 });
  const [asking, setAsking] = useState(false);
  if (found.error) return <Problem error={found.error} again={() => found.refetch()} />;
  if (!found.data) return <Skeleton />;
  const { sites, drifted } = found.data;
  if (sites.length === 0) return <Empty title={w.driftNone}>{w.driftNoneAbout}</Empty>;
  const pages = sites.reduce((sum, one) => sum + one.pages, 0);
  return (
    <div class="stack">
      <div class="line">
        <Status of={drifted ? "degraded" : "ok"}>{drifted ? w.driftSome(number(drifted)) : w.driftOk}</Status>
        <span class="muted">{w.driftAbout}</span>
        <span class="spring" />
        {drifted > 0 && may("accept_drift") && (
          <button type="button" onClick={() => setAsking(true)}>
            {w.acceptDrift}
          </button>
        )}
      </div>
      {[...sites].sort(worseFirst).map((one) => (
        <Fields key={one.site} of={one} />
      ))}
      {asking && (
        <Confirm
          title={w.acceptAsk}
          verb={w.acceptDrift}
          close={() => setAsking(false)}
          act={async () => {
            cache.setQueryData(["get_drift", { path }], await api.call("accept_drift", { path }));
            note(w.accepted);
          }}
        >
          {w.acceptAbout(number(pages), number(sites.length))}
        </Confirm>
      )}
    </div>
  );
}

const driftsIn = (one: SiteHealthDocument) => one.fields.filter((field) => field.drift !== null).length;
const worseFirst = (a: SiteHealthDocument, b: SiteHealthDocument) => driftsIn(b) - driftsIn(a);

function Fields({ of }: { of: SiteHealthDocument }) {
  const w = useWords(own);
  const columns: Column<FieldHealthDocument>[] = [
    { id: "name", head: w.field, width: "minmax(120px, 1fr)", cell: (field) => field.name },
    {
      id: "before",
      head: w.filledBefore,
      label: w.before,
      width: "150px",
      cell: (field) => <Filled share={field.fill_rate} label={w.filledBefore} />,
    },
    {
      id: "now",
      head: w.filledLast,
      label: w.last20,
      width: "150px",
      cell: (field) => <Filled share={field.recent_fill_rate} label={w.filledLast} drifts={field.drift !== null} />,
    },
    {
      id: "drift",
      head: w.drift,
      width: "minmax(0, 2fr)",
      cell: (field) =>
        field.drift && (
          <span title={`${field.before} → ${field.now}`}>
            <Status of="degraded">{w[`drift_${field.drift}`]}</Status>{" "}
            <span class="muted">
              {field.before} → {field.now}
            </span>
          </span>
        ),
    },
    {
      id: "since",
      head: w.since,
      width: "110px",
      end: true,
      cell: (field) => (field.since ? <Time at={field.since} /> : ""),
    },
  ];
  const name = of.site || w.noSite;
  return (
    <section class="stack">
      <h2>
        {of.site ? <a href={`/sites/${encodeURIComponent(of.site)}`}>{of.site}</a> : name}{" "}
        <span class="muted">
          {w.driftPages(number(of.pages), of.version)} · <Time at={of.seen_at} />
        </span>
      </h2>
      <Table label={name} columns={columns} rows={rowsOf(byDrift(of.fields))} id={(field) => field.name} most={20} />
    </section>
  );
}

function Filled({ share, label, drifts }: { share: number; label: string; drifts?: boolean }) {
  return (
    <span class="filled">
      <span class="num">{percent(share)}</span>
      <Bar
        label={label}
        parts={[
          { tone: drifts ? "warn" : "good", value: Math.round(share * 100), name: "%" },
          { tone: "off", value: 100 - Math.round(share * 100), name: "" },
        ]}
      />
    </span>
  );
}
