/** Which rows of a long table are seen, and where they stand. Browsers draw no element higher than some 16 million pixels. */

export const HIGHEST = 8_000_000;

interface Seen {
  top: number;
  high: number;
  count: number;
  row: number;
}

export const scrolledHeight = (count: number, row: number) => Math.min(count * row, HIGHEST);

/** How far the rows are scrolled, in pixels of the whole table, which may be higher than what a browser scrolls. */
function realTop({ top, high, count, row }: Seen): number {
  const whole = count * row;
  if (whole <= HIGHEST) return top;
  const share = top / Math.max(1, HIGHEST - high);
  return Math.min(1, share) * (whole - high);
}

/** First and last row to draw, with some more above and below. */
export function shownRows(seen: Seen): [number, number] {
  const from = realTop(seen);
  const first = Math.max(0, Math.floor(from / seen.row) - 6);
  const last = Math.min(seen.count - 1, Math.ceil((from + seen.high) / seen.row) + 6);
  return [first, last];
}

/** Where to draw a row. */
export function placed({ index, ...seen }: Seen & { index: number }): number {
  return index * seen.row - realTop(seen) + seen.top;
}
