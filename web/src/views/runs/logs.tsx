/** What a script wrote, as it comes. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Flow } from "#/api/live";
import { Copy, Empty } from "#/kit/base";
import { took, useWords } from "#/words";
import { own } from "./words";

export interface Line {
  at_ms: number;
  stream: string;
  text: string;
  level: string;
  fields?: Record<string, unknown>;
}

const MOST = 1000;

export function Logs({ lines, cut, flow }: { lines: Line[]; cut: boolean; flow: Flow }) {
  const w = useWords(own);
  const [search, setSearch] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const shown = lines.filter((line) => !search || line.text.toLowerCase().includes(search.toLowerCase())).slice(-MOST);
  useEffect(() => {
    const now = box.current;
    if (now && now.scrollHeight - now.scrollTop - now.clientHeight < 80) now.scrollTop = now.scrollHeight;
  }, [shown.length]);
  const text = (line: Line) =>
    line.text + (line.fields && Object.keys(line.fields).length ? ` ${JSON.stringify(line.fields)}` : "");
  return (
    <div class="stack">
      <div class="line">
        <input
          type="search"
          class="narrow-input"
          aria-label={w.searchLogs}
          placeholder={w.searchLogs}
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        {flow === "live" && <span class="status busy">● {w.logsLive}</span>}
        {flow === "broken" && <span class="status warn">! {w.logsBroken}</span>}
        <Copy text={lines.map(text).join("\n")} />
      </div>
      {shown.length === 0 ? (
        <Empty title={w.noLogs} />
      ) : (
        <div class="logs" ref={box} tabIndex={0} role="log" aria-label={w.logs}>
          {shown.map((line, index) => (
            <pre key={index} class={line.level}>
              <span class="muted">{took(line.at_ms)}</span>
              <span>{line.level || line.stream}</span>
              <span>{text(line)}</span>
            </pre>
          ))}
        </div>
      )}
      {cut && <p class="muted">{w.logsCut}</p>}
    </div>
  );
}
