/** What a site answered, job by job, and why items failed there. */

import { useCall } from "#/api/client";
import { may } from "#/api/session";
import { Time } from "#/kit/base";
import { Chart } from "#/kit/chart";
import { number, useWords } from "#/words";
import { byKind, failuresOf, KINDS, type Kind } from "./statuses";
import { own } from "./words";

const JOBS = 100;
const LETTERS = 200;
const TONES: Record<Kind, string> = {
  fine: "--good",
  elsewhere: "--busy",
  refused: "--bad",
  missing: "--off",
  broken: "--warn",
};

export function Answers({ site }: { site: string }) {
  const w = useWords(own);
  const jobs = [site, `www.${site}`].flatMap(
    (domain) => useCall("list_jobs", { query: { domain, limit: JOBS } }, { every: 30 }).data?.jobs ?? [],
  );
  const { at, counts } = byKind(jobs);
  if (at.length < 2) return null;
  return (
    <section class="panel">
      <h2>
        {w.answered} <a href={`/jobs?domain=${encodeURIComponent(site)}`}>{w.jobsOf(number(at.length))}</a>
      </h2>
      <Chart
        label={w.answered}
        at={at}
        stacked
        series={KINDS.map((kind) => ({ name: w[`kind_${kind}`], tone: TONES[kind], values: counts[kind] }))}
        shown={(value) => number(value)}
      />
    </section>
  );
}

export function Failures({ site }: { site: string }) {
  const w = useWords(own);
  const found = useCall(
    "list_dead_letters",
    { query: { site: [site], limit: LETTERS } },
    { every: 30, enabled: may("list_dead_letters") },
  );
  const letters = found.data?.items ?? [];
  const all = `/dead-letters?site=${encodeURIComponent(site)}`;
  return (
    <section class="panel">
      <h2>
        {w.whyFailed}{" "}
        {letters.length > 0 && (
          <a href={all}>
            {found.data?.next_cursor ? w.lastLetters(number(LETTERS)) : w.lettersN(number(letters.length))}
          </a>
        )}
      </h2>
      {letters.length === 0 && <p class="muted">{w.noFailures}</p>}
      <ul class="why">
        {failuresOf(letters).map((one) => (
          <li key={`${one.status} ${one.reason}`}>
            <a href={`${all}&reason=${one.reason}`} title={one.example}>
              {[one.status, one.reason].filter(Boolean).join(" ")}
            </a>
            <span class="num">{number(one.count)}</span>
            <Time at={one.last} />
            <small class="muted">{one.example}</small>
          </li>
        ))}
      </ul>
    </section>
  );
}
