/** Try: one page or one scraper, and everything about what came of it. */

import { useState } from "preact/hooks";
import { api, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Copy, Empty, Field, Problem, Said } from "#/kit/base";
import { has } from "#/routes";
import { useWords } from "#/words";
import type { ScrapeCall } from "#client";
import { Outcome } from "../runs/outcome";
import { type Schema, SchemaForm } from "./form";
import { Make } from "./make";
import { type Call, EXTRACT, snippet, type Tool } from "./snippets";
import { own } from "./words";

const PAGE = "builtin/page";
const FORMATS = ["markdown", "raw_html", "text", "links", "product", "metadata", "tables", "headers"] as const;
const TOOLS: Tool[] = ["curl", "Python", "CLI", "TypeScript"];

export default function Try() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const scraper = query.scraper ?? PAGE;
  const url = query.url ?? "";
  const input = read(query.input);
  const described = useCall("get_scraper", {
    path: { site: scraper.split("/")[0]!, task: scraper.split("/")[1] ?? "" },
    query: {},
  });
  const schema = (described.data?.input_schema ?? {}) as Schema;
  const takesUrl = scraper === PAGE || "url" in (schema.properties ?? { url: {} });
  const call = callOf({ scraper, url: takesUrl ? url : "", input, query });
  const send = (body: Call) => api.call("scrape", { body: { ...body, wait: 0 } as ScrapeCall });
  const show = (taken: unknown) => change({ run: (taken as { id: string }).id });
  const start = useAction(send, { touches: ["list_runs"], done: show });
  const put = (next: Record<string, unknown>) =>
    change({ input: Object.keys(next).length ? JSON.stringify(next) : null, run: null });
  const submit = (event: Event) => {
    event.preventDefault();
    start.mutate(call);
  };
  return (
    <div class="stack">
      <h1 class="hidden">{w.title}</h1>
      <form class="stack" onSubmit={submit}>
        <div class="try-line">
          {takesUrl && (
            <input
              type="text"
              inputMode="url"
              aria-label={w.url}
              placeholder="https://"
              required
              value={url}
              onInput={(event) => change({ url: event.currentTarget.value, run: null })}
            />
          )}
          <ScraperChoice
            value={scraper}
            choose={(next) => change({ scraper: next === PAGE ? null : next, run: null, input: null })}
          />
          <button type="submit" class="main" disabled={start.isPending}>
            {w.run} <kbd>⏎</kbd>
          </button>
        </div>
        {scraper === EXTRACT && <Wanted schema={schema} input={input} change={put} />}
        {scraper !== PAGE && scraper !== EXTRACT && described.data && (
          <div class="panel grid">
            <SchemaForm schema={schema} skip={takesUrl ? ["url"] : []} value={input} change={put} />
          </div>
        )}
        <How isPage={scraper === PAGE} />
      </form>
      <Problem error={start.error} />
      {query.run ? (
        <>
          <div class="line">
            <span class="muted">{w.copyAs}</span>
            {TOOLS.map((tool) => (
              <Copy key={tool} text={snippet(tool, call, location.origin)}>
                {tool}
              </Copy>
            ))}
            <span class="spring" />
            {has("/jobs/new") && (
              <a class="button" href={`/jobs/new?${manyOf(scraper, url, input)}`}>
                {w.many} →
              </a>
            )}
            {has("/schedules/new") && (
              <a class="button" href={`/schedules/new?scrape=${encodeURIComponent(JSON.stringify(call))}`}>
                {w.daily} →
              </a>
            )}
            {scraper === PAGE && (
              <button type="button" onClick={() => change({ make: "1" })}>
                {w.make} →
              </button>
            )}
          </div>
          {query.make && <Make url={url} run={query.run} close={() => change({ make: null })} />}
          <Outcome
            key={query.run}
            id={query.run}
            tab={query.tab}
            choose={(tab) => change({ tab, mark: null })}
            teach={may("scrape") ? (next) => send({ ...call, url: undefined, input: next }).then(show) : undefined}
            shoot={
              scraper === PAGE && !query.screenshot
                ? () => {
                    change({ screenshot: "1", tab: "screenshot" });
                    start.mutate(callOf({ scraper, url, input, query: { ...query, screenshot: "1" } }));
                  }
                : undefined
            }
          />
        </>
      ) : (
        <Empty title={w.first}>
          {w.firstAbout} <code>scrapeyard demo-site</code> {w.firstThen}{" "}
          <a href="/try?url=http%3A%2F%2F127.0.0.1%3A8800%2Fproduct%2F1">http://127.0.0.1:8800/product/1</a>
        </Empty>
      )}
    </div>
  );
}

/** The job that does the same with more pages. What taught a pattern has taught it. */
function manyOf(scraper: string, url: string, { examples: _, ...input }: Record<string, unknown>): URLSearchParams {
  const query = new URLSearchParams(url ? { start: url } : {});
  if (scraper !== PAGE) query.set("scraper", scraper);
  if (scraper !== PAGE && Object.keys(input).length) query.set("input", JSON.stringify(input));
  return query;
}

function ScraperChoice({ value, choose }: { value: string; choose: (id: string) => void }) {
  const w = useWords(own);
  const found = useCall("list_scrapers", {});
  const ids = [
    ...new Set([value, ...(found.data?.scrapers ?? []).filter((one) => one.valid).map((one) => one.id)]),
  ].sort();
  return (
    <select aria-label={w.scraper} value={value} onChange={(event) => choose(event.currentTarget.value)}>
      {ids.map((id) => (
        <option key={id} value={id}>
          {id === EXTRACT ? w.toFields : id}
        </option>
      ))}
    </select>
  );
}

/** Which data are wanted, in a line; what else can be said is folded. */
function Wanted({
  schema,
  input,
  change,
}: {
  schema: Schema;
  input: Record<string, unknown>;
  change: (input: Record<string, unknown>) => void;
}) {
  const w = useWords(own);
  const { fields = "", ...rest } = input;
  return (
    <div class="panel stack">
      <Field label={w.fields} hint={<Said text={w.fieldsHint} />}>
        {(id) => (
          <input
            id={id}
            type="text"
            maxLength={10_000}
            placeholder="title, price: number"
            required={!("schema" in input || "prompt" in input)}
            value={typeof fields === "string" ? fields : JSON.stringify(fields)}
            onInput={({ currentTarget: { value } }) => change(value ? { ...rest, fields: wantedOf(value) } : rest)}
          />
        )}
      </Field>
      <details class="how">
        <summary>{w.moreOptions}</summary>
        <div class="grid">
          <SchemaForm schema={schema} skip={["url", "fields"]} value={input} change={change} />
        </div>
      </details>
    </div>
  );
}

/** Fields as a line of words, or as the JSON of a table. */
const wantedOf = (text: string): unknown => {
  try {
    return text.startsWith("{") ? JSON.parse(text) : text;
  } catch {
    return text;
  }
};

const read = (text: string | undefined): Record<string, unknown> => {
  try {
    const found = JSON.parse(text ?? "{}");
    return typeof found === "object" && found !== null ? found : {};
  } catch {
    return {};
  }
};

/** The call that the address describes. */
export function callOf({
  scraper,
  url,
  input,
  query,
}: {
  scraper: string;
  url: string;
  input: Record<string, unknown>;
  query: Record<string, string | undefined>;
}): Call {
  const policy: Record<string, unknown> = {};
  if (query.robots) policy.robots = query.robots;
  if (query.proxy) policy.proxy = query.proxy;
  if (query.fresh) policy.cache = "off";
  const call: Call = scraper === PAGE ? { url, formats: [...FORMATS] } : { scraper, ...(url ? { url } : {}), input };
  if (scraper === PAGE && query.engine) call.engine = query.engine;
  if (scraper === PAGE && query.screenshot) call.browser = { screenshot: true, full_page: true };
  return Object.keys(policy).length ? { ...call, policy } : call;
}

function How({ isPage }: { isPage: boolean }) {
  const w = useWords(own);
  const { query, change } = useAddress();
  const [open] = useState(Boolean(query.engine || query.robots || query.proxy || query.fresh));
  const said = [
    isPage ? w[`engine_${(query.engine ?? "auto") as "auto"}`] : "",
    query.proxy ?? "",
    query.robots ? `robots.txt: ${w[`robots_${query.robots as "obey"}`]}` : "",
  ].filter(Boolean);
  const select = (name: string, label: string, options: [string, string][]) => (
    <Field label={label}>
      {(id) => (
        <select
          id={id}
          value={query[name] ?? ""}
          onChange={(event) => change({ [name]: event.currentTarget.value, run: null })}
        >
          {options.map(([value, shown]) => (
            <option key={value} value={value}>
              {shown}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
  return (
    <details class="how" open={open}>
      <summary>
        {w.how}
        {said.length > 0 && <span class="muted"> · {said.join(" · ")}</span>}
      </summary>
      <div class="grid">
        {isPage &&
          select("engine", w.engine, [
            ["", w.engine_auto],
            ["http", w.engine_http],
            ["browser", w.engine_browser],
            ["light", w.engine_light],
          ])}
        {select("robots", w.robots, [
          ["", w.robots_default],
          ["obey", w.robots_obey],
          ["ignore", w.robots_ignore],
        ])}
        {select("fresh", w.fresh, [
          ["", w.fresh_any],
          ["off", w.fresh_off],
        ])}
        <Field label={w.proxy}>
          {(id) => (
            <input
              id={id}
              value={query.proxy ?? ""}
              placeholder={w.proxyHint}
              onChange={(event) => change({ proxy: event.currentTarget.value, run: null })}
            />
          )}
        </Field>
        {isPage && (
          <label class="check">
            <input
              type="checkbox"
              checked={Boolean(query.screenshot)}
              onChange={(event) => change({ screenshot: event.currentTarget.checked ? "1" : null, run: null })}
            />{" "}
            {w.screenshot}
          </label>
        )}
      </div>
    </details>
  );
}
