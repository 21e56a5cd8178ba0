/** What was there before and what is there since, field by field. */

export interface Compared {
  name: string;
  before?: string;
  after?: string;
  changed: boolean;
}

function flat(value: unknown, name: string, found: Map<string, string>): void {
  if (value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length)
    for (const [key, each] of Object.entries(value)) flat(each, name ? `${name}.${key}` : key, found);
  else if (value !== null && value !== undefined)
    found.set(name, typeof value === "string" ? value : JSON.stringify(value));
}

/** Every field of both, those that changed first. */
export function compared(before: unknown, after: unknown): Compared[] {
  const [old, now] = [new Map<string, string>(), new Map<string, string>()];
  flat(before, "", old);
  flat(after, "", now);
  const names = [...new Set([...old.keys(), ...now.keys()])];
  const all = names.map((name) => ({
    name,
    before: old.get(name),
    after: now.get(name),
    changed: old.get(name) !== now.get(name),
  }));
  return all.sort((one, other) => Number(other.changed) - Number(one.changed));
}
