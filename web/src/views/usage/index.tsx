/** Usage: who used what, by day; and the same as CSV. */

import { useState } from "preact/hooks";
import { send, useCall } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Chips, Empty, Head, Problem, Skeleton } from "#/kit/base";
import { Chart } from "#/kit/chart";
import { type Column, rowsOf, Table } from "#/kit/table";
import { bytes, lasts, number, useWords } from "#/words";
import { ApiError, type UsageRowDocument } from "#client";
import { own } from "./words";

type By = "day" | "client" | "scraper" | "site";
const BY: By[] = ["day", "client", "scraper", "site"];
const DAYS: Record<string, number> = { week: 7, month: 30, quarter: 90 };
const MB = 2 ** 20;

/** The day so many days ago, in UTC. */
export const dayBefore = (days: number, now = Date.now()) =>
  new Date(now - days * 86_400_000).toISOString().slice(0, 10);

export default function Usage() {
  const w = useWords(own);
  const words = w as unknown as Record<string, string>;
  const { query, change } = useAddress();
  const by = BY.filter((each) => (query.by ?? "client,scraper").split(",").includes(each));
  const span = query.span && DAYS[query.span] ? query.span : "month";
  const where = {
    since: dayBefore(DAYS[span]! - 1),
    client: query.client || undefined,
    scraper: query.scraper || undefined,
    site: query.site || undefined,
  };
  const found = useCall("get_usage", { query: { ...where, by } }, { every: 30 });
  const days = useCall("get_usage", { query: { ...where, by: ["day"] } }, { every: 30 });
  const rows = [...(found.data?.rows ?? [])].sort((one, other) => order(one, other, by));
  const toggle = (one: By) => {
    const next = by.includes(one) ? by.filter((each) => each !== one) : [...by, one];
    change({ by: (next.length ? next : [one]).join(",") });
  };
  return (
    <>
      <Head title={w.title} about={w.about}>
        <Csv query={{ ...where, by }} />
      </Head>
      <div class="line filters">
        <div class="chips" role="group" aria-label={w.by}>
          {BY.map((each) => (
            <button key={each} type="button" aria-pressed={by.includes(each)} onClick={() => toggle(each)}>
              {words[each]}
            </button>
          ))}
        </div>
        <Chips
          label={w.span}
          value={span}
          options={Object.keys(DAYS).map((each) => [each, words[each]!])}
          choose={(each) => change({ span: each })}
        />
        {(["client", "scraper", "site"] as const).map(
          (name) =>
            query[name] && (
              <button key={name} type="button" class="small" onClick={() => change({ [name]: null })}>
                {w.only(query[name]!)} ✕
              </button>
            ),
        )}
      </div>
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton />
      ) : rows.length === 0 ? (
        <Empty title={w.none}>
          {w.noneAbout} <a href="/try">{w.tryPage}</a>
        </Empty>
      ) : (
        <>
          <Days rows={days.data?.rows ?? []} since={where.since} />
          {found.data?.truncated && <p class="lost">{w.cut}</p>}
          <Table
            label={w.title}
            columns={columnsOf(by, w)}
            rows={rowsOf(rows)}
            id={(row) => [row.day, row.client, row.scraper, row.site].join(" ")}
            href={narrower(by, query)}
          />
          <Totals rows={rows} />
        </>
      )}
    </>
  );
}

const order = (one: UsageRowDocument, other: UsageRowDocument, by: By[]) =>
  (by.includes("day") ? other.day!.localeCompare(one.day!) : 0) ||
  other.megabytes - one.megabytes ||
  other.runs - one.runs;

/** Where a row leads: the same, of that client, scraper or site alone, by what is left. */
function narrower(by: By[], query: Record<string, string | undefined>) {
  const next = by.find((each) => each !== "day" && !query[each]);
  return (row: UsageRowDocument) => {
    if (!next || next === "day" || !row[next]) return undefined;
    const rest = BY.filter((each) => each !== next && (by.includes(each) || each === "day"));
    return `/usage?${new URLSearchParams({ ...(query as Record<string, string>), [next]: row[next]!, by: rest.join(",") })}`;
  };
}

function columnsOf(by: By[], w: (typeof own)["ko"]): Column<UsageRowDocument>[] {
  const empty = { day: "", client: w.nobody, scraper: w.platform, site: w.noSite };
  const words = w as unknown as Record<string, string>;
  const proxied = (row: UsageRowDocument) => (row.megabytes - row.direct_megabytes) * MB;
  return [
    ...by.map((each) => ({
      id: each,
      head: words[each],
      width: "minmax(110px, 1.6fr)",
      line: 1 as const,
      cell: (row: UsageRowDocument) => row[each] || <span class="muted">{empty[each]}</span>,
    })),
    { id: "runs", head: w.runs, label: w.runs, width: "90px", end: true, cell: (row) => number(row.runs) },
    { id: "fetches", head: w.fetches, label: w.fetches, width: "90px", end: true, cell: (row) => number(row.fetches) },
    {
      id: "failures",
      head: w.failures,
      width: "90px",
      end: true,
      line: 0,
      cell: (row) => (row.failures ? <span class="status bad">{number(row.failures)}</span> : "–"),
    },
    {
      id: "received",
      head: w.received,
      label: w.received,
      width: "90px",
      end: true,
      cell: (row) => bytes(row.megabytes * MB),
    },
    {
      id: "proxied",
      head: w.proxied,
      width: "90px",
      end: true,
      line: 0,
      cell: (row) => (proxied(row) > 0 ? bytes(proxied(row)) : "–"),
    },
    {
      id: "residential",
      head: w.residential,
      width: "90px",
      end: true,
      line: 0,
      cell: (row) => {
        const dear = row.residential_megabytes + row.unlocker_megabytes;
        return dear ? bytes(dear * MB) : "–";
      },
    },
    {
      id: "browser",
      head: w.browser,
      width: "90px",
      end: true,
      line: 0,
      cell: (row) => (row.browser_seconds ? lasts(row.browser_seconds) : "–"),
    },
  ];
}

function Totals({ rows }: { rows: UsageRowDocument[] }) {
  const w = useWords(own);
  const sum = (name: "runs" | "fetches" | "failures" | "megabytes" | "browser_seconds") =>
    rows.reduce((so, row) => so + row[name], 0);
  return (
    <p class="muted totals">
      <strong>{w.total}</strong>: {w.runs} {number(sum("runs"))} · {w.fetches} {number(sum("fetches"))} · {w.failures}{" "}
      {number(sum("failures"))} · {w.received} {bytes(sum("megabytes") * MB)} · {w.browser}{" "}
      {lasts(sum("browser_seconds"))}
    </p>
  );
}

function Days({ rows, since }: { rows: UsageRowDocument[]; since: string }) {
  const w = useWords(own);
  const known = new Map(rows.map((row) => [row.day, row]));
  const at: number[] = []; // noon in UTC is the same day almost everywhere
  for (let noon = Date.parse(`${since}T12:00Z`); noon < Date.now() + 43_200_000; noon += 86_400_000)
    at.push(noon / 1000);
  const values = (name: "fetches" | "megabytes") =>
    at.map((noon) => known.get(new Date(noon * 1000).toISOString().slice(0, 10))?.[name] ?? 0);
  return (
    <div class="grid">
      <section class="panel">
        <h2>{w.requestsADay}</h2>
        <Chart
          label={w.requestsADay}
          at={at}
          series={[{ name: w.fetches, tone: "--accent", values: values("fetches") }]}
          shown={(value) => number(value)}
        />
      </section>
      <section class="panel">
        <h2>{w.megabytesADay}</h2>
        <Chart
          label={w.megabytesADay}
          at={at}
          series={[{ name: w.received, tone: "--accent", values: values("megabytes") }]}
        />
      </section>
    </div>
  );
}

/** The rows as a file. It is fetched with the reader's credentials, which a plain link would not carry. */
function Csv({ query }: { query: { by: By[]; since: string; client?: string; scraper?: string; site?: string } }) {
  const w = useWords(own);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    const asked = new URLSearchParams({ since: query.since, format: "csv" });
    for (const each of query.by) asked.append("by", each);
    for (const name of ["client", "scraper", "site"] as const) if (query[name]) asked.set(name, query[name]);
    try {
      const answer = await send(`/api/usage?${asked}`);
      if (!answer.ok) throw new ApiError(answer.status, await answer.json().catch(() => ({})));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await answer.blob());
      link.download = `usage-${query.since}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <>
      <button type="button" onClick={save}>
        {w.csv}
      </button>
      <Problem error={error} />
    </>
  );
}
