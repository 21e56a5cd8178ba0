/** Minutes that nobody counted are gaps, not a line between their neighbours. */

import type { LoadSampleDocument } from "#client";

const MINUTE = 60_000;
type Sample = Omit<LoadSampleDocument, "busy" | "slots" | "waiting"> & {
  busy: number | null;
  slots: number | null;
  waiting: number | null;
};

/** The samples, with an empty one in each gap. */
export function spread(samples: LoadSampleDocument[]): Sample[] {
  const found: Sample[] = [];
  for (const [index, sample] of samples.entries()) {
    const before = index ? Date.parse(samples[index - 1]!.at) : Date.parse(sample.at);
    if (Date.parse(sample.at) - before > 1.5 * MINUTE)
      found.push({
        ...sample,
        at: new Date(before + MINUTE).toISOString(),
        busy: null,
        slots: null,
        waiting: null,
        ended: null,
        lanes: {},
      });
    found.push(sample);
  }
  return found;
}
