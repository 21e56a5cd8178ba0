/** One site: its pace now, its rules, the ways that work, and how it went day by day. */

import { useState } from "preact/hooks";
import { api, cache, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Facts, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { Chart } from "#/kit/chart";
import { Confirm, note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { dayBefore } from "#/views/usage";
import { bytes, lasts, number, percent, took, useWords } from "#/words";
import type { SiteCall, SiteDocument } from "#client";
import { Rate, Share } from ".";
import { Answers, Failures } from "./answers";
import { RulesForm } from "./form";
import { clearancesOf, gentler, rulesOf, type Way, waysOf } from "./rules";
import { own } from "./words";

/** Requests a second of a site that is left alone. */
const REST = 0.001;
const again = () => void cache.invalidateQueries({ predicate: ({ queryKey }) => /_sites?$/.test(String(queryKey[0])) });

export default function Site({ site }: { site: string }) {
  const w = useWords(own);
  const { query, change } = useAddress();
  const path = { site: decodeURIComponent(site) };
  const found = useCall("get_site", { path }, { every: 2 });
  const [asking, setAsking] = useState<"remove" | "rest" | null>(null);
  const put = useAction((call: SiteCall) => api.call("put_site", { path, body: call }), { done: again });
  const reset = useAction(() => api.call("reset_site", { path }), {
    done: () => {
      again();
      note(w.resetDone);
    },
  });
  const one = found.data;
  /** Write other rules, with a way back to those that are there now. */
  const write = async (call: SiteCall, said: string) => {
    const before = one!.rules ? rulesOf(one!) : null;
    await put.mutateAsync(call);
    note(said, () => (before ? put.mutate(before) : void api.call("delete_site", { path }).then(again)));
  };
  const slower = () => {
    const call = gentler(one!);
    void write(call, w.gentlerDone(w.perSecond(number(call.rate, 2)))).catch(() => {}); // told as the problem below
  };
  return (
    <>
      <Head title={path.site} about={one?.rules?.note}>
        {one && may("put_site") && (
          <>
            <button type="button" onClick={slower} disabled={put.isPending}>
              {w.gentler}
            </button>
            <button type="button" onClick={() => setAsking("rest")}>
              {w.rest}
            </button>
            <button type="button" onClick={() => change({ rules: "1" })}>
              {w.change}
            </button>
            {(one.state?.breaker !== "closed" || one.state?.slowed) && one.state && (
              <button type="button" onClick={() => reset.mutate(undefined)} disabled={reset.isPending}>
                {w.reset}
              </button>
            )}
            {one.rules && (
              <button type="button" onClick={() => setAsking("remove")}>
                {w.removeRules}
              </button>
            )}
          </>
        )}
      </Head>
      <Problem
        error={found.error ?? put.error ?? reset.error}
        again={found.error ? () => found.refetch() : undefined}
      />
      {found.isPending ? <Skeleton /> : one && <Whole of={one} />}
      {one && query.rules && <RulesForm of={one} close={() => change({ rules: null })} saved={again} />}
      {asking === "remove" && (
        <Confirm
          title={w.removeAsk(path.site)}
          verb={w.removeRules}
          close={() => setAsking(null)}
          act={() => api.call("delete_site", { path }).then(again)}
        >
          {w.removeAbout}
        </Confirm>
      )}
      {one && asking === "rest" && (
        <Confirm
          title={w.restAsk(path.site)}
          verb={w.rest}
          close={() => setAsking(null)}
          act={() => write({ ...rulesOf(one), rate: REST, min_rate: REST }, w.rested)}
        >
          {w.restAbout}
        </Confirm>
      )}
    </>
  );
}

function Whole({ of }: { of: SiteDocument }) {
  const w = useWords(own);
  return (
    <div class="stack">
      <div class="grid">
        <Now of={of} />
        <Allowed of={of} />
        <Received of={of} />
      </div>
      <div class="grid">
        <Days site={of.site} />
        <Answers site={of.site} />
        <Failures site={of.site} />
      </div>
      <section class="panel">
        <h2>{w.ways}</h2>
        <Ways of={waysOf(of)} />
      </section>
      <section class="panel">
        <h2>{w.cookies}</h2>
        {clearancesOf(of).length === 0 ? (
          <p class="muted">{w.noCookies}</p>
        ) : (
          <Facts
            facts={clearancesOf(of).map((each) => [
              each.host,
              <>
                {w.exit} {each.exit || "direct"} · {w.until} <Time at={each.expires_at} />
              </>,
            ])}
          />
        )}
      </section>
    </div>
  );
}

function Now({ of }: { of: SiteDocument }) {
  const w = useWords(own);
  const now = of.state;
  const left = now?.breaker === "open" ? w.opensIn(lasts(now.breaker_seconds)) : "";
  return (
    <section class="panel">
      <h2>{w.now}</h2>
      <Facts
        facts={[
          [w.answers, <Share of={of} />],
          [
            w.rate,
            <>
              <Rate of={of} /> {now?.slowed && <div class="status warn wrap">! {w.slowed}</div>}
              {now && now.closed_seconds > 0 && (
                <div class="status warn wrap">! {w.closedFor(lasts(now.closed_seconds))}</div>
              )}
            </>,
          ],
          [
            w.breaker,
            now ? (
              <>
                <Status of={now.breaker} /> {left}
              </>
            ) : (
              "–"
            ),
          ],
          [w.latency, took(now?.latency_ms)],
          [w.waiting, number(now?.waiting ?? 0)],
          [w.inFlight, now?.in_flight === null || !now ? "–" : number(now.in_flight)],
          [w.seen, <Time at={now?.seen_at} />],
        ]}
      />
    </section>
  );
}

function Allowed({ of }: { of: SiteDocument }) {
  const w = useWords(own);
  const { limits, rules } = of;
  return (
    <section class="panel">
      <h2>{w.allowed}</h2>
      <Facts
        facts={[
          [w.rules, rules ? w.own : w.usual],
          [w.rate, limits.rate ? w.perSecond(number(limits.rate, 2)) : w.noLimit],
          [w.concurrency, limits.concurrency ? number(limits.concurrency) : w.any],
          [w.robots, w[limits.robots]],
          [w.adapt, limits.adapt ? w.yes : w.no],
          [
            w.breaker,
            `${number(limits.breaker_failures)} · ${percent(limits.breaker_ratio)} · ${lasts(limits.breaker_seconds)}`,
          ],
          ...(rules ? [[w.changed, <Time at={rules.updated_at} />] as [string, preact.JSX.Element]] : []),
        ]}
      />
    </section>
  );
}

type Received = Record<string, { requests: number; failures: number; bytes: number }>;

function Received({ of }: { of: SiteDocument }) {
  const w = useWords(own);
  const received = Object.entries((of.more.received ?? {}) as Received);
  return (
    <section class="panel">
      <h2>{w.received}</h2>
      <Facts
        facts={received.map(([name, use]) => [
          name,
          <>
            {bytes(use.bytes)}{" "}
            <span class="muted">
              {number(use.requests)} {w.requests}
            </span>{" "}
            {use.failures > 0 && (
              <span class="status bad">
                {number(use.failures)} {w.failed}
              </span>
            )}
          </>,
        ])}
      />
    </section>
  );
}

function Days({ site }: { site: string }) {
  const w = useWords(own);
  const since = dayBefore(29);
  const rows = useCall("get_usage", { query: { by: ["day"], site, since } }, { every: 30 }).data?.rows ?? [];
  if (rows.length < 2) return null;
  return (
    <section class="panel">
      <h2>{w.perDay}</h2>
      <Chart
        label={w.perDay}
        at={rows.map((row) => Date.parse(`${row.day}T12:00Z`) / 1000)}
        stacked
        series={[
          { name: w.failures, tone: "--bad", values: rows.map((row) => row.failures) },
          { name: w.ok, tone: "--good", values: rows.map((row) => row.fetches - row.failures) },
        ]}
        shown={(value) => number(value)}
      />
    </section>
  );
}

function Ways({ of }: { of: Way[] }) {
  const w = useWords(own);
  const columns: Column<Way>[] = [
    { id: "way", head: w.wayName, cell: (way) => way.way },
    { id: "cost", head: w.cost, width: "80px", end: true, cell: (way) => number(way.cost, 1) },
    { id: "share", head: w.success, width: "100px", end: true, cell: (way) => percent(way.success_share) },
    { id: "used", head: w.used, width: "120px", end: true, cell: (way) => <Time at={way.used_at} /> },
  ];
  if (of.length === 0) return <p class="muted">{w.noWays}</p>;
  return <Table label={w.ways} columns={columns} rows={rowsOf(of)} id={(way) => way.way} most={8} />;
}
