/** How each version of a scraper did: its last runs, and the items of its last jobs. */

import type { JobDocument, Summary } from "#client";

export interface Success {
  ended: number;
  good: number;
  /** The middle one of the runs' durations; null where only jobs ran it. */
  ms: number | null;
}

type Ran = Pick<Summary, "version" | "status" | "exit_reason"> & { usage?: { wall_ms: number } | null };
type Worked = Pick<JobDocument, "version"> & { counts: { success: number; error: number } };

export function byVersion(runs: Ran[], jobs: Worked[]): Map<string, Success> {
  const found = new Map<string, Success & { all: number[] }>();
  const of = (version: string) => {
    const known = found.get(version) ?? { ended: 0, good: 0, ms: null, all: [] };
    found.set(version, known);
    return known;
  };
  for (const run of runs) {
    if (!run.version || run.exit_reason === null || run.status === "cancelled") continue;
    const one = of(run.version);
    one.ended += 1;
    one.good += run.status === "succeeded" ? 1 : 0;
    if (run.usage) one.all.push(run.usage.wall_ms);
  }
  for (const job of jobs) {
    if (!job.version) continue;
    const one = of(job.version);
    one.ended += job.counts.success + job.counts.error;
    one.good += job.counts.success;
  }
  for (const one of found.values()) one.ms = one.all.sort((a, b) => a - b)[Math.floor(one.all.length / 2)] ?? null;
  return found;
}
