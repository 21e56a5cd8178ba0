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
}

export function statsOf(rows: Flat[], name: string): Stats {
  const values = rows.map((row) => row[name]).filter(isFilled);
  const numbers = values.filter((value): value is number => typeof value === "number");
  const all = numbers.length === values.length && numbers.length > 0;
  return {
    filled: rows.length ? values.length / rows.length : 0,
    distinct: new Set(values.map(shown)).size,
    low: all ? numbers.reduce((low, each) => Math.min(low, each), Number.POSITIVE_INFINITY) : undefined,
    high: all ? numbers.reduce((high, each) => Math.max(high, each), Number.NEGATIVE_INFINITY) : undefined,
  };
}

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
