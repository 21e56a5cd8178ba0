/** Settings by the section of their file, and values as people write them. */

export function inSections<One extends { key: string }>(all: One[]): [string, One[]][] {
  const found = new Map<string, One[]>();
  for (const one of all) {
    const section = one.key.split(".").slice(0, -1).join(".");
    found.set(section, [...(found.get(section) ?? []), one]);
  }
  return [...found];
}

/** Lists with commas, tables as JSON; empty where nothing is set. */
export function shownValue(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.join(", ");
  if (typeof value === "object") return Object.keys(value).length ? JSON.stringify(value) : "";
  return String(value);
}
