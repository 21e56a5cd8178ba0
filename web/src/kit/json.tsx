/** Data as a reader's table: names on the left, values on the right, folded where there is much. */

import { useState } from "preact/hooks";
import { number, useWords, words } from "#/words";

const own = words(
  { fold: "Fold", items: (n: string) => `${n} entries`, all: "Show all" },
  { fold: "접기", items: (n: string) => `${n}개`, all: "모두 보기" },
);

const LONG = 400;

export function Data({ value, depth = 0 }: { value: unknown; depth?: number }) {
  if (value === null || value === undefined) return <span class="muted">null</span>;
  if (typeof value === "string") return <Text text={value} />;
  if (typeof value === "number") return <span class="num">{String(value)}</span>;
  if (typeof value === "boolean") return <span class="num">{String(value)}</span>;
  const entries = Array.isArray(value) ? value.map((each, at) => [String(at), each] as const) : Object.entries(value);
  if (entries.length === 0) return <span class="muted">{Array.isArray(value) ? "[]" : "{}"}</span>;
  if (Array.isArray(value) && value.every((each) => typeof each !== "object") && value.length <= 8)
    return <span>{value.map(String).join(" · ")}</span>;
  return <Fold entries={entries} depth={depth} />;
}

function Fold({ entries, depth }: { entries: (readonly [string, unknown])[]; depth: number }) {
  const w = useWords(own);
  const [open, setOpen] = useState(depth < 1);
  const [most, setMost] = useState(50);
  const fold = (
    <button type="button" class="quiet small" aria-expanded={open} onClick={() => setOpen(!open)}>
      {open ? `▾ ${w.fold}` : `▸ ${w.items(number(entries.length))}`}
    </button>
  );
  if (!open) return fold;
  return (
    <div class="data">
      {depth > 0 && fold}
      <dl>
        {entries.slice(0, most).map(([name, each]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Data value={each} depth={depth + 1} />
            </dd>
          </div>
        ))}
      </dl>
      {entries.length > most && (
        <button type="button" class="small" onClick={() => setMost(entries.length)}>
          {w.all} ({number(entries.length)})
        </button>
      )}
    </div>
  );
}

function Text({ text }: { text: string }) {
  const w = useWords(own);
  const [all, setAll] = useState(false);
  const cut = !all && text.length > LONG;
  return (
    <span class="text">
      {cut ? `${text.slice(0, LONG)}…` : text}
      {cut && (
        <button type="button" class="quiet small" onClick={() => setAll(true)}>
          {w.all}
        </button>
      )}
    </span>
  );
}
