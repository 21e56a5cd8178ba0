/** The files of a version, and what another version changed in them. */

import { useMemo } from "preact/hooks";
import { useCall } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Chips, Copy, Empty, Field, Problem, Skeleton } from "#/kit/base";
import { around, coloured, type DiffLine, diffLines } from "#/kit/diff";
import { bytes, number, useWords } from "#/words";
import type { ScriptFileDocument } from "#client";
import { own } from "./words";

export function Source({ site, task, versions }: { site: string; task: string; versions: string[] }) {
  const w = useWords(own);
  const { query, change } = useAddress();
  const path = { site, task };
  const shown = query.version ?? versions[0];
  const before = query.against ?? "";
  const now = useCall("get_source", { path, query: { version: shown } });
  const then = useCall("get_source", { path, query: { version: before } }, { enabled: before !== "" });
  const choice = (label: string, name: string, value: string, first?: string) => (
    <Field label={label}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => change({ [name]: event.currentTarget.value })}>
          {first !== undefined && <option value="">{first}</option>}
          {versions.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
  return (
    <div class="stack">
      <div class="line">
        {choice(w.version, "version", shown ?? "")}
        {versions.length > 1 && choice(w.compareWith, "against", before, w.nothing)}
      </div>
      <Problem error={now.error ?? then.error} />
      {!now.data || (before && !then.data) ? (
        !now.error && !then.error && <Skeleton />
      ) : (
        <Files now={now.data.files} before={before ? then.data!.files : null} entry={now.data.entry.split(":")[0]!} />
      )}
    </div>
  );
}

interface Given {
  now: ScriptFileDocument[];
  before: ScriptFileDocument[] | null;
  entry: string;
}

function Files({ now, before, entry }: Given) {
  const w = useWords(own);
  const { query, change } = useAddress();
  const old = new Map((before ?? []).map((file) => [file.name, file]));
  const fresh = new Map(now.map((file) => [file.name, file]));
  const names = [...new Set([...fresh.keys(), ...old.keys()])].sort();
  const differs = (name: string) =>
    fresh.get(name)?.text !== old.get(name)?.text || fresh.get(name)?.size !== old.get(name)?.size;
  const listed = before ? names.filter(differs) : names;
  const chosen = listed.includes(query.file ?? "") ? query.file! : listed.includes(entry) ? entry : listed[0];
  if (chosen === undefined) return <Empty title={w.sameFiles} />;
  const [file, was] = [fresh.get(chosen), old.get(chosen)];
  return (
    <div class="stack">
      <Chips
        label={w.files}
        value={chosen}
        options={listed.map((name) => [name, name])}
        choose={(name) => change({ file: name })}
      />
      {(file ?? was)!.text === null || (before && was?.text === null) ? (
        <Empty title={w.noText}>{bytes((file ?? was)!.size)}</Empty>
      ) : before ? (
        <Diff before={was?.text ?? ""} after={file?.text ?? ""} />
      ) : (
        <Code text={file!.text!} />
      )}
    </div>
  );
}

function Code({ text }: { text: string }) {
  const w = useWords(own);
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <div class="panel">
      <Copy text={text} />
      <pre class="code" tabIndex={0} role="region" aria-label={w.source}>
        {lines.map((line, at) => (
          <Line key={at} number={at + 1} text={line} />
        ))}
      </pre>
    </div>
  );
}

function Diff({ before, after }: { before: string; after: string }) {
  const w = useWords(own);
  const lines = useMemo(() => diffLines(before, after), [before, after]);
  const [added, removed] = [lines.filter(isIn).length, lines.filter(isOut).length];
  return (
    <div class="panel">
      <p class="muted">{w.linesChanged(number(added), number(removed))}</p>
      <pre class="code" tabIndex={0} role="region" aria-label={w.compareWith}>
        {around(lines).map((line, at) =>
          line ? (
            <Line key={at} number={line.now ?? line.old!} text={line.text} kind={line.kind} />
          ) : (
            <span key={at} class="gap">
              ⋯
            </span>
          ),
        )}
      </pre>
    </div>
  );
}

const isIn = (line: DiffLine) => line.kind === "in";
const isOut = (line: DiffLine) => line.kind === "out";
const MARKS = { same: " ", in: "+", out: "−" };

function Line({ number: at, text, kind }: { number: number; text: string; kind?: DiffLine["kind"] }) {
  const body = coloured(text).map((piece, index) =>
    piece.kind ? (
      <span key={index} class={piece.kind}>
        {piece.text}
      </span>
    ) : (
      piece.text
    ),
  );
  return (
    <span class={kind ?? ""}>
      <i aria-hidden="true">{at}</i>
      {kind && <b>{MARKS[kind]}</b>}
      <span>{body}</span>
    </span>
  );
}
