/** Webhooks: what was sent to whom, and send it again. */

import { api, useAction, usePages } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Chips, Empty, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { number, useWords, words } from "#/words";
import { common } from "#/words/common";
import type { DeliveryDocument, DeliveryState } from "#client";

const own = words(
  {
    title: "Webhooks",
    about: "Messages to your receivers about jobs and runs, newest first.",
    none: "No messages yet",
    noneAbout: "Give a job or a run a `webhook`, and what is sent to it appears here.",
    event: "Event",
    to: "Receiver",
    state: "Status",
    attempts: "Tries",
    answer: "Answer",
    when: "When",
    replay: "Send again",
    replayed: "It is sent again",
  },
  {
    title: "웹훅",
    about: "작업과 실행에 대해 수신자에게 보낸 메시지입니다. 최신순.",
    none: "아직 메시지가 없습니다",
    noneAbout: "작업이나 실행에 `webhook`을 주면 보낸 것이 여기에 나타납니다.",
    event: "사건",
    to: "수신자",
    state: "상태",
    attempts: "시도",
    answer: "응답",
    when: "언제",
    replay: "다시 보내기",
    replayed: "다시 보냅니다",
  },
);
const STATES: DeliveryState[] = ["waiting", "delivered", "failed"];

export default function Webhooks() {
  const w = useWords(own);
  const c = useWords(common) as unknown as Record<string, string>;
  const { query, change } = useAddress();
  const found = usePages(
    "list_deliveries",
    { query: { state: (query.state || undefined) as DeliveryState | undefined, limit: 100 } },
    (page) => page.deliveries,
    { every: 5 },
  );
  const replay = useAction((delivery_id: string) => api.call("replay_delivery", { path: { delivery_id } }), {
    touches: ["list_deliveries"],
    done: () => note(w.replayed),
  });
  const columns: Column<DeliveryDocument>[] = [
    { id: "event", head: w.event, width: "minmax(0, 1fr)", cell: (one) => one.event },
    { id: "state", head: w.state, width: "120px", cell: (one) => <Status of={one.state} /> },
    { id: "to", head: w.to, width: "minmax(0, 2fr)", cell: (one) => one.url },
    { id: "attempts", head: w.attempts, width: "60px", end: true, line: 0, cell: (one) => number(one.attempts) },
    {
      id: "answer",
      head: w.answer,
      width: "minmax(0, 1fr)",
      cell: (one) => [one.status, one.error].filter(Boolean).join(" "),
    },
    { id: "when", head: w.when, width: "100px", end: true, cell: (one) => <Time at={one.created_at} /> },
    {
      id: "replay",
      head: "",
      width: "120px",
      end: true,
      cell: (one) =>
        one.state !== "waiting" && may("replay_delivery") ? (
          <button type="button" class="small" onClick={() => replay.mutate(one.id)}>
            {w.replay}
          </button>
        ) : (
          ""
        ),
    },
  ];
  return (
    <>
      <Head title={w.title} about={w.about} />
      <div class="line filters">
        <Chips
          label={w.state}
          value={query.state ?? ""}
          options={[["", c.all!], ...STATES.map((one) => [one, c[`st_${one}`]!] as [string, string])]}
          choose={(state) => change({ state })}
        />
      </div>
      <Problem error={found.error ?? replay.error} />
      {found.isPending ? (
        <Skeleton />
      ) : found.rows.length ? (
        <Table label={w.title} columns={columns} rows={rowsOf(found.rows, found.more)} id={(one) => one.id} most={20} />
      ) : (
        <Empty title={w.none}>{w.noneAbout}</Empty>
      )}
    </>
  );
}
