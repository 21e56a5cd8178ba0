/** Small parts that every view uses. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { store } from "#/api/store";
import { ago, exact, useWords } from "#/words";
import { common } from "#/words/common";
import { ApiError } from "#client";

const TONES: Record<string, string> = {
  succeeded: "good",
  success: "good",
  completed: "good",
  ok: "good",
  done: "good",
  delivered: "good",
  started: "good",
  closed: "good",
  failed: "bad",
  error: "bad",
  down: "bad",
  away: "bad",
  open: "bad",
  degraded: "warn",
  paused: "warn",
  half_open: "warn",
  missed: "warn",
  skipped: "warn",
  cancelled: "off",
  cancelling: "off",
  queued: "off",
  pending: "off",
  waiting: "off",
};
const MARKS: Record<string, string> = { good: "✔", bad: "✖", warn: "!", off: "○", busy: "●" };

/** A state: a mark, a colour and the word. */
export function Status({ of, children }: { of: string; children?: ComponentChildren }) {
  const w = useWords(common) as unknown as Record<string, string>;
  const tone = TONES[of] ?? "busy";
  return (
    <span class={`status ${tone}`}>
      <span aria-hidden="true">{MARKS[tone]}</span> {children ?? w[`st_${of}`] ?? of}
    </span>
  );
}

let beats: Set<() => void> | undefined;
function everyTenSeconds(told: () => void): () => void {
  if (!beats) {
    const all = new Set<() => void>();
    beats = all;
    setInterval(() => {
      for (const each of all) each();
    }, 10_000);
  }
  beats.add(told);
  return () => beats?.delete(told);
}

/** An instant, as "3 min. ago"; the exact one on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  const [, beat] = useState(0);
  useEffect(() => everyTenSeconds(() => beat((n) => n + 1)), []);
  if (!at) return <span class="muted">–</span>;
  return (
    <time dateTime={at} title={exact(at)}>
      {ago(at)}
    </time>
  );
}

/** What went wrong, why, and what to do, in the words of the API. */
export function Problem({ error, again }: { error: unknown; again?: () => void }) {
  const w = useWords(common);
  if (!error) return null;
  const problem =
    error instanceof ApiError ? error.problem : { detail: error instanceof Error ? error.message : String(error) };
  return (
    <div class="problem" role="alert">
      <strong>{problem.title ?? w.error}</strong>
      <p>{sentence(problem.detail)}</p>
      {problem.errors?.map((each) => (
        <p key={JSON.stringify(each)}>
          <code>{each.at ?? each.path ?? each.loc ?? Object.values(each)[0]}</code>{" "}
          {each.message ?? each.msg ?? Object.values(each)[1]}
        </p>
      ))}
      {problem.remedy && <p class="remedy">{sentence(problem.remedy)}</p>}
      {again && (
        <button type="button" class="small" onClick={again}>
          {w.retry}
        </button>
      )}
    </div>
  );
}

const sentence = (text: string | undefined) => (text ? text[0]!.toUpperCase() + text.slice(1) : "");

/** A sentence in which `words` stand for what one types. */
export function Said({ text }: { text: string }) {
  return <>{text.split("`").map((part, at) => (at % 2 ? <code key={`${at}${part}`}>{part}</code> : part))}</>;
}

const said = (given: ComponentChildren) => (typeof given === "string" ? <Said text={given} /> : given);

/** Where nothing is: says what belongs here and how it comes. */
export function Empty({ title, children, isView }: { title: string; children?: ComponentChildren; isView?: boolean }) {
  return (
    <div class="empty">
      {isView ? <h1>{title}</h1> : <strong>{title}</strong>}
      {children && <div>{said(children)}</div>}
    </div>
  );
}

export function Skeleton({ rows = 6 }: { rows?: number }) {
  const w = useWords(common);
  return (
    <div class="skeleton" role="status" aria-label={w.loading}>
      {Array.from({ length: rows }, (_, n) => (
        <div key={n} />
      ))}
    </div>
  );
}

/** What views call themselves, by their path: a job's name says more than its id. */
export const headings = store<Record<string, string>>({});

/** The head of a view: its name, a line about it, and what can be done. */
export function Head({
  title,
  about,
  children,
}: {
  title: ComponentChildren;
  about?: ComponentChildren;
  children?: ComponentChildren;
}) {
  useEffect(() => {
    if (typeof title === "string" && headings.get()[location.pathname] !== title)
      headings.set({ ...headings.get(), [location.pathname]: title });
  }, [title]);
  return (
    <header class="head">
      <div>
        <h1>{title}</h1>
        {about && <div class="about">{said(about)}</div>}
      </div>
      <div class="acts">{children}</div>
    </header>
  );
}

/** Puts a text into the clipboard; a long one is made only then. */
export function Copy({ text, children }: { text: string | (() => string); children?: ComponentChildren }) {
  const w = useWords(common);
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      class="quiet small"
      onClick={async () => {
        await copy(typeof text === "string" ? text : text());
        setDone(true);
        setTimeout(() => setDone(false), 1500);
      }}
    >
      {done ? w.copied : (children ?? w.copy)}
    </button>
  );
}

export async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea"); // a page over plain HTTP has no clipboard
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** A labelled control. */
export function Field({
  label,
  hint,
  children,
}: {
  label: string;
  hint?: ComponentChildren;
  children: (id: string) => JSX.Element;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      {hint && <div class="hint">{hint}</div>}
    </div>
  );
}

/** Choices as chips, one of which holds. */
export function Chips<T extends string>({
  label,
  value,
  options,
  choose,
}: {
  label: string;
  value: T;
  options: [T, ComponentChildren][];
  choose: (value: T) => void;
}) {
  return (
    <div class="chips" role="group" aria-label={label}>
      {options.map(([each, shown]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => choose(each)}>
          {shown}
        </button>
      ))}
    </div>
  );
}

export interface Tab {
  id: string;
  name: ComponentChildren;
  body: () => ComponentChildren;
}

/** Tabs whose choice the caller keeps, usually in the address. Arrow keys move between them. */
export function Tabs({
  tabs,
  chosen,
  choose,
  label,
}: {
  tabs: Tab[];
  chosen: string | undefined;
  choose: (id: string) => void;
  label: string;
}) {
  const prefix = useId();
  const now = tabs.find((tab) => tab.id === chosen) ?? tabs[0]!;
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(now) + step + tabs.length) % tabs.length]!;
    choose(next.id);
    document.getElementById(`${prefix}-${next.id}`)?.focus();
  };
  return (
    <div class="tabs">
      <div role="tablist" aria-label={label}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            id={`${prefix}-${tab.id}`}
            aria-selected={tab === now}
            aria-controls={`${prefix}-panel`}
            tabIndex={tab === now ? 0 : -1}
            onKeyDown={move}
            onClick={() => choose(tab.id)}
          >
            {tab.name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${prefix}-panel`} aria-labelledby={`${prefix}-${now.id}`}>
        {now.body()}
      </div>
    </div>
  );
}

/** Parts of a whole as one bar; each part has a tone and a word. */
export function Bar({ parts, label }: { parts: { tone: string; value: number; name: string }[]; label: string }) {
  const whole = parts.reduce((sum, part) => sum + part.value, 0);
  return (
    <div
      class="bar"
      role="img"
      aria-label={`${label}: ${parts.map((part) => `${part.value} ${part.name}`).join(", ")}`}
    >
      {parts.map(
        (part) =>
          part.value > 0 && (
            <span
              key={part.name}
              class={`part ${part.tone}`}
              style={{ width: `${(100 * part.value) / whole}%` }}
              title={`${part.value} ${part.name}`}
            />
          ),
      )}
    </div>
  );
}

/** Names and values, one under the other. */
export function Facts({ facts }: { facts: [ComponentChildren, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={String(name)}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
