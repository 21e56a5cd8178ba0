/** Dead letters: items that ended as errors, over all jobs, with the way to run them again. */

import { useState } from "preact/hooks";
import { api, cache, usePages } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Empty, Head, Problem, Skeleton, Time } from "#/kit/base";
import { Confirm, note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { number, useWords, words } from "#/words";
import type { DeadLetterDocument, ExitReason } from "#client";
import { brief } from "../runs";

const own = words(
  {
    title: "Dead letters",
    about: "Items that ended as errors, of all jobs, those of the newest job first.",
    none: "No dead letters",
    noneAbout: "Items whose last attempt failed stay here until they run again or their job is removed.",
    input: "Input",
    reason: "Why",
    http: "HTTP",
    site: "Site",
    message: "What happened",
    when: "When",
    again: "Run again",
    ask: "Run this item again?",
    askAbout: "It is tried again from its first attempt, in its own job.",
    done: (n: string) => `${n} items run again`,
  },
  {
    title: "실패 보관함",
    about: "모든 작업에서 오류로 끝난 항목입니다. 최신 작업부터 보입니다.",
    none: "실패한 항목이 없습니다",
    noneAbout: "마지막 시도가 실패한 항목은 다시 실행하거나 작업을 지울 때까지 여기에 있습니다.",
    input: "입력",
    reason: "이유",
    http: "HTTP",
    site: "사이트",
    message: "무슨 일",
    when: "언제",
    again: "다시 실행",
    ask: "이 항목을 다시 실행할까요?",
    askAbout: "원래 작업에서 첫 시도부터 다시 실행합니다.",
    done: (n: string) => `항목 ${n}개를 다시 실행합니다`,
  },
);

export default function Letters() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const asked = {
    exit_reason: query.reason ? [query.reason as ExitReason] : undefined,
    site: query.site ? [query.site] : undefined,
    scraper: query.scraper,
    limit: 100,
  };
  const found = usePages("list_dead_letters", { query: asked }, (page) => page.items, { every: 5 });
  const [asking, setAsking] = useState<DeadLetterDocument | null>(null);
  const columns: Column<DeadLetterDocument>[] = [
    { id: "input", head: w.input, width: "minmax(0, 2fr)", cell: (one) => brief(one.input) || one.id },
    {
      id: "reason",
      head: w.reason,
      width: "150px",
      cell: (one) => (
        <button type="button" class="quiet small" onClick={() => change({ reason: one.exit_reason })}>
          {one.exit_reason}
        </button>
      ),
    },
    { id: "http", head: w.http, width: "56px", end: true, cell: (one) => one.http_status ?? "" },
    { id: "message", head: w.message, width: "minmax(0, 2fr)", line: 0, cell: (one) => one.error?.message ?? "" },
    { id: "when", head: w.when, width: "100px", end: true, cell: (one) => <Time at={one.finished_at} /> },
    {
      id: "again",
      head: "",
      width: "110px",
      end: true,
      cell: (one) =>
        may("redrive_job") ? (
          <button type="button" class="small" onClick={() => setAsking(one)}>
            {w.again}
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
        {(["reason", "site", "scraper"] as const).map(
          (name) =>
            query[name] && (
              <button key={name} type="button" class="small" onClick={() => change({ [name]: null })}>
                {query[name]} ✕
              </button>
            ),
        )}
      </div>
      <Problem error={found.error} />
      {found.isPending ? (
        <Skeleton />
      ) : found.rows.length ? (
        <Table
          label={w.title}
          columns={columns}
          rows={rowsOf(found.rows, found.more)}
          id={(one) => `${one.job_id}/${one.id}`}
          href={(one) => `/jobs/${one.job_id}?tab=items&status=error&item=${encodeURIComponent(one.id)}`}
          most={20}
        />
      ) : (
        <Empty title={w.none}>{w.noneAbout}</Empty>
      )}
      {asking && (
        <Confirm
          title={w.ask}
          verb={w.again}
          close={() => setAsking(null)}
          act={async () => {
            const done = await api.call("redrive_job", {
              path: { job_id: asking.job_id },
              body: { keys: [asking.id] },
            });
            note(w.done(number(done.items)));
            await cache.invalidateQueries({ queryKey: ["list_dead_letters"] });
          }}
        >
          {w.askAbout}
        </Confirm>
      )}
    </>
  );
}
