/** Extracted fields: each value with how sure it is and where it stands, to be corrected by who knows better. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useAction } from "#/api/client";
import { Problem } from "#/kit/base";
import { Data } from "#/kit/json";
import { number, percent, useWords } from "#/words";
import { common } from "#/words/common";
import type { RunDocument } from "#client";
import { agrees, corrected, type FoundField, isList, meant, saidOf, written } from "./corrections";
import { own } from "./words";

export type Teach = (input: Record<string, unknown>) => Promise<unknown>;

export interface Extracted {
  fields: Record<string, FoundField>;
  pattern: { version: number; status: "learning" | "ready" | "stale"; examples?: number } | null;
  taught?: number;
  warnings: string[];
}

/** The result of a run that extracted fields; undefined for any other. */
export function extractedBy(run: RunDocument): Extracted | undefined {
  const result = run.result as Partial<Extracted> | null;
  return run.scraper === "builtin/extract" && result?.fields ? (result as Extracted) : undefined;
}

/** How sure something is, in dots and in words. */
export function Sure({ share }: { share: number }) {
  const w = useWords(own);
  return (
    <span class="muted" title={percent(share)}>
      <span aria-hidden="true">{"●".repeat(Math.round(share * 5)).padEnd(5, "○")}</span> {w.sure(percent(share))}
    </span>
  );
}

export function Fields({ run, found, teach }: { run: RunDocument; found: Extracted; teach?: Teach }) {
  const w = useWords(own);
  const input = run.input as Record<string, unknown>;
  const said = saidOf(input);
  return (
    <section class="panel data" aria-label={w.fields}>
      {Object.keys(said).length > 0 && <Lesson found={found} said={said} />}
      <dl>
        {Object.entries(found.fields).map(([name, field]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="found">
              <Found name={name} field={field} said={said[name]} input={input} teach={teach} />
            </dd>
          </div>
        ))}
      </dl>
      {found.warnings.map((warning) => (
        <p key={warning} class="status wrap warn">
          <span aria-hidden="true">!</span> {warning}
        </p>
      ))}
    </section>
  );
}

function Found({
  name,
  field,
  said,
  input,
  teach,
}: {
  name: string;
  field: FoundField;
  said: unknown;
  input: Record<string, unknown>;
  teach?: Teach;
}) {
  const w = useWords(own);
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false);
  useEffect(() => {
    if (wasOpen.current && !isOpen) button.current?.focus();
    wasOpen.current = isOpen;
  }, [isOpen]);
  const flags = field.flags.map((flag) => w[`flag_${flag as "disputed"}`] ?? flag);
  return (
    <>
      <div class="line">
        {field.how === null ? <span class="muted">{w.notFound}</span> : <Data value={field.value} depth={1} />}
        {teach && !isOpen && (
          <button
            ref={button}
            type="button"
            class="quiet small"
            aria-label={w.correctOf(name)}
            onClick={() => setOpen(true)}
          >
            {w.correct}
          </button>
        )}
      </div>
      {field.how !== null && (
        <small class="muted">
          <Sure share={field.confidence} /> · {[w[`how_${field.how}`], ...flags].join(" · ")}
        </small>
      )}
      <Evidence of={field.evidence} isFound={field.how !== null} />
      {said !== undefined && <small>{w.youSaid(said === null ? w.without : [said].flat().join(" · "))}</small>}
      {teach && isOpen && (
        <Correction name={name} field={field} input={input} teach={teach} close={() => setOpen(false)} />
      )}
    </>
  );
}

function Evidence({ of, isFound }: { of: FoundField["evidence"]; isFound: boolean }) {
  const w = useWords(own);
  if (!of) return isFound ? <small class="muted">{w.noEvidence}</small> : null;
  return (
    <small class="muted">
      {w.standsAs} <q>{of.text}</q> {w.standsAt} <code>{of.selector}</code>
      {of.json_path && (
        <>
          {" "}
          <code>{of.json_path}</code>
        </>
      )}
    </small>
  );
}

function Correction({
  name,
  field,
  input,
  teach,
  close,
}: {
  name: string;
  field: FoundField;
  input: Record<string, unknown>;
  teach: Teach;
  close: () => void;
}) {
  const w = useWords(own);
  const c = useWords(common);
  const hint = useId();
  const many = isList(input, name, field.value);
  const [text, setText] = useState(() => written(field));
  const [isAbsent, setAbsent] = useState(false);
  const act = useAction((value: unknown) => teach(corrected(input, name, value)), {
    done: () => {
      hasTaught = true;
    },
  });
  const box = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    box.current?.focus();
    box.current?.select();
  }, []);
  const control = {
    ref: box,
    value: text,
    required: !isAbsent,
    disabled: isAbsent,
    "aria-label": w.valueOf(name),
    "aria-describedby": hint,
    onInput: (event: { currentTarget: { value: string } }) => setText(event.currentTarget.value),
  };
  return (
    <form
      class="stack"
      aria-label={w.correctOf(name)}
      onSubmit={(event) => {
        event.preventDefault();
        act.mutate(isAbsent ? null : meant(text, many));
      }}
      onKeyDown={(event) => event.key === "Escape" && close()}
    >
      {many || text.length > 80 ? <textarea rows={3} {...control} /> : <input type="text" {...control} />}
      <small class="muted" id={hint}>
        {many ? w.correctList : w.correctHint}
      </small>
      <label class="check">
        <input type="checkbox" checked={isAbsent} onChange={(event) => setAbsent(event.currentTarget.checked)} />{" "}
        {w.isWithout}
      </label>
      <div class="line">
        <button type="submit" class="main small" disabled={act.isPending}>
          {w.teach}
        </button>
        <button type="button" class="small" onClick={close}>
          {c.cancel}
        </button>
      </div>
      <Problem error={act.error} />
    </form>
  );
}

/** Whether the button that had the focus is gone, because it taught: what came of that takes the focus. */
let hasTaught = false;

/** What the site's pattern made of what was said. */
function Lesson({ found, said }: { found: Extracted; said: Record<string, unknown> }) {
  const w = useWords(own);
  const line = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    if (hasTaught) line.current?.focus();
    hasTaught = false;
  }, []);
  const { pattern, taught } = found;
  const unread = Object.keys(said).filter((name) => {
    const field = found.fields[name];
    return field !== undefined && !agrees(field, said[name]);
  });
  const told = (tone: string, mark: string, words: ComponentChildren) => (
    <p class={`status wrap ${tone}`} role="status" tabIndex={-1} ref={line}>
      <span aria-hidden="true">{mark}</span> {words}
    </p>
  );
  if (!taught || !pattern) return told("bad", "✖", w.notTaught);
  if (pattern.status !== "ready")
    return told("off", "○", (pattern.examples ?? 1) < 2 ? w.taughtFirst : w.taughtNothing(number(pattern.examples)));
  if (unread.length > 0) return told("warn", "!", w.taughtUnread(unread.join(", ")));
  return told("good", "✔", w.taught(number(pattern.version), number(pattern.examples)));
}
