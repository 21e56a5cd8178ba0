/** Server-sent events with resume: a stream that breaks is taken up after the last event that came. */

import { useEffect, useRef, useState } from "preact/hooks";
import { send } from "./client";

export interface LiveEvent {
  name: string;
  data: unknown;
  id?: string;
}

export type Flow = "opening" | "live" | "broken" | "ended";

const FLUSH_MS = 100;
const AGAIN_MS = 2000;
/** Events that are read in one go: after so many the browser may draw and answer keys. */
const AT_ONCE = 500;

/** Follow a path until its `end`. Events are told in bundles, ten times a second at most, however many come. */
export async function follow(
  path: string,
  told: (events: LiveEvent[]) => void,
  state: (flow: Flow) => void,
  signal: AbortSignal,
) {
  let last: string | undefined;
  let waiting: LiveEvent[] = [];
  let timer: number | undefined;
  let count = 0;
  const flush = () => {
    timer = undefined;
    const bundle = waiting;
    waiting = [];
    if (bundle.length && !signal.aborted) told(bundle);
  };
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = last === undefined ? {} : { "Last-Event-ID": last };
      const response = await send(path, { headers: { ...headers, Accept: "text/event-stream" }, signal });
      if (!response.ok || !response.body) {
        if (response.status < 500 && response.status !== 429) return state("ended");
        throw new Error(String(response.status));
      }
      state("live");
      for await (const event of eventsOf(response.body)) {
        last = event.id ?? last;
        waiting.push(event);
        if (timer === undefined) timer = window.setTimeout(flush, FLUSH_MS);
        if (++count % AT_ONCE === 0) await new Promise((resolve) => setTimeout(resolve));
        if (event.name === "end") {
          flush();
          return state("ended");
        }
      }
    } catch {
      if (signal.aborted) return;
    }
    state("broken");
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** The events of a body, wherever its pieces are cut. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<LiveEvent> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>)
    .getReader();
  let rest = "";
  let event: { name: string; data: string[]; id?: string } = { name: "message", data: [] };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r?\n/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (event.data.length) yield { name: event.name, data: JSON.parse(event.data.join("\n")), id: event.id };
          event = { name: "message", data: [] };
        } else if (!line.startsWith(":")) {
          const at = line.indexOf(":");
          const field = at < 0 ? line : line.slice(0, at);
          const text = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
          if (field === "event") event.name = text;
          else if (field === "data") event.data.push(text);
          else if (field === "id") event.id = text;
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Follow a path while a component is shown; null follows nothing. */
export function useLive(path: string | null, told: (events: LiveEvent[]) => void): Flow {
  const [flow, setFlow] = useState<Flow>("opening");
  const latest = useRef(told);
  latest.current = told;
  useEffect(() => {
    if (path === null) return;
    setFlow("opening");
    const stop = new AbortController();
    void follow(path, (events) => latest.current(events), setFlow, stop.signal);
    return () => stop.abort();
  }, [path]);
  return flow;
}
