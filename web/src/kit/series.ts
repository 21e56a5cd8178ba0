/** What a chart draws. */

export interface Series {
  name: string;
  /** A custom property of the style sheet, such as `--good`. */
  tone: string;
  values: (number | null)[];
}

/** Each series on top of those after it, so that the first is the highest. */
export function stack(series: Series[]): number[][] {
  const sums: number[][] = [];
  let below: number[] = [];
  for (const each of [...series].reverse()) {
    below = each.values.map((value, index) => (value ?? 0) + (below[index] ?? 0));
    sums.unshift(below);
  }
  return sums;
}
