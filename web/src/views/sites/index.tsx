/** Sites: what we do to each, and what it does to us. */

import { usePages } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Empty, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { number, percent, took, useWords } from "#/words";
import type { SiteDocument } from "#client";
import { cheapest } from "./rules";
import { own } from "./words";

export default function Sites() {
  const w = useWords(own);
  const { go } = useAddress();
  const found = usePages("list_sites", { query: { limit: 100 } }, (page) => page.sites, { every: 5 });
  const columns: Column<SiteDocument>[] = [
    { id: "site", head: w.site, width: "minmax(140px, 1.6fr)", cell: (one) => one.site },
    {
      id: "answers",
      head: w.answers,
      label: w.answers,
      width: "90px",
      end: true,
      cell: (one) => <Share of={one} />,
    },
    {
      id: "rate",
      head: <span title={w.rateHint}>{w.rate}</span>,
      label: w.rate,
      width: "150px",
      end: true,
      cell: (one) => <Rate of={one} />,
    },
    { id: "latency", head: w.latency, width: "80px", end: true, line: 0, cell: (one) => took(one.state?.latency_ms) },
    {
      id: "waiting",
      head: w.waiting,
      width: "60px",
      end: true,
      line: 0,
      cell: (one) => number(one.state?.waiting ?? 0),
    },
    {
      id: "breaker",
      head: w.breaker,
      label: w.breaker,
      width: "100px",
      cell: (one) => (one.state ? <Status of={one.state.breaker} /> : "–"),
    },
    { id: "way", head: w.way, width: "minmax(0, 1.2fr)", line: 0, cell: (one) => cheapest(one) ?? "–" },
    { id: "robots", head: w.robots, width: "90px", line: 0, cell: (one) => w[one.limits.robots] },
    {
      id: "rules",
      head: w.rules,
      width: "110px",
      line: 0,
      cell: (one) => (one.rules ? w.own : <span class="muted">{w.usual}</span>),
    },
    { id: "seen", head: w.seen, width: "100px", end: true, cell: (one) => <Time at={one.state?.seen_at} /> },
  ];
  return (
    <>
      <Head title={w.title} about={w.about}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const site = new FormData(event.currentTarget).get("site");
            if (site) go(`/sites/${encodeURIComponent(String(site).trim().toLowerCase())}`);
          }}
        >
          <input class="wide-input" type="search" name="site" aria-label={w.find} placeholder={w.find} />
        </form>
      </Head>
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton rows={8} />
      ) : found.rows.length === 0 ? (
        <Empty title={w.none}>
          {w.noneAbout} <a href="/try">{w.tryPage}</a>
        </Empty>
      ) : (
        <Table
          label={w.title}
          columns={columns}
          rows={rowsOf(found.rows, found.more)}
          id={(one) => one.site}
          href={(one) => `/sites/${encodeURIComponent(one.site)}`}
          most={20}
        />
      )}
    </>
  );
}

/** The share of the last requests that succeeded. */
export function Share({ of }: { of: SiteDocument }) {
  const w = useWords(own);
  const share = of.state?.success_share;
  if (share === null || share === undefined) return <span class="muted">–</span>;
  const tone = share > 0.9 ? "good" : share > 0.5 ? "warn" : "bad";
  return (
    <span class={`status ${tone}`} title={w.answersHint(number(of.state?.recent))}>
      {percent(share)}
    </span>
  );
}

export function Rate({ of }: { of: SiteDocument }) {
  const w = useWords(own);
  const allowed = of.state ? of.state.rate : of.limits.rate || null;
  return (
    <>
      {number(of.state?.requests_a_second ?? 0, 2)}{" "}
      <span class={of.state?.slowed ? "status warn" : "muted"}>
        / {allowed ? w.perSecond(number(allowed, 2)) : w.noLimit}
        {of.state?.slowed && " !"}
      </span>
    </>
  );
}
