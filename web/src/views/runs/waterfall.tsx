/** Where a run's time went: its phases and fetches on one axis of time. */

import { Facts, Said } from "#/kit/base";
import { number, took, useWords } from "#/words";
import type { Explanation } from "#client";
import { own } from "./words";

export interface Strip {
  name: string;
  from: number;
  ms: number;
  tone: "" | "bad" | "off";
  what: string;
}

const BEFORE = ["queue", "resolve", "environment", "child_start"];

/** Phases before the script follow each other; fetches have their own beginning after the script's. */
export function strips(told: Explanation, names: Record<string, string>, fetchName: (n: string) => string): Strip[] {
  const found: Strip[] = [];
  let at = 0;
  for (const phase of told.phases.filter((one) => BEFORE.includes(one.name))) {
    found.push({
      name: names[`phase_${phase.name}`] ?? phase.name,
      from: at,
      ms: phase.ms,
      tone: "off",
      what: took(phase.ms),
    });
    at += phase.ms;
  }
  told.fetches.forEach((fetch, index) => {
    const failed = fetch.error !== "" || (fetch.status ?? 0) >= 400;
    const path = fetch.url.replace(/^https?:\/\/[^/]+/, "") || "/";
    const tries = fetch.tried
      .map((one) => [one.way, one.status, one.vendor ?? one.kind ?? one.reason].filter(Boolean).join(" "))
      .join("; ");
    const words = [
      took(fetch.ms),
      fetch.method,
      path,
      fetch.status ?? "",
      fetch.error,
      fetch.way,
      tries && `(${tries})`,
    ];
    found.push({
      name: fetchName(number(index + 1)),
      from: at + fetch.started_ms,
      ms: fetch.ms,
      tone: failed ? "bad" : "",
      what: words.filter(Boolean).join(" · "),
    });
  });
  let end = found.reduce((most, one) => Math.max(most, one.from + one.ms), at);
  for (const phase of told.phases.filter((one) => !BEFORE.includes(one.name) && one.name !== "fetch")) {
    found.push({
      name: names[`phase_${phase.name}`] ?? phase.name,
      from: end,
      ms: phase.ms,
      tone: "off",
      what: took(phase.ms),
    });
    end += phase.ms;
  }
  return found;
}

export function Waterfall({ told }: { told: Explanation }) {
  const w = useWords(own);
  const all = strips(told, w as unknown as Record<string, string>, w.fetchN);
  const whole = Math.max(1, ...all.map((one) => one.from + one.ms));
  return (
    <div class="stack">
      <section class="panel" aria-label={w.waterfall}>
        <h2>
          {w.waterfall} <span class="muted">{took(told.total_ms)}</span>
        </h2>
        <div class="waterfall">
          {all.map((one, index) => (
            <div key={`${one.name}${index}`}>
              <span class="what">{one.name}</span>
              <span class="lane">
                <span
                  class={one.tone}
                  style={{ left: `${(100 * one.from) / whole}%`, width: `${(100 * one.ms) / whole}%` }}
                />
              </span>
              <span class="what" title={one.what}>
                {one.what}
              </span>
            </div>
          ))}
        </div>
      </section>
      <div class="grid">
        <section class="panel">
          <h2>{w.summary}</h2>
          {told.summary.map((line) => (
            <p key={line}>
              <Said text={line} />
            </p>
          ))}
        </section>
        <section class="panel">
          <h2>{w.limits}</h2>
          <Facts
            facts={told.limits.map((one) => [
              one.name,
              `${number(one.used, 3)} / ${number(one.allowed)} (${number(one.percent, 1)} %)`,
            ])}
          />
        </section>
      </div>
    </div>
  );
}
