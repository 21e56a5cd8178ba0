/** What a job is made of: a site, a sitemap, a list or a file, tried before it starts. */

import { useCall } from "#/api/client";
import { Chips, Field, Problem } from "#/kit/base";
import { bytes, number, useWords } from "#/words";
import { own } from "./new-words";
import { csvRows, lines } from "./patterns";

export type Kind = "crawl" | "sitemap" | "paste" | "file";
export type Form = Record<string, string>;
const KINDS: Kind[] = ["crawl", "sitemap", "paste", "file"];

export interface Part {
  form: Form;
  set: (some: Form) => void;
}

export function Text({
  name,
  label,
  hint,
  form,
  set,
  ...rest
}: Part & {
  name: string;
  label: string;
  hint?: string;
  type?: string;
  required?: boolean;
  placeholder?: string;
  minLength?: number;
}) {
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

interface Given extends Part {
  kind: Kind;
  choose: (kind: Kind) => void;
  look: { isPending: boolean; error: unknown; mutate: () => void };
  found: { fit: string[]; all: number; hasMore: boolean } | null;
  file: FileGiven;
}

export function What({ kind, choose, look, found, file, form, set }: Given) {
  const w = useWords(own);
  return (
    <>
      <Chips label={w.what} value={kind} options={KINDS.map((one) => [one, w[`kind_${one}`]])} choose={choose} />
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
            <button type="button" class="low" disabled={!form.address || look.isPending} onClick={() => look.mutate()}>
              {look.isPending ? w.looking : w.look}
            </button>
          </div>
          <div class="grid">
            <Text name="limit" label={w.limit} type="number" form={form} set={set} />
            {kind === "crawl" && <Text name="depth" label={w.depth} type="number" form={form} set={set} />}
          </div>
          <div class="grid">
            <Area name="include" label={w.include} hint={w.patternHint} form={form} set={set} />
            <Area name="exclude" label={w.exclude} form={form} set={set} />
          </div>
          <Problem error={look.error} />
          {found && (
            <>
              <p role="status">
                {(found.hasMore ? w.foundMore : w.found)(number(found.fit.length), number(found.all))}
              </p>
              <pre class="sample" tabIndex={0} role="region" aria-label={w.sample}>
                {found.fit.slice(0, 20).join("\n")}
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
      {kind === "file" && <FileChoice {...file} scraper={form.scraper || "builtin/page"} />}
    </>
  );
}

interface FileGiven {
  file: File | null;
  take: (file: File, rows: string[][], about: number) => void;
  rows: string[][];
  columns: Record<string, string>;
  setColumns: (columns: Record<string, string>) => void;
}

const HEAD_BYTES = 65_536;

function FileChoice({ file, take: taken, rows, columns, setColumns, scraper }: FileGiven & { scraper: string }) {
  const w = useWords(own);
  const [site, task] = scraper.split("/") as [string, string];
  const described = useCall("get_scraper", { path: { site, task }, query: {} });
  const fields = Object.keys(
    (described.data?.input_schema?.properties as Record<string, unknown> | undefined) ?? { url: {} },
  );
  const take = async (given: File | null | undefined) => {
    if (!given) return;
    const text = await given.slice(0, HEAD_BYTES).text();
    const found = /\.(csv|tsv|txt)$/i.test(given.name) ? csvRows(text) : [];
    const head = found[0] ?? [];
    const isHead = head[0] !== undefined && !/^https?:/.test(head[0]);
    const ends = text.split("\n").filter((line) => line.trim()).length;
    const about = Math.round((ends / Math.max(1, Math.min(given.size, HEAD_BYTES))) * given.size) - (isHead ? 1 : 0);
    taken(given, found, Math.max(0, about));
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
          <pre class="sample" tabIndex={0} role="region" aria-label={w.firstRows}>
            {rows.map((row) => row.join(" · ")).join("\n")}
          </pre>
        </>
      )}
    </div>
  );
}
