/** Records as flat rows, and what is in each column. */

export type Flat = Record<string, unknown>;

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** One level of objects becomes `name.field`; large texts and lists stay as they are. */
export function flat(result: unknown): Flat {
  if (!isPlain(result)) return { value: result };
  const found: Flat = {};
  for (const [name, value] of Object.entries(result)) {
    if (isPlain(value)) for (const [field, inner] of Object.entries(value)) found[`${name}.${field}`] = inner;
    else found[name] = value;
  }
  return found;
}

export const shown = (value: unknown): string =>
  value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

const isFilled = (value: unknown) =>
  value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);

export interface Stats {
  filled: number;
  distinct: number;
  low?: number;
  high?: number;
  /** Of numbers: how many are in each of ten equal steps from the lowest to the highest. */
  steps?: number[];
}

const STEPS = 10;

function stepsOf(numbers: number[], low: number, high: number): number[] | undefined {
  if (high <= low) return undefined;
  const found = new Array<number>(STEPS).fill(0);
  for (const one of numbers) found[Math.min(STEPS - 1, Math.floor(((one - low) / (high - low)) * STEPS))]! += 1;
  return found;
}

export function statsOf(rows: Flat[], name: string): Stats {
  const values = rows.map((row) => row[name]).filter(isFilled);
  const numbers = values.filter((value): value is number => typeof value === "number");
  const all = numbers.length === values.length && numbers.length > 0;
  const low = numbers.reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY);
  const high = numbers.reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
  return {
    filled: rows.length ? values.length / rows.length : 0,
    distinct: new Set(values.map(shown)).size,
    low: all ? low : undefined,
    high: all ? high : undefined,
    steps: all ? stepsOf(numbers, low, high) : undefined,
  };
}

/** The values of a column that one would filter by, the most frequent first. */
export function valuesOf(rows: Flat[], name: string, most = 30): [string, number][] {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const value = row[name];
    if (isFilled(value) && typeof value !== "object" && shown(value).length <= 80)
      counts.set(shown(value), (counts.get(shown(value)) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, most);
}

export interface Condition {
  name: string;
  value: string;
}

/** A condition as it stands in the address, `brand=Northwind`; null if it is none. */
export function conditionOf(text: string | undefined): Condition | null {
  const at = text?.indexOf("=") ?? -1;
  return text && at > 0 && at < text.length - 1 ? { name: text.slice(0, at), value: text.slice(at + 1) } : null;
}

/** What the server is to search for: the longest part of the value that JSON writes as it is. */
export const searchFor = (value: string): string =>
  value
    .split(/["\\\p{Cc}]/u)
    .reduce((longest, part) => (part.length > longest.length ? part : longest), "")
    .slice(0, 200);

const LONG = ["markdown", "html", "text", "raw_html", "links", "text_hash", "warnings"];

/** The columns that tell most: filled and differing, the product before the page's head, no long texts. */
export function telling(rows: Flat[], most = 7): string[] {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((name) => !LONG.includes(name));
  const score = (name: string) => {
    const { filled, distinct } = statsOf(rows, name);
    return (
      filled * (distinct > 1 ? 2 : 1) +
      (name.startsWith("product.") ? 1 : 0) -
      (name.includes(".") && !name.startsWith("product.") ? 1 : 0)
    );
  };
  const ranked = names.map((name, at) => [name, score(name), at] as const).sort((a, b) => b[1] - a[1] || a[2] - b[2]);
  const chosen = new Set(ranked.slice(0, most).map(([name]) => name));
  return names.filter((name) => chosen.has(name));
}
