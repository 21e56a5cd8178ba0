/** Alerts: what is wrong now, what was, and whether the receivers hear of it. */

import { api, useAction, usePages } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Chips, Empty, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { number, useWords, words } from "#/words";
import type { AlertDocument } from "#client";

const own = words(
  {
    title: "Alerts",
    about: "What the platform found to be wrong, newest first.",
    none: "Nothing is wrong, and nothing was lately",
    noneAbout:
      "The rules of `alerts.rules` are looked at all the time. Name a receiver in the settings, and it is told.",
    noneFit: "No alert fits this filter",
    receivers: (names: string) => `Told to: ${names}`,
    nobody: "Nobody is told: no receiver is set. Name `alerts.webhook_url`, `alerts.slack_url` or `alerts.email_to`.",
    test: "Try the receivers",
    sent: (n: string) => `${n} messages sent; see Webhooks for how they went`,
    state: "State",
    all: "All",
    firing: "firing",
    resolved: "resolved",
    what: "What is wrong",
    rule: "Rule",
    subject: "About",
    told: "Told",
    times: (n: string) => `${n} times`,
    since: "Since",
    over: "Over",
  },
  {
    title: "알림",
    about: "플랫폼이 찾은 문제를 최신순으로 보여 줍니다.",
    none: "지금도 최근에도 문제가 없습니다",
    noneAbout: "`alerts.rules`의 규칙을 계속 살핍니다. 설정에 받을 곳을 정하면 알려 줍니다.",
    noneFit: "필터에 맞는 알림이 없습니다",
    receivers: (names: string) => `받는 곳: ${names}`,
    nobody:
      "받는 곳이 없어 아무에게도 알리지 않습니다. `alerts.webhook_url`, `alerts.slack_url`, `alerts.email_to` 중 하나를 정하세요.",
    test: "받는 곳 시험하기",
    sent: (n: string) => `메시지 ${n}개를 보냈습니다. 결과는 웹훅 화면에 있습니다`,
    state: "상태",
    all: "전체",
    firing: "진행 중",
    resolved: "해결됨",
    what: "문제",
    rule: "규칙",
    subject: "대상",
    told: "알림",
    times: (n: string) => `${n}번`,
    since: "시작",
    over: "끝",
  },
);
type AlertState = AlertDocument["state"];
const STATES: AlertState[] = ["firing", "resolved"];

export default function Alerts() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const state = STATES.find((each) => each === query.state);
  const found = usePages("list_alerts", { query: { state, limit: 100 } }, (page) => page.alerts, { every: 5 });
  const receivers = found.data?.pages[0]?.receivers ?? [];
  const test = useAction(() => api.call("try_alerts", {}), {
    touches: ["list_deliveries"],
    done: ({ deliveries }) => note(w.sent(number(Object.keys(deliveries).length))),
  });
  const columns: Column<AlertDocument>[] = [
    { id: "what", head: w.what, width: "minmax(0, 3fr)", cell: (one) => <span title={one.words}>{one.words}</span> },
    {
      id: "state",
      head: w.state,
      width: "110px",
      cell: (one) => <Status of={one.state === "firing" ? "failed" : "done"}>{w[one.state]}</Status>,
    },
    { id: "rule", head: w.rule, width: "minmax(0, 1fr)", line: 0, cell: (one) => one.rule },
    { id: "subject", head: w.subject, width: "minmax(0, 1fr)", cell: (one) => one.subject },
    { id: "told", head: w.told, width: "90px", end: true, line: 0, cell: (one) => w.times(number(one.tells)) },
    { id: "since", head: w.since, width: "110px", end: true, cell: (one) => <Time at={one.started_at} /> },
    { id: "over", head: w.over, width: "110px", end: true, line: 0, cell: (one) => <Time at={one.resolved_at} /> },
  ];
  return (
    <>
      <Head title={w.title} about={w.about}>
        {may("try_alerts") && receivers.length > 0 && (
          <button type="button" disabled={test.isPending} onClick={() => test.mutate(undefined)}>
            {w.test}
          </button>
        )}
      </Head>
      <div class="line filters">
        <Chips
          label={w.state}
          value={state ?? ""}
          options={[["", w.all], ...STATES.map((each) => [each, w[each]] as [AlertState, string])]}
          choose={(each) => change({ state: each })}
        />
        <span class="muted">{receivers.length > 0 && w.receivers(receivers.join(", "))}</span>
      </div>
      <Problem error={found.error ?? test.error} />
      {found.isPending ? (
        <Skeleton />
      ) : found.rows.length === 0 ? (
        <Empty title={state ? w.noneFit : w.none}>{!state && (receivers.length ? w.noneAbout : w.nobody)}</Empty>
      ) : (
        <Table label={w.title} columns={columns} rows={rowsOf(found.rows, found.more)} id={(one) => one.id} most={20} />
      )}
    </>
  );
}
