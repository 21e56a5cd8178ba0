/** The audit: who changed what, and whom the server refused. */

import { usePages } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Chips, Empty, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { useWords, words } from "#/words";
import type { AuditDocument } from "#client";

const own = words(
  {
    title: "Audit",
    about:
      "Every change and every refused call. The rows are chained by hashes; `scrapeyard audit verify` checks them.",
    none: "No rows",
    all: "All",
    done: "done",
    refused: "refused",
    action: "Action",
    who: "Who",
    what: "What",
    result: "Result",
    from: "From",
    when: "When",
    nobody: "nobody known",
    search: "Client",
  },
  {
    title: "감사 기록",
    about: "모든 변경과 거부된 호출입니다. 행은 해시로 이어지며 `scrapeyard audit verify`로 확인합니다.",
    none: "기록이 없습니다",
    all: "전체",
    done: "처리됨",
    refused: "거부됨",
    action: "동작",
    who: "누가",
    what: "대상",
    result: "결과",
    from: "어디서",
    when: "언제",
    nobody: "알 수 없음",
    search: "클라이언트",
  },
);

export default function Audit() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const refused = query.refused === undefined ? undefined : query.refused === "1";
  const found = usePages(
    "list_audit",
    { query: { refused, client: query.client || undefined, limit: 100 } },
    (page) => page.rows,
    { every: 5 },
  );
  const columns: Column<AuditDocument>[] = [
    { id: "action", head: w.action, width: "minmax(0, 1fr)", cell: (one) => one.action },
    {
      id: "result",
      head: w.result,
      width: "170px",
      cell: (one) => <Status of={one.code ? "failed" : "ok"}>{one.code || w.done}</Status>,
    },
    { id: "what", head: w.what, width: "minmax(0, 2fr)", cell: (one) => one.resource },
    {
      id: "who",
      head: w.who,
      width: "minmax(0, 1fr)",
      cell: (one) => (one.client ? `${one.client} (${one.role})` : w.nobody),
    },
    { id: "from", head: w.from, width: "120px", line: 0, cell: (one) => one.address },
    { id: "when", head: w.when, width: "100px", end: true, cell: (one) => <Time at={one.at} /> },
  ];
  return (
    <>
      <Head title={w.title} about={w.about} />
      <div class="line filters">
        <Chips
          label={w.result}
          value={query.refused ?? ""}
          options={[
            ["", w.all],
            ["0", w.done],
            ["1", w.refused],
          ]}
          choose={(next) => change({ refused: next })}
        />
        <input
          class="narrow-input"
          type="search"
          aria-label={w.search}
          placeholder={w.search}
          value={query.client ?? ""}
          onChange={(event) => change({ client: event.currentTarget.value })}
        />
      </div>
      <Problem error={found.error} />
      {found.isPending ? (
        <Skeleton />
      ) : found.rows.length ? (
        <Table
          label={w.title}
          columns={columns}
          rows={rowsOf(found.rows, found.more)}
          id={(one) => String(one.number)}
          most={20}
        />
      ) : (
        <Empty title={w.none} />
      )}
    </>
  );
}
