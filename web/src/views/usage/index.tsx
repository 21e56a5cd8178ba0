/** Usage: what clients, scrapers and sites used, day by day. */

import { useCall } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Chips, Empty, Field, Head, Problem, Skeleton } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { lasts, number, useWords, words } from "#/words";
import type { UsageRowDocument } from "#client";

const own = words(
  {
    title: "Usage",
    about: "Runs, fetches, megabytes and seconds of browsers.",
    none: "Nothing was used in this time",
    by: "By",
    day: "day",
    client: "client",
    scraper: "scraper",
    site: "site",
    since: "Since",
    runs: "Runs",
    fetches: "Fetches",
    failures: "Without answer",
    megabytes: "Megabytes",
    residential: "Residential MB",
    browser: "Browser",
    csv: "Download as CSV",
    everybody: "nobody asked",
    platform: "the platform",
  },
  {
    title: "사용량",
    about: "실행, 가져오기, 메가바이트, 브라우저 시간입니다.",
    none: "이 기간에는 사용이 없습니다",
    by: "기준",
    day: "날짜",
    client: "클라이언트",
    scraper: "스크레이퍼",
    site: "사이트",
    since: "시작일",
    runs: "실행",
    fetches: "가져오기",
    failures: "응답 없음",
    megabytes: "메가바이트",
    residential: "주거용 MB",
    browser: "브라우저",
    csv: "CSV로 내려받기",
    everybody: "묻지 않음",
    platform: "플랫폼",
  },
);
const BY = ["day", "client", "scraper", "site"] as const;
type By = (typeof BY)[number];

export default function Usage() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const by = (query.by ?? "day") as By;
  const since = query.since ?? new Date(Date.now() - 29 * 86_400_000).toISOString().slice(0, 10);
  const found = useCall("get_usage", { query: { by: [by], since } }, { every: 30 });
  const columns: Column<UsageRowDocument>[] = [
    {
      id: "by",
      head: w[by],
      width: "minmax(0, 2fr)",
      cell: (row) => row[by] || (by === "client" ? w.everybody : w.platform),
    },
    { id: "runs", head: w.runs, width: "100px", end: true, cell: (row) => number(row.runs) },
    { id: "fetches", head: w.fetches, width: "110px", end: true, cell: (row) => number(row.fetches) },
    { id: "failures", head: w.failures, width: "120px", end: true, line: 0, cell: (row) => number(row.failures) },
    { id: "mb", head: w.megabytes, width: "110px", end: true, cell: (row) => number(row.megabytes, 1) },
    {
      id: "residential",
      head: w.residential,
      width: "120px",
      end: true,
      line: 0,
      cell: (row) => number(row.residential_megabytes, 1),
    },
    { id: "browser", head: w.browser, width: "100px", end: true, line: 0, cell: (row) => lasts(row.browser_seconds) },
  ];
  return (
    <>
      <Head title={w.title} about={w.about}>
        <a class="button" download href={`/api/usage?by=${by}&since=${since}&format=csv`}>
          {w.csv}
        </a>
      </Head>
      <div class="line filters">
        <Chips
          label={w.by}
          value={by}
          options={BY.map((one) => [one, w[one]])}
          choose={(next) => change({ by: next })}
        />
        <Field label={w.since}>
          {(id) => (
            <input
              id={id}
              type="date"
              value={since}
              onChange={(event) => change({ since: event.currentTarget.value })}
            />
          )}
        </Field>
      </div>
      <Problem error={found.error} />
      {found.isPending ? (
        <Skeleton />
      ) : found.data?.rows.length ? (
        <Table
          label={w.title}
          columns={columns}
          rows={rowsOf(found.data.rows)}
          id={(row) => `${row.day}${row.client}${row.scraper}${row.site}`}
          most={20}
        />
      ) : (
        <Empty title={w.none} />
      )}
    </>
  );
}
