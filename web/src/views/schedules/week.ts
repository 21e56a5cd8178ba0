/** What starts on each of the next days, as far as it is known. */

export interface Timed {
  next_runs: string[];
}

export interface Day<One> {
  day: Date;
  runs: { one: One; at: Date }[];
  /** Those whose last known time is before, or earlier on this day and others are likely to follow. */
  more: One[];
}

/** Times of one schedule that the server tells. */
const KNOWN = 5;
const DAY_MS = 86_400_000;

export function weekOf<One extends Timed>(schedules: One[], now: number): Day<One>[] {
  const all = schedules.flatMap((one) => one.next_runs.map((at) => ({ one, at: new Date(at) })));
  return Array.from({ length: 7 }, (_, ahead) => {
    const day = new Date(now + ahead * DAY_MS);
    const isOn = (at: Date) => at.toDateString() === day.toDateString();
    return {
      day,
      runs: all.filter(({ at }) => isOn(at)).sort((a, b) => a.at.getTime() - b.at.getTime()),
      more: schedules.filter(({ next_runs: runs }) => {
        if (runs.length < KNOWN) return false;
        const [before, last] = runs.slice(-2).map(Date.parse) as [number, number];
        const then = new Date(2 * last - before); // as far from the last as that from the one before
        return isOn(new Date(last)) ? isOn(then) : last < day.getTime();
      }),
    };
  });
}
