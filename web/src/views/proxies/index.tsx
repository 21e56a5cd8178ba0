/** Proxies: the pools from cheap to dear, how they do, and what went through them. */

import { useCall } from "#/api/client";
import { Empty, Facts, Head, Problem, Skeleton } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { bytes, number, useWords, words } from "#/words";
import type { PoolDocument } from "#client";

const own = words(
  {
    title: "Proxies",
    about: "Pools from cheap to dear: a block leads to the next tier.",
    none: "No pools",
    noneAbout: "Pages are fetched directly. Write pools into the settings, or add one with `PUT /api/proxies/{name}`.",
    name: "Pool",
    kind: "Class",
    exits: "Exits",
    resting: "Resting",
    today: "Today",
    month: "30 days",
    failures: "Failed",
    tier: "Tier",
    country: "Country",
    received: "Received in the last 30 days",
    requests: "requests",
  },
  {
    title: "프록시",
    about: "싼 것부터 비싼 것까지의 풀입니다. 차단되면 다음 단계로 넘어갑니다.",
    none: "풀이 없습니다",
    noneAbout: "페이지를 직접 가져옵니다. 설정에 풀을 쓰거나 `PUT /api/proxies/{name}`으로 더하세요.",
    name: "풀",
    kind: "종류",
    exits: "출구",
    resting: "쉬는 중",
    today: "오늘",
    month: "30일",
    failures: "실패",
    tier: "단계",
    country: "국가",
    received: "최근 30일 받은 양",
    requests: "요청",
  },
);

export default function Proxies() {
  const w = useWords(own);
  const found = useCall("list_proxies", {}, { every: 5 });
  const columns: Column<PoolDocument>[] = [
    { id: "name", head: w.name, width: "minmax(0, 2fr)", cell: (one) => one.name },
    { id: "tier", head: w.tier, width: "60px", end: true, cell: (one) => number(one.tier) },
    { id: "kind", head: w.kind, width: "120px", cell: (one) => one.proxy_class },
    { id: "country", head: w.country, width: "80px", line: 0, cell: (one) => one.country },
    { id: "exits", head: w.exits, width: "80px", end: true, cell: (one) => number(one.exits) },
    {
      id: "resting",
      head: w.resting,
      width: "90px",
      end: true,
      cell: (one) => number(one.health.reduce((sum, each) => sum + each.resting, 0)),
    },
    { id: "today", head: w.today, width: "110px", end: true, cell: (one) => bytes(one.today.bytes) },
    { id: "month", head: w.month, width: "110px", end: true, line: 0, cell: (one) => bytes(one.month.bytes) },
    { id: "failures", head: w.failures, width: "80px", end: true, line: 0, cell: (one) => number(one.today.failures) },
  ];
  if (found.error) return <Problem error={found.error} />;
  if (!found.data) return <Skeleton />;
  return (
    <>
      <Head title={w.title} about={w.about} />
      <div class="stack">
        {found.data.pools.length ? (
          <Table label={w.title} columns={columns} rows={rowsOf(found.data.pools)} id={(one) => one.name} />
        ) : (
          <Empty title={w.none}>{w.noneAbout}</Empty>
        )}
        <section class="panel">
          <h2>{w.received}</h2>
          <Facts
            facts={found.data.by_class.map((one) => [
              one.proxy_class,
              `${bytes(one.bytes)} · ${number(one.requests)} ${w.requests}`,
            ])}
          />
        </section>
      </div>
    </>
  );
}
