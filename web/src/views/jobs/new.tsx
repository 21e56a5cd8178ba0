/** A new job on one page: what, how, then, and what will be asked of the site. */

import { useState } from "preact/hooks";
import { api, send, useAction, useCall } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Chips, Field, Head, Problem } from "#/kit/base";
import { bytes, lasts, number, useWords } from "#/words";
import { ApiError, type CreatedJobDocument, type ExportCall, type JobCall } from "#client";
import { own } from "./new-words";
import { chosen, csvRows, lines } from "./patterns";

type Kind = "crawl" | "sitemap" | "paste" | "file";
type Form = Record<string, string>;
const SAMPLE = 1000;
const EXPORTS: Record<string, ExportCall> = {
  full_csv: { type: "full", format: "csv" },
  full_xlsx: { type: "full", format: "xlsx" },
  pages_jsonl: { type: "pages", format: "jsonl" },
  records_csv: { type: "records", format: "csv" },
};

export default function NewJob() {
  const w = useWords(own);
  const { query, change, go } = useAddress();
  const kind = (query.kind ?? "crawl") as Kind;
  const [form, setForm] = useState<Form>({
    address: query.start ?? query.url ?? "",
    scraper: query.scraper ?? "",
    limit: "1000",
    depth: "3",
    export: "full_csv",
  });
  const [file, setFile] = useState<File | null>(null);
  const [columns, setColumns] = useState<Record<string, string>>({});
  const set = (some: Form) => setForm((now) => ({ ...now, ...some }));
  const look = useAction(async () => {
    const run = await api.call("map_site", {
      body: { url: form.address!, limit: SAMPLE, sitemap: true, scope: kind === "sitemap" ? "any" : "host", wait: 60 },
    });
    return (run as { result: { urls: { url: string; source: string }[]; has_more: boolean } }).result;
  });
  const start = useAction(() => create(kind, form, file, columns), {
    touches: ["list_jobs", "get_stats"],
    done: (job) => go(`/jobs/${job.id}`),
  });
  const found = (look.data?.urls ?? [])
    .filter((one) => kind === "crawl" || one.source === "sitemap")
    .map((one) => one.url);
  const fit = chosen(found, form.include ?? "", form.exclude ?? "");
  const pages =
    kind === "paste"
      ? lines(form.list ?? "").length
      : found.length
        ? Math.min(fit.length, Number(form.limit) || fit.length)
        : 0;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        start.mutate(undefined);
      }}
    >
      <Head title={w.title} about={w.about}>
        <button type="submit" class="main" disabled={start.isPending || (kind === "file" && !file)}>
          {w.start_}
        </button>
      </Head>
      <Problem error={start.error} />
      <div class="stack">
        <section class="panel stack">
          <h2>{w.what}</h2>
          <Chips
            label={w.what}
            value={kind}
            options={(["crawl", "sitemap", "paste", "file"] as Kind[]).map((one) => [one, w[`kind_${one}`]])}
            choose={(next) => {
              change({ kind: next === "crawl" ? null : next });
              look.reset();
            }}
          />
          {(kind === "crawl" || kind === "sitemap") && (
            <>
              <div class="two">
                <Text
                  name="address"
                  label={kind === "crawl" ? w.start : w.sitemap}
                  hint={kind === "crawl" ? w.startHint : w.sitemapHint}
                  form={form}
                  set={set}
                  required
                  placeholder="https://"
                />
                <button
                  type="button"
                  class="low"
                  disabled={!form.address || look.isPending}
                  onClick={() => look.mutate(undefined)}
                >
                  {look.isPending ? w.looking : w.look}
                </button>
              </div>
              <div class="grid">
                <Area name="include" label={w.include} hint={w.patternHint} form={form} set={set} />
                <Area name="exclude" label={w.exclude} form={form} set={set} />
              </div>
              <Problem error={look.error} />
              {look.data && (
                <>
                  <p role="status">
                    {(look.data.has_more ? w.foundMore : w.found)(number(fit.length), number(found.length))}
                  </p>
                  <pre class="sample" tabIndex={0}>
                    {fit.slice(0, 20).join("\n")}
                  </pre>
                </>
              )}
            </>
          )}
          {kind === "paste" && (
            <Field label={w.list} hint={form.list ? w.items(number(lines(form.list).length)) : undefined}>
              {(id) => (
                <textarea
                  id={id}
                  rows={8}
                  required
                  value={form.list ?? ""}
                  onInput={(event) => set({ list: event.currentTarget.value })}
                />
              )}
            </Field>
          )}
          {kind === "file" && (
            <FileChoice
              file={file}
              setFile={setFile}
              scraper={form.scraper || "builtin/page"}
              columns={columns}
              setColumns={setColumns}
            />
          )}
        </section>
        <section class="panel stack">
          <h2>{w.how}</h2>
          <div class="grid">
            <Scraper form={form} set={set} />
            <Text name="rate" label={w.rate} hint={w.rateHint} type="number" form={form} set={set} />
            {(kind === "crawl" || kind === "sitemap") && (
              <Text name="limit" label={w.limit} type="number" form={form} set={set} />
            )}
          </div>
          <details>
            <summary>{w.advanced}</summary>
            <div class="grid">
              {kind === "crawl" && <Text name="depth" label={w.depth} type="number" form={form} set={set} />}
              <Text name="concurrency" label={w.concurrency} type="number" form={form} set={set} />
              <Text name="retries" label={w.retries} type="number" form={form} set={set} />
              <Text name="megabytes" label={w.budget} type="number" form={form} set={set} />
              <Field label={w.robots}>
                {(id) => (
                  <select
                    id={id}
                    value={form.robots ?? ""}
                    onChange={(event) => set({ robots: event.currentTarget.value })}
                  >
                    <option value="">{w.default}</option>
                    <option value="obey">{w.obey}</option>
                    <option value="ignore">{w.ignore}</option>
                  </select>
                )}
              </Field>
            </div>
          </details>
        </section>
        <section class="panel stack">
          <h2>{w.after}</h2>
          <div class="grid">
            <Text name="name" label={w.name} form={form} set={set} />
            <Field label={w.export}>
              {(id) => (
                <select id={id} value={form.export} onChange={(event) => set({ export: event.currentTarget.value })}>
                  {Object.keys(EXPORTS).map((one) => (
                    <option key={one} value={one}>
                      {w[one as "full_csv"]}
                    </option>
                  ))}
                  <option value="">{w.nothing}</option>
                </select>
              )}
            </Field>
            <Text name="webhook" label={w.webhook} form={form} set={set} placeholder="https://" />
          </div>
          <label class="check">
            <input
              type="checkbox"
              checked={form.changes === "1"}
              onChange={(event) => set({ changes: event.currentTarget.checked ? "1" : "" })}
            />{" "}
            {w.changes}
          </label>
          {pages > 0 && (
            <p class="muted">
              {form.rate
                ? w.estimate(number(pages), form.rate, lasts(pages / Number(form.rate)))
                : w.estimateFree(number(pages))}
            </p>
          )}
        </section>
      </div>
    </form>
  );
}

interface Part {
  form: Form;
  set: (some: Form) => void;
}

function Text({
  name,
  label,
  hint,
  form,
  set,
  ...rest
}: Part & { name: string; label: string; hint?: string; type?: string; required?: boolean; placeholder?: string }) {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <input
          id={id}
          {...rest}
          {...(rest.type === "number" ? { min: "0", step: "any" } : {})}
          value={form[name] ?? ""}
          onInput={(event) => set({ [name]: event.currentTarget.value })}
        />
      )}
    </Field>
  );
}

function Area({ name, label, hint, form, set }: Part & { name: string; label: string; hint?: string }) {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <textarea
          id={id}
          rows={2}
          value={form[name] ?? ""}
          onInput={(event) => set({ [name]: event.currentTarget.value })}
        />
      )}
    </Field>
  );
}

function Scraper({ form, set }: Part) {
  const w = useWords(own);
  const found = useCall("list_scrapers", {});
  const ids = [
    ...new Set(
      (found.data?.scrapers ?? [])
        .filter((one) => one.valid && !["builtin/map", "builtin/actions", "builtin/replay"].includes(one.id))
        .map((one) => one.id),
    ),
  ].sort();
  return (
    <Field label={w.scraper}>
      {(id) => (
        <select id={id} value={form.scraper} onChange={(event) => set({ scraper: event.currentTarget.value })}>
          <option value="">builtin/page</option>
          {ids
            .filter((one) => one !== "builtin/page")
            .map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
        </select>
      )}
    </Field>
  );
}

function FileChoice({
  file,
  setFile,
  scraper,
  columns,
  setColumns,
}: {
  file: File | null;
  setFile: (file: File | null) => void;
  scraper: string;
  columns: Record<string, string>;
  setColumns: (columns: Record<string, string>) => void;
}) {
  const w = useWords(own);
  const [rows, setRows] = useState<string[][]>([]);
  const [site, task] = scraper.split("/") as [string, string];
  const described = useCall("get_scraper", { path: { site, task }, query: {} });
  const fields = Object.keys(
    (described.data?.input_schema?.properties as Record<string, unknown> | undefined) ?? { url: {} },
  );
  const take = async (given: File | null | undefined) => {
    if (!given) return;
    setFile(given);
    const found = /\.(csv|tsv|txt)$/i.test(given.name) ? csvRows(await given.slice(0, 65536).text()) : [];
    setRows(found);
    const head = found[0] ?? [];
    setColumns(Object.fromEntries(head.filter((name) => fields.includes(name)).map((name) => [name, name])));
  };
  const head = rows[0] ?? [];
  const isTable = head.length > 1 || (head[0] !== undefined && !/^https?:/.test(head[0]));
  return (
    <div
      class="drop stack"
      role="group"
      aria-label={w.file}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void take(event.dataTransfer?.files[0]);
      }}
    >
      <Field label={w.file} hint={file ? w.upload(file.name, bytes(file.size)) : w.fileHint}>
        {(id) => (
          <input
            id={id}
            type="file"
            accept=".csv,.tsv,.txt,.json,.jsonl"
            onChange={(event) => void take(event.currentTarget.files?.[0])}
          />
        )}
      </Field>
      {isTable && (
        <>
          <h3>{w.columnsFor}</h3>
          <div class="grid">
            {head.map((name) => (
              <Field key={name} label={name}>
                {(id) => (
                  <select
                    id={id}
                    value={columns[name] ?? ""}
                    onChange={(event) => {
                      const { [name]: _, ...rest } = columns;
                      setColumns(event.currentTarget.value ? { ...rest, [name]: event.currentTarget.value } : rest);
                    }}
                  >
                    <option value="">{w.leaveOut}</option>
                    {fields.map((one) => (
                      <option key={one} value={one}>
                        {one}
                      </option>
                    ))}
                  </select>
                )}
              </Field>
            ))}
          </div>
        </>
      )}
      {rows.length > 0 && (
        <>
          <h3>{w.firstRows}</h3>
          <pre class="sample" tabIndex={0}>
            {rows.map((row) => row.join(" · ")).join("\n")}
          </pre>
        </>
      )}
    </div>
  );
}

const count = (text: string | undefined) => (text ? Number(text) : undefined);

/** The body of the call, without what was left open. */
export function jobOf(kind: Kind, form: Form): JobCall {
  const include = lines(form.include ?? "");
  const exclude = lines(form.exclude ?? "");
  const wish = EXPORTS[form.export ?? ""];
  const policy = {
    rate: count(form.rate),
    concurrency: count(form.concurrency),
    retries: count(form.retries),
    robots: (form.robots || undefined) as "obey" | undefined,
    budget: form.megabytes ? { megabytes: Number(form.megabytes) } : undefined,
    snapshots: form.changes ? {} : undefined,
  };
  return {
    scraper: form.scraper || "builtin/page",
    name: form.name || undefined,
    policy,
    exports: wish ? [wish] : undefined,
    webhook: form.webhook ? { url: form.webhook } : undefined,
    ...(kind === "crawl"
      ? {
          start_url: form.address,
          follow: {
            include,
            exclude,
            depth: count(form.depth),
            limit: count(form.limit),
            scope: "host" as const,
            sitemap: true,
          },
        }
      : {}),
    ...(kind === "sitemap"
      ? { sitemap_url: form.address, sitemap: { include, exclude, limit: count(form.limit) } }
      : {}),
    ...(kind === "paste" ? { items: lines(form.list ?? "") } : {}),
  };
}

async function create(
  kind: Kind,
  form: Form,
  file: File | null,
  columns: Record<string, string>,
): Promise<{ id: string }> {
  const call = jobOf(kind, form);
  if (kind !== "file" || !file) return api.call("create_job", { body: call });
  const query = new URLSearchParams({ scraper: call.scraper! });
  if (call.name) query.set("name", call.name);
  if (call.policy) query.set("policy", JSON.stringify(call.policy));
  if (call.exports) query.set("exports", JSON.stringify(call.exports));
  if (call.webhook) query.set("webhook", JSON.stringify(call.webhook));
  if (Object.keys(columns).length) query.set("columns", JSON.stringify(columns));
  const type = /\.jsonl$/i.test(file.name)
    ? "application/x-ndjson"
    : /\.json$/i.test(file.name)
      ? "application/json"
      : /\.csv$/i.test(file.name)
        ? "text/csv"
        : "text/plain";
  const answer = await send(`/api/jobs?${query}`, { method: "POST", headers: { "Content-Type": type }, body: file });
  const said = await answer.json();
  if (!answer.ok) throw new ApiError(answer.status, said);
  return said as CreatedJobDocument;
}
