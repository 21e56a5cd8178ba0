/** Two texts line by line, and code in colours. */

export interface DiffLine {
  kind: "same" | "out" | "in";
  text: string;
  /** Numbers in the old and the new text; null where the line is not in it. */
  old: number | null;
  now: number | null;
}

const MOST_CELLS = 4_000_000;

/** The shortest way from one to the other; where both are very different and long, all out and all in. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const found: DiffLine[] = [];
  const put = (kind: DiffLine["kind"], old: number, now: number) =>
    found.push({
      kind,
      text: (kind === "in" ? b[now] : a[old])!,
      old: kind === "in" ? null : old + 1,
      now: kind === "out" ? null : now + 1,
    });
  for (let at = 0; at < head; at++) put("same", at, at);
  const [high, wide] = [a.length - head - tail, b.length - head - tail];
  const table = high * wide <= MOST_CELLS ? lengths(a.slice(head, head + high), b.slice(head, head + wide)) : null;
  let [i, j] = [0, 0];
  while (i < high || j < wide) {
    if (table && i < high && j < wide && a[head + i] === b[head + j]) put("same", head + i++, head + j++);
    else if (j >= wide || (i < high && (!table || table[i + 1]![j]! >= table[i]![j + 1]!))) put("out", head + i++, 0);
    else put("in", 0, head + j++);
  }
  for (let at = 0; at < tail; at++) put("same", head + high + at, head + wide + at);
  return found;
}

const linesOf = (text: string) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** Lengths of the longest common rest from each pair of lines on. */
function lengths(a: string[], b: string[]): Uint16Array[] {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i]![j] = a[i] === b[j] ? table[i + 1]![j + 1]! + 1 : Math.max(table[i + 1]![j]!, table[i]![j + 1]!);
  return table;
}

/** Only what changed, with some lines around it; null stands for lines that are left out. */
export function around(lines: DiffLine[], near = 3): (DiffLine | null)[] {
  const keep = new Set<number>();
  lines.forEach((line, at) => {
    if (line.kind !== "same") for (let each = at - near; each <= at + near; each++) keep.add(each);
  });
  const found: (DiffLine | null)[] = [];
  lines.forEach((line, at) => {
    if (keep.has(at)) found.push(line);
    else if (found.at(-1) !== null) found.push(null);
  });
  return found;
}

export interface Piece {
  text: string;
  kind: "" | "word" | "string" | "note" | "number";
}

const WORDS =
  "and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield match case None True False true false";
const KEYWORDS = new Set(WORDS.split(" "));
const TOKENS = /(#.*$)|("""|'''|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|(\b\d[\d._a-zA-Z]*\b)|(\b[A-Za-z_]\w*\b)/g;

/** A line of Python or TOML in pieces. Long strings over many lines are not followed. */
export function coloured(line: string): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const match of line.matchAll(TOKENS)) {
    const [text, note, string, digits] = match;
    const kind = note ? "note" : string ? "string" : digits ? "number" : KEYWORDS.has(text) ? "word" : "";
    if (!kind) continue;
    if (match.index > end) found.push({ text: line.slice(end, match.index), kind: "" });
    found.push({ text, kind });
    end = match.index + text.length;
  }
  if (end < line.length) found.push({ text: line.slice(end), kind: "" });
  return found;
}
