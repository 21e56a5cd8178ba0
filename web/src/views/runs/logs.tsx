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
/** Lines that are drawn while they come and the reader follows: drawing a thousand ten times a second is felt. */
const MOST_LIVE = 150;

export function Logs({ lines, cut, flow }: { lines: Line[]; cut: boolean; flow: Flow }) {
  const w = useWords(own);
  const [search, setSearch] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const [follows, setFollows] = useState(true);
  const lastTop = useRef(0);
  const fitting = search ? lines.filter((line) => line.text.toLowerCase().includes(search.toLowerCase())) : lines;
  const shown = fitting.slice(flow === "live" && follows ? -MOST_LIVE : -MOST);
  const look = () => {
    const now = box.current;
    if (!now) return;
    const isEnd = now.scrollHeight - now.scrollTop - now.clientHeight < 80;
    // lines that came since the last scroll move the end away: only a reader who scrolls up stops following
    if (isEnd || now.scrollTop < lastTop.current) setFollows(isEnd);
    lastTop.current = now.scrollTop;
  };
  useEffect(() => {
    if (follows && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown.at(-1), follows]);
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
        <Copy text={() => lines.map(text).join("\n")} />
      </div>
      {shown.length === 0 ? (
        <Empty title={lines.length ? w.noLogsFit : flow === "ended" ? w.noLogs : w.noLogsYet} />
      ) : (
        <div class="logs" ref={box} tabIndex={0} role="log" aria-label={w.logs} onScroll={look}>
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
