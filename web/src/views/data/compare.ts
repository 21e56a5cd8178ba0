/** Two records of one page, field by field and word by word. */

import { diffLines } from "#/kit/diff";
import { type Flat, shown } from "./stats";

export interface Compared {
  name: string;
  before: string;
  now: string;
}

/** Every field of two records: those that differ, and those that do not. */
export function compared(before: Flat, now: Flat): { changed: Compared[]; same: Compared[] } {
  const names = [...new Set([...Object.keys(now), ...Object.keys(before)])];
  const text = (value: unknown) => (isEmpty(value) ? "" : shown(value));
  const all = names.map((name) => ({ name, before: text(before[name]), now: text(now[name]) }));
  all.sort((a, b) => weight(a.name) - weight(b.name));
  return {
    changed: all.filter((one) => one.before !== one.now),
    same: all.filter((one) => one.before === one.now && one.now !== ""),
  };
}

const isEmpty = (value: unknown) =>
  typeof value === "object" && value !== null && Object.keys(value as object).length === 0;

/** What people look for first: the product, then the page, then how it was fetched. */
const weight = (name: string) =>
  name.startsWith("product.") ? 0 : ["title", "h1", "description", "text", "markdown"].includes(name) ? 1 : 2;

export interface Word {
  text: string;
  changed: boolean;
}

const LONG = 4000;

/** The words of two texts, each with whether the other lacks it. */
export function wordsOf(before: string, now: string): [Word[], Word[]] {
  if (before.length > LONG || now.length > LONG || !before || !now)
    return [[{ text: before, changed: true }], [{ text: now, changed: true }]];
  const split = (text: string) => text.split(/(?<=\s)|(?=[\s,;:{}[\]"])/).map((word) => JSON.stringify(word));
  const lines = diffLines(split(before).join("\n"), split(now).join("\n"));
  const side = (kind: "in" | "out") =>
    lines
      .filter((line) => line.kind === "same" || line.kind === kind)
      .map((line) => ({ text: JSON.parse(line.text) as string, changed: line.kind === kind }));
  return [side("out"), side("in")];
}

/** What is left of a change when some fields do not count. */
export const heeded = (fields: string | null, ignored: string[]) =>
  (fields ?? "").split(";").filter((name) => name && !ignored.includes(name));
