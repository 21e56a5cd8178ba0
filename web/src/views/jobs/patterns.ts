/** Patterns of URLs, as the server reads them: globs over the whole address or its path, or `re:` and an expression. */

export function matcher(pattern: string): RegExp | null {
  try {
    if (pattern.startsWith("re:")) return new RegExp(pattern.slice(3), "u");
    const start = pattern.startsWith("/") ? "^[a-z]+://[^/?#]*" : "^";
    const text = pattern
      .split(/(\*\*|\*)/)
      .map((part) => (part === "**" ? ".*" : part === "*" ? "[^/]*" : part.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&")))
      .join("");
    return new RegExp(`${start}${text}$`);
  } catch {
    return null;
  }
}

export const lines = (text: string) =>
  text
    .split(/[\n]/)
    .map((line) => line.trim())
    .filter(Boolean);

/** The addresses that include and exclude leave. */
export function chosen(urls: string[], include: string, exclude: string): string[] {
  const takes = lines(include).map(matcher);
  const leaves = lines(exclude).map(matcher);
  return urls.filter(
    (url) => (takes.length === 0 || takes.some((one) => one?.test(url))) && !leaves.some((one) => one?.test(url)),
  );
}

/** The first rows of a CSV, enough to choose its columns. Quotes may hold the delimiter and line ends. */
export function csvRows(text: string, most = 21): string[][] {
  const first = text.slice(0, text.indexOf("\n") + 1 || undefined);
  const delimiter = [",", ";", "\t", "|"].reduce(
    (best, one) => (first.split(one).length > first.split(best).length ? one : best),
    ",",
  );
  const rows: string[][] = [[]];
  let cell = "";
  let quoted = false;
  for (let at = 0; at < text.length && rows.length <= most; at++) {
    const char = text[at]!;
    if (quoted) {
      if (char !== '"') cell += char;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === delimiter || char === "\n") {
      rows.at(-1)!.push(cell.replace(/\r$/, ""));
      cell = "";
      if (char === "\n") rows.push([]);
    } else cell += char;
  }
  if (cell) rows.at(-1)!.push(cell.replace(/\r$/, ""));
  return rows.filter((row) => row.some(Boolean)).slice(0, most);
}

/** The host of an address that may lack its scheme; empty where there is none. */
export function hostOf(address: string): string {
  try {
    return new URL(/^[a-z]+:\/\//i.test(address) ? address : `http://${address}`).hostname;
  } catch {
    return "";
  }
}

interface Asked {
  pages: number;
  /** Items a second that the job may begin. */
  wished: number | null;
  /** Requests a second that the site is asked at most. */
  allowed: number | null;
  /** Bytes of a page that was looked at. */
  size: number | null;
  /** Earlier jobs of the same site. */
  jobs: { counts: { success: number }; usage: { bytes_received: number } }[];
}

/** What a job will ask of a site. Null: not known. */
export function estimated({ pages, wished, allowed, size, jobs }: Asked) {
  const rate = wished && allowed ? Math.min(wished, allowed) : (wished ?? allowed);
  const done = jobs.filter((job) => job.counts.success > 0);
  const items = done.reduce((sum, job) => sum + job.counts.success, 0);
  const known = items ? done.reduce((sum, job) => sum + job.usage.bytes_received, 0) / items : size;
  return { rate, seconds: rate ? pages / rate : null, bytes: known ? known * pages : null };
}
