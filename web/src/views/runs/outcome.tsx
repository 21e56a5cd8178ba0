/** What came of a run: its verdict in one line, then its data, page, pictures, logs and where the time went. */

import { useState } from "preact/hooks";
import { cache, useCall } from "#/api/client";
import { type LiveEvent, useLive } from "#/api/live";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Copy, Empty, Problem, Skeleton, Status, type Tab, Tabs } from "#/kit/base";
import { Data } from "#/kit/json";
import { rowsOf, Table } from "#/kit/table";
import { bytes, number, percent, took, useWords } from "#/words";
import type { RunDocument } from "#client";
import { extractedBy, Fields, Sure, type Teach } from "./fields";
import { LiveView } from "./live-view";
import { type Line, Logs } from "./logs";
import { Preview } from "./preview";
import { Waterfall } from "./waterfall";
import { own } from "./words";

const ENDED = ["succeeded", "failed", "cancelled"];
export const ended = (run: { status: string }) => ENDED.includes(run.status);

/** Follow a run: its document, and its lines as they come. */
export function useRun(id: string) {
  const found = useCall("get_run", { path: { run_id: id }, query: {} });
  const isOver = found.data ? ended(found.data) : false;
  const [lines, setLines] = useState<Line[]>([]);
  const told = (events: LiveEvent[]) => {
    const fresh = events.filter((event) => event.name === "log").map((event) => event.data as Line);
    if (fresh.length) setLines((now) => [...now, ...fresh].slice(-5000));
    if (events.some((event) => event.name !== "log" && event.name !== "fetch"))
      for (const name of ["get_run", "explain_run", "get_logs"])
        void cache.invalidateQueries({ queryKey: [name, { path: { run_id: id } }], exact: false });
  };
  const flow = useLive(found.data && !isOver ? `/api/scrape/${id}/events` : null, told);
  const kept = useCall("get_logs", { path: { run_id: id } }, { enabled: isOver });
  return {
    ...found,
    run: found.data,
    isOver,
    flow,
    lines: isOver && kept.data ? kept.data.lines : lines,
    cut: kept.data?.cut ?? false,
  };
}

/** The verdict in one line. */
export function Verdict({ run }: { run: RunDocument }) {
  const w = useWords(own);
  const page = (run.result ?? {}) as { status?: number; size?: number };
  const reason =
    run.exit_reason && run.exit_reason !== "succeeded" && run.exit_reason !== run.status ? run.exit_reason : "";
  const facts = [
    reason,
    page.status ? String(page.status) : "",
    run.usage ? took(run.usage.wall_ms) : "",
    run.usage ? bytes(run.usage.bytes_received) : "",
    run.usage ? Object.keys(run.usage.bytes_by_class).join(", ") : "",
    `${run.scraper}${run.version && !run.scraper.startsWith("builtin/") ? `@${run.version}` : ""}`,
    run.attempt > 1 ? w.attempt(number(run.attempt)) : "",
  ];
  return (
    <div>
      <p class="verdict">
        <Status of={run.status} /> {facts.filter(Boolean).join(" · ")}
      </p>
      {run.waiting && <p class="muted">{w.waits(run.waiting.message)}</p>}
      {run.progress && <p class="muted">{w.progress(percent((run.progress as { share?: number }).share ?? null))}</p>}
      {run.error && (
        <div class="problem" role="alert">
          <strong>{run.error.message}</strong>
          {run.error.traceback && (
            <details>
              <summary>{w.traceback}</summary>
              <pre>{run.error.traceback}</pre>
            </details>
          )}
        </div>
      )}
    </div>
  );
}

export function Outcome({
  id,
  tab,
  choose,
  whole,
  shoot,
  teach,
}: {
  id: string;
  tab?: string;
  choose: (tab: string) => void;
  whole?: boolean;
  /** Runs it again with a picture. */
  shoot?: () => void;
  /** Runs it with another input, which teaches a site's pattern. */
  teach?: Teach;
}) {
  const w = useWords(own);
  const { query } = useAddress();
  const { run, isOver, error, lines, cut, flow } = useRun(id);
  const explained = useCall(
    "explain_run",
    { path: { run_id: id } },
    { enabled: run !== undefined && (tab === "explain" || Boolean(whole) || run.status === "failed") },
  );
  if (error) return <Problem error={error} />;
  if (!run) return <Skeleton />;
  const tabs = tabsOf(run, w, { mark: query.mark, shoot, teach });
  const explain: Tab = {
    id: "explain",
    name: w.explain,
    body: () =>
      explained.data ? (
        <Waterfall told={explained.data} />
      ) : explained.error ? (
        <Problem error={explained.error} />
      ) : (
        <Skeleton />
      ),
  };
  const logs: Tab = {
    id: "logs",
    name: `${w.logs}${lines.length ? ` ${number(lines.length)}` : ""}`,
    body: () => <Logs lines={lines} cut={cut} flow={isOver ? "ended" : flow} />,
  };
  const live: Tab[] =
    !isOver && may("follow_run") ? [{ id: "live", name: w.live, body: () => <LiveView id={id} /> }] : [];
  const failed = run.status === "failed";
  const order = failed ? [explain, logs, ...tabs] : isOver ? [...tabs, explain, logs] : [logs, ...live, explain];
  return (
    <div>
      <div class="line">
        <Verdict run={run} />
        {!whole && (
          <a class="button" href={`/runs/${id}`}>
            {w.details}
          </a>
        )}
      </div>
      {!isOver && <p class="muted">{w.going}</p>}
      <Tabs label={w.result} tabs={order} chosen={tab} choose={choose} />
    </div>
  );
}

type OwnWords = ReturnType<typeof useWords<typeof own.en>>;

interface PageResult {
  markdown?: string | null;
  html?: string | null;
  raw_html?: string | null;
  final_url?: string;
  headers?: { name: string; value: string }[];
}

interface Acts {
  mark?: string;
  shoot?: () => void;
  teach?: Teach;
}

function tabsOf(run: RunDocument, w: OwnWords, { mark, shoot, teach }: Acts): Tab[] {
  const result = run.result as Record<string, unknown> | unknown[] | null;
  const page = (Array.isArray(result) ? {} : (result ?? {})) as PageResult;
  const html = page.raw_html ?? page.html;
  const records = recordsOf(result, SHOWN_ELSEWHERE);
  const picture = run.artifacts.find((one) => one.content_type.startsWith("image/"));
  const screenshot: Tab = {
    id: "screenshot",
    name: w.screenshot,
    body: () =>
      picture ? (
        <img class="shot" src={picture.href} alt={picture.name} />
      ) : (
        <Empty title={w.noShot}>
          <p>{w.noShotAbout}</p>
          <button type="button" onClick={shoot}>
            {w.shoot}
          </button>
        </Empty>
      ),
  };
  const found: (Tab | false)[] = [
    { id: "data", name: w.data, body: () => <Result run={run} isOnPage={Boolean(html)} teach={teach} /> },
    records.length > 1 && { id: "table", name: w.records, body: () => <Records rows={records} /> },
    Boolean(page.markdown) && { id: "markdown", name: w.markdown, body: () => <Text text={page.markdown!} /> },
    Boolean(html) && {
      id: "preview",
      name: w.preview,
      body: () => <Preview html={html!} address={page.final_url ?? ""} mark={mark} />,
    },
    (picture !== undefined || (Boolean(html) && shoot !== undefined)) && screenshot,
    Boolean(page.headers) && { id: "headers", name: w.headers, body: () => <Headers all={page.headers!} /> },
    { id: "raw", name: w.raw, body: () => <Text text={JSON.stringify(result, null, 2)} /> },
    run.artifacts.length > 0 && {
      id: "artifacts",
      name: `${w.artifacts} ${number(run.artifacts.length)}`,
      body: () => <Artifacts run={run} />,
    },
    { id: "input", name: w.inputTab, body: () => <Text text={JSON.stringify(run.input, null, 2)} /> },
  ];
  return found.filter((one): one is Tab => one !== false);
}

const SHOWN_ELSEWHERE = ["headers"];

/** The records of a result: a list of objects, or the first list of objects in it. */
export function recordsOf(result: unknown, skip: string[] = []): Record<string, unknown>[] {
  const isRecords = (value: unknown): value is Record<string, unknown>[] =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((one) => typeof one === "object" && one !== null && !Array.isArray(one));
  if (isRecords(result)) return result;
  if (typeof result === "object" && result !== null)
    for (const [name, value] of Object.entries(result)) if (isRecords(value) && !skip.includes(name)) return value;
  return [];
}

function Result({ run, isOnPage, teach }: { run: RunDocument; isOnPage: boolean; teach?: Teach }) {
  const w = useWords(own);
  if (run.result === null || run.result === undefined) return <Empty title={w.noData} />;
  const {
    markdown: _m,
    html: _h,
    text: _t,
    raw_html: _r,
    headers: _a,
    product,
    ...more
  } = run.result as Record<string, unknown> & { product?: Record<string, unknown> | null };
  const found = extractedBy(run);
  const rest = found ? without(more, ["data", "fields", "taught", "warnings"]) : more;
  const shown = Object.fromEntries(
    Object.entries(rest).filter(
      ([, value]) => value !== null && JSON.stringify(value) !== "{}" && JSON.stringify(value) !== "[]",
    ),
  );
  return (
    <div class="stack">
      {run.partial && <p class="muted">{w.partial}</p>}
      {found && <Fields run={run} found={found} teach={teach} />}
      {product && <Product product={product} isOnPage={isOnPage} />}
      <div class="panel">
        <Data value={Array.isArray(run.result) ? run.result : shown} />
      </div>
    </div>
  );
}

const without = (value: Record<string, unknown>, names: string[]) =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));

/** A product's fields, each with where it was found on the page. */
function Product({ product, isOnPage }: { product: Record<string, unknown>; isOnPage: boolean }) {
  const w = useWords(own);
  const { change } = useAddress();
  const { sources, confidence, ...fields } = product as { sources?: Record<string, string>; confidence?: number };
  const known = Object.entries(fields).filter(
    ([, value]) => value !== null && JSON.stringify(value) !== "[]" && JSON.stringify(value) !== "{}",
  );
  return (
    <section class="panel data">
      <h2>product {confidence !== undefined && <Sure share={confidence} />}</h2>
      <dl>
        {known.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Data value={value} depth={1} />
              {sources?.[name] && (
                <small class="muted">
                  {" "}
                  {w.from.toLowerCase()} {sources[name]}
                </small>
              )}
              {isOnPage && (typeof value === "string" || typeof value === "number") && (
                <button
                  type="button"
                  class="quiet small on-page"
                  aria-label={w.onPageOf(name)}
                  onClick={() => change({ tab: "preview", mark: String(value) }, false)}
                >
                  {w.onPage}
                </button>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function Records({ rows }: { rows: Record<string, unknown>[] }) {
  const w = useWords(own);
  const names = [...new Set(rows.slice(0, 200).flatMap((row) => Object.keys(row)))].slice(0, 12);
  const shown = (value: unknown) =>
    value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return (
    <Table
      label={w.records}
      columns={names.map((name) => ({
        id: name,
        head: name,
        cell: (row: { at: number; row: Record<string, unknown> }) => shown(row.row[name]),
      }))}
      rows={rowsOf(rows.map((row, at) => ({ at, row })))}
      id={(row) => String(row.at)}
    />
  );
}

function Text({ text }: { text: string }) {
  return (
    <div class="panel">
      <Copy text={text} />
      <pre>{text}</pre>
    </div>
  );
}

function Headers({ all }: { all: { name: string; value: string }[] }) {
  const w = useWords(own);
  return (
    <div class="panel">
      <Copy text={all.map((one) => `${one.name}: ${one.value}`).join("\n")} />
      <table class="compare headers" aria-label={w.headers}>
        <tbody>
          {all.map((one, at) => (
            <tr key={`${at}${one.name}`}>
              <th scope="row">{one.name}</th>
              <td>{one.value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Artifacts({ run }: { run: RunDocument }) {
  return (
    <ul class="panel files">
      {run.artifacts.map((one) => (
        <li key={one.name}>
          <a href={one.href} download={one.name}>
            {one.name}
          </a>{" "}
          <span class="muted">
            {one.content_type} · {bytes(one.size)}
          </span>
        </li>
      ))}
    </ul>
  );
}
