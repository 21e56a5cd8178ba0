/** Webhooks: messages to receivers, how each went, and sending one again. */

import { api, useAction, useCall, usePages } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Chips, Copy, Empty, Facts, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { Dialog, note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { has } from "#/routes";
import { exact, number, took, useWords } from "#/words";
import { common } from "#/words/common";
import type { AttemptDocument, DeliveryDocument, DeliveryState } from "#client";
import { own } from "./words";

const STATES: DeliveryState[] = ["waiting", "delivered", "failed"];

export default function Webhooks() {
  const w = useWords(own);
  const c = useWords(common) as unknown as Record<string, string>;
  const { query, change } = useAddress();
  const asked = {
    state: STATES.find((state) => state === query.state),
    subject: query.subject || undefined,
    limit: 100,
  };
  const found = usePages("list_deliveries", { query: asked }, (page) => page.deliveries, { every: 5 });
  const filtered = Boolean(query.state || query.subject);
  const columns: Column<DeliveryDocument>[] = [
    { id: "event", head: w.event, width: "minmax(120px, 1fr)", cell: (one) => one.event },
    { id: "state", head: w.state, width: "110px", cell: (one) => <Status of={one.state} /> },
    { id: "url", head: w.url, width: "minmax(0, 2fr)", cell: (one) => one.url },
    { id: "answer", head: w.answer, width: "minmax(0, 2fr)", line: 0, cell: (one) => one.error ?? one.status ?? "–" },
    { id: "tries", head: w.tries, width: "60px", end: true, line: 0, cell: (one) => number(one.attempts) },
    { id: "when", head: w.when, width: "110px", end: true, cell: (one) => <Time at={one.created_at} /> },
  ];
  const href = (one: DeliveryDocument) =>
    `/webhooks?${new URLSearchParams({ ...(query as Record<string, string>), delivery: one.id })}`;
  return (
    <>
      <Head title={w.title} about={w.about} />
      <div class="line filters">
        <Chips
          label={w.state}
          value={query.state ?? ""}
          options={[["", w.all], ...STATES.map((state) => [state, c[`st_${state}`]] as [string, string])]}
          choose={(state) => change({ state })}
        />
        <input
          class="narrow-input"
          type="search"
          aria-label={w.bySubject}
          placeholder={w.bySubject}
          value={query.subject ?? ""}
          onChange={(event) => change({ subject: event.currentTarget.value })}
        />
      </div>
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton rows={8} />
      ) : found.rows.length === 0 ? (
        <Empty title={filtered ? w.noneFit : w.none}>{!filtered && w.noneAbout}</Empty>
      ) : (
        <Table
          label={w.title}
          columns={columns}
          rows={rowsOf(found.rows, found.more)}
          id={(one) => one.id}
          href={href}
          selected={query.delivery}
          most={20}
        />
      )}
      {query.delivery && <One id={query.delivery} close={() => change({ delivery: null })} />}
    </>
  );
}

function subjectLink(subject: string) {
  if (subject.startsWith("run_")) return <a href={`/runs/${subject}`}>{subject}</a>;
  if (subject.startsWith("job_") && has("/jobs/:job_id")) return <a href={`/jobs/${subject}`}>{subject}</a>;
  return <code>{subject}</code>;
}

function One({ id, close }: { id: string; close: () => void }) {
  const w = useWords(own);
  const found = useCall("get_delivery", { path: { delivery_id: id } }, { every: 5 });
  const one = found.data;
  const replay = useAction(() => api.call("replay_delivery", { path: { delivery_id: id } }), {
    touches: ["list_deliveries", "get_delivery"],
    done: () => note(w.replayed),
  });
  return (
    <Dialog title={one ? `${one.event} → ${one.url}` : id} close={close} wide>
      <Problem error={found.error ?? replay.error} />
      {found.isPending ? (
        <Skeleton />
      ) : (
        one && (
          <div class="stack">
            <Facts
              facts={[
                [w.state, <Status of={one.state} />],
                [w.subject, subjectLink(one.subject)],
                [w.when, exact(one.created_at)],
                one.next_at ? [w.next, <Time at={one.next_at} />] : [w.ended, <Time at={one.finished_at} />],
                [w.giveUp, <Time at={one.give_up_at} />],
              ]}
            />
            <h3>{w.log}</h3>
            <Attempts of={one.log} />
            <div class="line">
              <h3>{w.body}</h3>
              <Copy text={one.body} />
            </div>
            <pre class="sent">{pretty(one.body)}</pre>
          </div>
        )
      )}
      {one && may("replay_delivery") && (
        <footer>
          <button type="button" class="main" disabled={replay.isPending} onClick={() => replay.mutate(undefined)}>
            {w.replay}
          </button>
        </footer>
      )}
    </Dialog>
  );
}

function Attempts({ of }: { of: AttemptDocument[] }) {
  const w = useWords(own);
  if (of.length === 0) return <p class="muted">–</p>;
  return (
    <table class="compare">
      <thead>
        <tr>
          <th scope="col">{w.when}</th>
          <th scope="col">{w.took}</th>
          <th scope="col">{w.answer}</th>
        </tr>
      </thead>
      <tbody>
        {[...of].reverse().map((each) => (
          <tr key={each.at}>
            <td>{exact(each.at)}</td>
            <td>{took(each.ms)}</td>
            <td class={each.error ? "status bad wrap" : "status good"}>{each.error ?? each.status ?? w.noAnswer}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
