/** Proxies: pools, what goes through them, and how their exits do. */

import { useState } from "preact/hooks";
import { api, cache, useCall } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Empty, Facts, Head, Problem, Skeleton, Time } from "#/kit/base";
import { Confirm, Dialog, note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { bytes, number, percent, useWords } from "#/words";
import type { ClassUseDocument, PoolDocument } from "#client";
import { PoolForm } from "./form";
import { own } from "./words";

const restingOf = (pool: PoolDocument) => Math.max(0, ...pool.health.map((each) => each.resting));

export default function Proxies() {
  const w = useWords(own);
  const words = w as unknown as Record<string, string>;
  const { query, change } = useAddress();
  const found = useCall("list_proxies", {}, { every: 5 });
  const pools = found.data?.pools ?? [];
  const chosen = pools.find((pool) => pool.name === query.pool);
  const columns: Column<PoolDocument>[] = [
    { id: "name", head: w.name, width: "minmax(110px, 1.5fr)", cell: (pool) => pool.name },
    { id: "tier", head: w.tier, width: "50px", end: true, line: 0, cell: (pool) => number(pool.tier) },
    { id: "class", head: w.cls, width: "110px", cell: (pool) => words[pool.proxy_class] },
    { id: "exits", head: w.exits, label: w.exits, width: "70px", end: true, cell: (pool) => number(pool.exits) },
    {
      id: "resting",
      head: <span title={w.restingHint}>{w.resting}</span>,
      label: w.resting,
      width: "70px",
      end: true,
      cell: (pool) => (restingOf(pool) ? <span class="status warn">! {number(restingOf(pool))}</span> : "0"),
    },
    {
      id: "today",
      head: w.today,
      label: w.today,
      width: "minmax(0, 1fr)",
      end: true,
      cell: (pool) => bytes(pool.today.bytes),
    },
    {
      id: "month",
      head: w.month,
      width: "minmax(0, 1fr)",
      end: true,
      line: 0,
      cell: (pool) => bytes(pool.month.bytes),
    },
    {
      id: "failed",
      head: w.failed,
      width: "90px",
      end: true,
      line: 0,
      cell: (pool) => percent(pool.month.requests ? pool.month.failures / pool.month.requests : null),
    },
    { id: "source", head: w.source, width: "110px", line: 0, cell: (pool) => words[`source_${pool.source}`] },
  ];
  return (
    <>
      <Head title={w.title} about={w.about}>
        {may("put_proxies") && (
          <button type="button" class="main" onClick={() => change({ new: "1" })}>
            {w.add}
          </button>
        )}
      </Head>
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton />
      ) : (
        <div class="stack">
          {pools.length === 0 ? (
            <Empty title={w.none}>{w.noneAbout}</Empty>
          ) : (
            <Table
              label={w.title}
              columns={columns}
              rows={rowsOf(pools)}
              id={(pool) => pool.name}
              href={(pool) => `/proxies?pool=${encodeURIComponent(pool.name)}`}
              selected={query.pool}
            />
          )}
          <Classes of={found.data?.by_class ?? []} />
        </div>
      )}
      {query.new && <PoolForm close={() => change({ new: null })} />}
      {chosen && <One of={chosen} close={() => change({ pool: null })} />}
    </>
  );
}

function Classes({ of }: { of: ClassUseDocument[] }) {
  const w = useWords(own);
  const words = w as unknown as Record<string, string>;
  const most = Math.max(1, ...of.map((each) => each.bytes));
  if (of.length === 0) return null;
  return (
    <section class="panel">
      <h2>{w.byClass}</h2>
      <Facts
        facts={of.map((each) => [
          words[each.proxy_class] ?? each.proxy_class,
          <span class="measure">
            <meter min={0} max={most} value={each.bytes} aria-label={words[each.proxy_class] ?? each.proxy_class} />
            {bytes(each.bytes)}{" "}
            <span class="muted">
              {number(each.requests)} {w.requests}
            </span>
          </span>,
        ])}
      />
    </section>
  );
}

function One({ of, close }: { of: PoolDocument; close: () => void }) {
  const w = useWords(own);
  const words = w as unknown as Record<string, string>;
  const [doing, setDoing] = useState<"change" | "remove" | null>(null);
  if (doing === "change") return <PoolForm of={of} close={close} />;
  if (doing === "remove")
    return (
      <Confirm
        title={w.removeAsk(of.name)}
        verb={w.remove}
        close={close}
        act={async () => {
          await api.call("remove_proxies", { path: { name: of.name } });
          note(w.removed(of.name));
          void cache.invalidateQueries({ queryKey: ["list_proxies"] });
        }}
      >
        {w.removeAbout(number(of.exits), number(of.today.requests))}
      </Confirm>
    );
  const resting = of.health.filter((each) => each.resting > 0);
  return (
    <Dialog title={of.name} close={close}>
      <Facts
        facts={[
          [w.cls, `${words[of.proxy_class]} · ${w.tier} ${of.tier}`],
          [w.kind, words[of.kind]],
          [w.rotation, words[`rotation_${of.rotation}`]],
          [w.country, of.country || "–"],
          [w.exits, number(of.exits)],
          [w.endpoints, <div class="endpoints">{of.endpoints.join(", ") || `${of.customer} ${of.zone}`}</div>],
          [
            w.resting,
            resting.length
              ? resting.map((each) => (
                  <div key={each.worker}>
                    {w.restNow(number(each.resting), each.worker)}: {each.names.join(", ")}
                  </div>
                ))
              : "0",
          ],
          [w.today, `${bytes(of.today.bytes)} · ${number(of.today.requests)} ${w.requests}`],
          [w.month, `${bytes(of.month.bytes)} · ${number(of.month.requests)} ${w.requests}`],
          [w.source, words[`source_${of.source}`]],
          ...(of.changed_at ? [[w.changed, <Time at={of.changed_at} />] as [string, preact.JSX.Element]] : []),
        ]}
      />
      {of.source === "api" && may("put_proxies") && (
        <footer>
          <button type="button" onClick={() => setDoing("change")}>
            {w.change}
          </button>
          <button type="button" class="danger" onClick={() => setDoing("remove")}>
            {w.remove}
          </button>
        </footer>
      )}
    </Dialog>
  );
}
