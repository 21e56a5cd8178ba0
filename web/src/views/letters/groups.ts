/** Dead letters that failed alike: of one job, for one reason, at one site. */

import type { DeadLetterDocument } from "#client";

export interface Group {
  id: string;
  job: string;
  reason: NonNullable<DeadLetterDocument["exit_reason"]>;
  site: string | null;
  count: number;
  example: DeadLetterDocument;
}

/** The largest first. */
export function groupsOf(letters: DeadLetterDocument[]): Group[] {
  const found = new Map<string, Group>();
  for (const letter of letters) {
    if (!letter.exit_reason) continue;
    const id = [letter.job_id, letter.exit_reason, letter.site ?? ""].join(" ");
    const group = found.get(id);
    if (group) group.count += 1;
    else
      found.set(id, {
        id,
        job: letter.job_id,
        reason: letter.exit_reason,
        site: letter.site,
        count: 1,
        example: letter,
      });
  }
  return [...found.values()].sort((one, other) => other.count - one.count);
}

/** Ids of items by their job, as the calls that run them again want them. */
export function byJob(letters: DeadLetterDocument[], chosen: ReadonlySet<string>): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const letter of letters)
    if (chosen.has(`${letter.job_id}/${letter.id}`)) {
      const keys = found.get(letter.job_id);
      if (keys) keys.push(letter.id);
      else found.set(letter.job_id, [letter.id]);
    }
  return found;
}
