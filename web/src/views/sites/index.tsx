/** Sites: the rate and the health of each. */

import { usePages } from "#/api/client";
import { Empty, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { number, percent, took, useWords } from "#/words";
import type { SiteDocument } from "#client";
import { own } from "./words";

export default function Sites() {
  const w = useWords(own);
  const found = usePages("list_sites", { query: { limit: 100 } }, (page) => page.sites, { every: 5 });
  const columns: Column<SiteDocument>[] = [
    { id: "site", head: w.site, width: "minmax(0, 2fr)", cell: (one) => one.site },
    { id: "breaker", head: w.breaker, width: "110px", cell: (one) => <Status of={one.state?.breaker ?? "closed"} /> },
    {
      id: "rate",
      head: w.rate,
      width: "110px",
      end: true,
      cell: (one) =>
        (one.state?.rate ?? one.limits.rate) ? w.perSecond(number(one.state?.rate ?? one.limits.rate, 2)) : w.unlimited,
    },
    {
      id: "now",
      head: w.now,
      width: "90px",
      end: true,
      line: 0,
      cell: (one) => (one.state ? w.perSecond(number(one.state.requests_a_second, 1)) : ""),
    },
    { id: "success", head: w.success, width: "90px", end: true, cell: (one) => percent(one.state?.success_share) },
    { id: "latency", head: w.latency, width: "90px", end: true, line: 0, cell: (one) => took(one.state?.latency_ms) },
    {
      id: "waiting",
      head: w.waiting,
      width: "80px",
      end: true,
      line: 0,
      cell: (one) => (one.state?.waiting ? number(one.state.waiting) : ""),
    },
    { id: "seen", head: w.seen, width: "110px", end: true, cell: (one) => <Time at={one.state?.seen_at} /> },
  ];
  return (
    <>
      <Head title={w.title} about={w.about} />
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton />
      ) : found.rows.length === 0 ? (
        <Empty title={w.none}>{w.noneAbout}</Empty>
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
