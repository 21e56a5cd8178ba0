/** What statuses mean, and how items of a site failed. */

import type { DeadLetterDocument } from "#client";

export const KINDS = ["fine", "elsewhere", "refused", "missing", "broken"] as const;
export type Kind = (typeof KINDS)[number];

/** What a status means to somebody who scrapes. */
export function kindOf(status: number): Kind {
  if (status < 300) return "fine";
  if (status < 400) return "elsewhere";
  if ([401, 403, 407, 429, 451].includes(status)) return "refused";
  return status < 500 ? "missing" : "broken";
}

interface Answered {
  created_at: string;
  http_statuses: Record<string, number>;
}

/** The answers of jobs over time, the oldest job first; jobs without one are left out. */
export function byKind(jobs: Answered[]): { at: number[]; counts: Record<Kind, number[]> } {
  const told = jobs
    .filter((job) => Object.keys(job.http_statuses).length > 0)
    .sort((a, b) => a.created_at.localeCompare(b.created_at));
  const counts = Object.fromEntries(
    KINDS.map((kind) => [
      kind,
      told.map((job) =>
        Object.entries(job.http_statuses).reduce(
          (sum, [status, count]) => sum + (kindOf(Number(status)) === kind ? count : 0),
          0,
        ),
      ),
    ]),
  ) as Record<Kind, number[]>;
  return { at: told.map((job) => Date.parse(job.created_at) / 1000), counts };
}

export interface Failure {
  status: number | null;
  reason: string;
  count: number;
  last: string | null;
  example: string;
}

/** Failed items that failed alike, the most frequent first. */
export function failuresOf(letters: DeadLetterDocument[]): Failure[] {
  const found = new Map<string, Failure>();
  for (const letter of letters) {
    const id = `${letter.http_status} ${letter.exit_reason}`;
    const known = found.get(id) ?? {
      status: letter.http_status,
      reason: letter.exit_reason ?? "",
      count: 0,
      last: null,
      example: letter.error?.message ?? "",
    };
    const isLater = letter.finished_at && (!known.last || letter.finished_at > known.last);
    found.set(id, { ...known, count: known.count + 1, last: isLater ? letter.finished_at : known.last });
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}
