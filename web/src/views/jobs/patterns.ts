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
