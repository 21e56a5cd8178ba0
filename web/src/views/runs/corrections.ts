/** What a person says against an extracted value, as `builtin/extract` takes it. */

export interface FoundField {
  value: unknown;
  confidence: number;
  how: "structured" | "pattern" | "model" | "fallback" | null;
  evidence: { text: string; selector: string; json_path: string | null } | null;
  flags: string[];
}

type Values = Record<string, unknown>;
type Example = Values & { values: Values };

const addressOf = ({ url, html }: Values) => ({
  ...(url === undefined ? {} : { url }),
  ...(html === undefined ? {} : { html }),
});

/** Whether a field is to have several values. */
export function isList(input: Values, name: string, value: unknown): boolean {
  if (Array.isArray(value)) return true;
  const { fields, schema } = input as { fields?: string | Values; schema?: { properties?: Values } };
  if (typeof fields === "string")
    return fields.split(",").some((part) => part.split(/[:?]/)[0]!.trim() === name && part.trim().endsWith("[]"));
  const said = (fields?.[name] ?? schema?.properties?.[name]) as string | { type?: string } | undefined;
  const type = typeof said === "object" ? said.type : said;
  return type === "array" || (type ?? "").endsWith("[]");
}

/** The text to begin with. A yes, a no and a date are taught as the page writes them. */
export function written({ value, evidence }: FoundField): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.join("\n");
  const isRead = typeof value === "boolean" || (typeof value === "string" && /^\d{4}-\d\d-\d\d/.test(value));
  return isRead && evidence ? evidence.text : String(value);
}

/** What a text says: of a list, a value in each line. Null: that the page is without the field. */
export function meant(text: string, many: boolean): unknown {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  if (lines.length === 0) return null;
  return many ? lines : text.trim();
}

/** What was said of the page itself in an input. */
export function saidOf(input: Values): Values {
  const page = JSON.stringify(addressOf(input));
  const found = ((input.examples ?? []) as Example[]).find((each) => JSON.stringify(addressOf(each)) === page);
  return found?.values ?? {};
}

/** The input that teaches one more value. What was said of the page before is said again: the newest answer counts. */
export function corrected(input: Values, name: string, value: unknown): Values {
  return { ...input, examples: [{ ...addressOf(input), values: { ...saidOf(input), [name]: value } }] };
}

/** Whether a value is what was said, or was read from it: `1.299,00 €` is the number 1299. */
export function agrees({ value, evidence }: FoundField, said: unknown): boolean {
  if (JSON.stringify(value ?? null) === JSON.stringify(said)) return true;
  if (typeof said !== "string" || value === null || Array.isArray(value)) return false;
  if (typeof value === "number" && Number(said) === value) return true;
  return evidence !== null && (evidence.text.includes(said) || said.includes(evidence.text));
}
