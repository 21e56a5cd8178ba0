/** Audit: who changed what, and who was refused. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { usePages } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Chips, Empty, Facts, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { Dialog } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { exact, number, useWords } from "#/words";
import type { AuditDocument } from "#client";
import { compared } from "./compared";
import { own } from "./words";

const SPANS: Record<string, number> = { hour: 3600, day: 86_400, week: 7 * 86_400, month: 30 * 86_400 };
/** Rows that are looked through for the one of a link. */
const FAR = 2000;

export default function Audit() {
  const w = useWords(own);
  const words = w as unknown as Record<string, string>;
  const { query, change } = useAddress();
  const since = useMemo(() => {
    const span = SPANS[query.since ?? ""];
    return span ? new Date(Date.now() - span * 1000).toISOString() : undefined;
  }, [query.since]);
  const asked = {
    client: query.client || undefined,
    action: query.action || undefined,
    resource: query.resource || undefined,
    refused: query.kind ? query.kind === "refused" : undefined,
    since,
    limit: 100,
  };
  const found = usePages("list_audit", { query: asked }, (page) => page.rows, { every: 5 });
  const chosen = query.row ? found.rows.find((row) => String(row.number) === query.row) : undefined;
  useEffect(() => {
    if (query.row && !chosen && found.rows.length < FAR) found.more();
  });
  const filtered = Boolean(query.client || query.action || query.resource || query.kind || query.since);
  const search = (name: "client" | "action" | "resource", label: string) => (
    <input
      class="narrow-input"
      type="search"
      aria-label={label}
      placeholder={label}
      value={query[name] ?? ""}
      onChange={(event) => change({ [name]: event.currentTarget.value })}
    />
  );
  const columns: Column<AuditDocument>[] = [
    { id: "action", head: w.action, width: "minmax(130px, 1fr)", cell: (row) => row.action },
    { id: "resource", head: w.resource, width: "minmax(0, 2.4fr)", cell: (row) => row.resource },
    { id: "who", head: w.who, width: "minmax(0, 1fr)", cell: (row) => <Who of={row} /> },
    { id: "outcome", head: w.outcome, width: "170px", cell: (row) => <Outcome of={row} /> },
    { id: "when", head: w.when, width: "110px", end: true, cell: (row) => <Time at={row.at} /> },
  ];
  const href = (row: AuditDocument) => {
    const next = new URLSearchParams(location.search);
    next.set("row", String(row.number));
    return `/audit?${next}`;
  };
  return (
    <>
      <Head title={w.title} about={w.about} />
      <div class="line filters">
        <Chips
          label={w.kind}
          value={query.kind ?? ""}
          options={[
            ["", w.all],
            ["changes", w.changes],
            ["refused", w.refused],
          ]}
          choose={(kind) => change({ kind })}
        />
        <Chips
          label={w.since}
          value={query.since ?? ""}
          options={[["", w.ever], ...Object.keys(SPANS).map((each) => [each, words[each]] as [string, string])]}
          choose={(each) => change({ since: each })}
        />
        {search("client", w.byClient)}
        {search("action", w.byAction)}
        {search("resource", w.byResource)}
      </div>
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton rows={10} />
      ) : found.rows.length === 0 ? (
        <Empty title={filtered ? w.noneFit : w.none}>{!filtered && w.noneAbout}</Empty>
      ) : (
        <Table
          label={w.title}
          columns={columns}
          rows={rowsOf(found.rows, found.more)}
          id={(row) => String(row.number)}
          href={href}
          selected={query.row}
          most={20}
        />
      )}
      {chosen && <Row of={chosen} close={() => change({ row: null })} />}
    </>
  );
}

function Who({ of }: { of: AuditDocument }) {
  const w = useWords(own);
  const name = of.client || (of.role ? w.everybody : w.nobody);
  return (
    <>
      {name} <span class="muted">{of.role}</span>
    </>
  );
}

function Outcome({ of }: { of: AuditDocument }) {
  const w = useWords(own);
  if (!of.code) return <Status of="done">{w.doneWord}</Status>;
  const times = of.count > 1 ? ` · ${w.times(number(of.count))}` : "";
  return <Status of="failed">{`${of.code}${times}`}</Status>;
}

function Row({ of, close }: { of: AuditDocument; close: () => void }) {
  const w = useWords(own);
  const [all, setAll] = useState(false);
  const fields = compared(of.before, of.after);
  const shown = all ? fields : fields.filter((field) => field.changed);
  return (
    <Dialog title={`${of.action} ${of.resource}`} close={close} wide>
      <div class="stack">
        <Facts
          facts={[
            [w.who, <Who of={of} />],
            [w.outcome, <Outcome of={of} />],
            [w.when, exact(of.at)],
            [w.address, of.address || w.gone],
            [w.key, of.key_id ? <code>{of.key_id}</code> : w.gone],
            [w.request, <code>{of.request_id || w.gone}</code>],
            [w.row(number(of.number)), <code>{of.hash}</code>],
          ]}
        />
        {fields.length > 0 && (
          <>
            <label class="check">
              <input type="checkbox" checked={!all} onChange={() => setAll(!all)} /> {w.onlyChanged}
            </label>
            {shown.length === 0 ? (
              <p class="muted">{w.same}</p>
            ) : (
              <table class="compare">
                <thead>
                  <tr>
                    <th scope="col">{w.field}</th>
                    <th scope="col">{w.before}</th>
                    <th scope="col">{w.after}</th>
                  </tr>
                </thead>
                <tbody>
                  {shown.map((field) => (
                    <tr key={field.name}>
                      <th scope="row">{field.name}</th>
                      <td>{field.changed && field.before !== undefined ? <del>{field.before}</del> : field.before}</td>
                      <td>{field.changed && field.after !== undefined ? <ins>{field.after}</ins> : field.after}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </>
        )}
      </div>
    </Dialog>
  );
}
