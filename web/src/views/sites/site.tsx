/** One site: what holds for it, how it answers, what works, and how to be gentler. */

import { useState } from "preact/hooks";
import { api, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { Facts, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { Confirm, note } from "#/kit/dialog";
import { has } from "#/routes";
import { bytes, lasts, number, percent, took, useWords } from "#/words";
import { own } from "./words";

interface Way {
  way: string;
  cost: number;
  success_share: number | null;
}
type Received = Record<string, { requests: number; failures: number; bytes: number }>;

const REST = 0.001;

export default function Site({ site }: { site: string }) {
  const w = useWords(own);
  const path = { site };
  const found = useCall("get_site", { path }, { every: 3 });
  const [asking, setAsking] = useState<"gentler" | "rest" | null>(null);
  const touches = ["get_site", "list_sites"] as const;
  const reset = useAction(() => api.call("reset_site", { path }), {
    touches: [...touches],
    done: () => note(w.resetNote),
  });
  const remove = useAction(() => api.call("delete_site", { path }), {
    touches: [...touches],
    done: () => note(w.deleted),
  });
  const one = found.data;
  if (found.error) return <Problem error={found.error} />;
  if (!one) return <Skeleton />;
  const { limits, state, rules } = one;
  const shown = (rate: number | null | undefined) => (rate ? w.perSecond(number(rate, 3)) : w.unlimited);
  const slower = limits.rate ? limits.rate / 2 : 1;
  const put = async (rate: number, concurrency: number) => {
    const { updated_at: _, ...kept } = rules ?? { updated_at: "" };
    await api.call("put_site", { path, body: { ...kept, rate, concurrency } });
    note(w.saved, () => remove.mutate(undefined));
    await found.refetch();
  };
  const ways = (one.more.ways ?? []) as Way[];
  const received = Object.entries((one.more.received ?? {}) as Received);
  return (
    <>
      <Head title={site} about={state ? <Time at={state.seen_at} /> : undefined}>
        {may("put_site") && (
          <>
            <button type="button" onClick={() => setAsking("gentler")}>
              {w.gentler}
            </button>
            <button type="button" onClick={() => setAsking("rest")}>
              {w.rest}
            </button>
          </>
        )}
        {may("reset_site") && (
          <button type="button" onClick={() => reset.mutate(undefined)}>
            {w.reset}
          </button>
        )}
        {has("/dead-letters") && (
          <a class="button" href={`/dead-letters?site=${encodeURIComponent(site)}`}>
            {w.items}
          </a>
        )}
      </Head>
      <Problem error={reset.error ?? remove.error} />
      <div class="grid">
        <section class="panel">
          <h2>{w.state}</h2>
          <Facts
            facts={[
              [w.breaker, <Status key="breaker" of={state?.breaker ?? "closed"} />],
              [w.rate, `${shown(state?.rate)}${state?.slowed ? ` · ${w.slowed}` : ""}`],
              [w.now, state ? w.perSecond(number(state.requests_a_second, 2)) : "–"],
              [w.success, percent(state?.success_share)],
              [w.latency, took(state?.latency_ms)],
              [w.waiting, number(state?.waiting ?? 0)],
              ...(state?.closed_seconds
                ? ([["Retry-After", w.closed(lasts(state.closed_seconds))]] as [string, string][])
                : []),
            ]}
          />
        </section>
        <section class="panel">
          <h2>{w.limits}</h2>
          <Facts
            facts={[
              [w.rate, shown(limits.rate)],
              [w.burst, number(limits.burst)],
              [w.concurrency, limits.concurrency ? number(limits.concurrency) : w.unlimited],
              [w.robots, limits.robots],
            ]}
          />
          <h2>{w.rules}</h2>
          {rules ? (
            <>
              <Facts
                facts={Object.entries(rules)
                  .filter(([, value]) => value !== null && value !== "")
                  .map(([name, value]) => [name, String(value)])}
              />
              {may("delete_site") && (
                <button type="button" class="small" onClick={() => remove.mutate(undefined)}>
                  {w.deleteRules}
                </button>
              )}
            </>
          ) : (
            <p class="muted">{w.noRules}</p>
          )}
        </section>
        <section class="panel">
          <h2>{w.ways}</h2>
          <Facts
            facts={ways.map((each) => [each.way, `${percent(each.success_share)} · ${w.cost} ${number(each.cost, 1)}`])}
          />
          <h2>{w.received}</h2>
          <Facts
            facts={received.map(([name, each]) => [
              name,
              `${bytes(each.bytes)} · ${number(each.requests)} ${w.requests}`,
            ])}
          />
        </section>
      </div>
      {asking === "gentler" && (
        <Confirm title={w.gentlerAsk} verb={w.gentler} close={() => setAsking(null)} act={() => put(slower, 1)}>
          {w.gentlerAbout(limits.rate ? number(limits.rate, 3) : w.unlimited, number(slower, 3))}
        </Confirm>
      )}
      {asking === "rest" && (
        <Confirm title={w.restAsk} verb={w.rest} close={() => setAsking(null)} act={() => put(REST, 1)}>
          {w.restAbout}
        </Confirm>
      )}
    </>
  );
}
