/** A form made of a JSON Schema: a control for each simple field, JSON for the rest. */

import { Field } from "#/kit/base";
import { useWords } from "#/words";
import { own } from "./words";

export type Schema = {
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  enum?: unknown[];
  description?: string;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  examples?: unknown[];
};

const kind = (schema: Schema) =>
  Array.isArray(schema.type) ? schema.type.find((each) => each !== "null") : schema.type;
export const isSimple = (schema: Schema) =>
  schema.enum !== undefined || ["string", "number", "integer", "boolean"].includes(kind(schema) ?? "");

/** The value that a control's text stands for; undefined leaves the field out. */
export function parsed(schema: Schema, text: string): unknown {
  if (text === "") return undefined;
  if (schema.enum) return schema.enum.find((each) => String(each) === text);
  const is = kind(schema);
  if (is === "number" || is === "integer") return Number.isFinite(Number(text)) ? Number(text) : text;
  if (is === "boolean") return text === "true";
  if (is === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function SchemaForm({
  schema,
  value,
  change,
  skip = [],
}: {
  schema: Schema;
  value: Record<string, unknown>;
  change: (value: Record<string, unknown>) => void;
  skip?: string[];
}) {
  const fields = Object.entries(schema.properties ?? {}).filter(([name]) => !skip.includes(name));
  const set = (name: string, next: unknown) => {
    const { [name]: _, ...rest } = value;
    change(next === undefined ? rest : { ...rest, [name]: next });
  };
  return (
    <>
      {fields.map(([name, one]) => (
        <Control
          key={name}
          name={name}
          schema={one}
          needed={schema.required?.includes(name) ?? false}
          value={value[name]}
          set={(next) => set(name, next)}
        />
      ))}
    </>
  );
}

function Control({
  name,
  schema,
  needed,
  value,
  set,
}: {
  name: string;
  schema: Schema;
  needed: boolean;
  value: unknown;
  set: (value: unknown) => void;
}) {
  const w = useWords(own);
  const shown = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const given = (event: { currentTarget: { value: string } }) => set(parsed(schema, event.currentTarget.value));
  const options = schema.enum ?? (kind(schema) === "boolean" ? [true, false] : undefined);
  return (
    <Field
      label={needed ? `${name} *` : name}
      hint={schema.description ?? (isSimple(schema) ? undefined : w.inputHint)}
    >
      {(id) =>
        options ? (
          <select id={id} value={shown} required={needed} onChange={given}>
            <option value="">{schema.default === undefined ? "–" : String(schema.default)}</option>
            {options.map((each) => (
              <option key={String(each)} value={String(each)}>
                {String(each)}
              </option>
            ))}
          </select>
        ) : isSimple(schema) ? (
          <input
            id={id}
            type={kind(schema) === "string" ? "text" : "number"}
            step="any"
            min={schema.minimum}
            max={schema.maximum}
            required={needed}
            value={shown}
            placeholder={schema.default === undefined ? "" : String(schema.default)}
            onInput={given}
          />
        ) : (
          <textarea id={id} rows={2} required={needed} value={shown} onChange={given} />
        )
      }
    </Field>
  );
}
