/** The same call for other tools. */

export interface Call {
  url?: string;
  scraper?: string;
  input?: Record<string, unknown>;
  [option: string]: unknown;
}

export const EXTRACT = "builtin/extract";
const PLAIN = ["fields", "schema", "prompt", "engine"];

/** The same as a call of `/api/extract`, if it is one and that has its options. */
function extraction({ scraper, url, input = {}, ...more }: Call): Call | undefined {
  const isPlain = scraper === EXTRACT && url !== undefined && Object.keys(input).every((name) => PLAIN.includes(name));
  return isPlain ? { url, ...input, ...more } : undefined;
}

export type Tool = "curl" | "Python" | "CLI" | "TypeScript";

export function snippet(tool: Tool, call: Call, server: string): string {
  return { curl, Python: python, CLI: cli, TypeScript: typescript }[tool](call, server);
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

function curl(call: Call, server: string): string {
  const extract = extraction(call);
  const path = extract ? "extract" : "scrape";
  return `curl -s ${server}/api/${path} \\\n  -H 'Content-Type: application/json' \\\n  -d ${quoted(JSON.stringify(extract ?? call))}`;
}

function python(call: Call, server: string): string {
  const { url, scraper, input, ...more } = call;
  const options = Object.entries(more).map(([name, value]) => `${name}=${literal(value)}`);
  const asked =
    scraper === undefined
      ? [`client.scrape(${[literal(url), ...options].join(", ")})`]
      : [
          `client.run(${[literal(scraper), literal(url === undefined ? (input ?? {}) : { url, ...input }), ...options].join(", ")})`,
        ];
  return [
    "from scrapeyard_client import Client",
    "",
    `with Client(${literal(server)}) as client:`,
    `    run = ${asked[0]}`,
    "    print(run.result)",
  ].join("\n");
}

/** A JSON value as Python writes it. */
export function literal(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${literal(each)}`)
      .join(", ")}}`;
  return JSON.stringify(value);
}

function cli(call: Call, server: string): string {
  const extract = extraction(call);
  if (typeof extract?.fields === "string" && !extract.policy) {
    const engine = extract.engine === undefined ? "" : ` --engine ${extract.engine}`;
    return `scrapeyard extract ${quoted(extract.url ?? "")} --fields ${quoted(extract.fields)}${engine} --server ${server}`;
  }
  const { url, scraper, input, engine, policy } = call;
  const given = url === undefined ? (input ?? {}) : { url, ...input };
  const target = scraper === undefined ? quoted(url ?? "") : `${scraper} --input ${quoted(JSON.stringify(given))}`;
  const options = [
    engine === undefined ? "" : ` --engine ${engine}`,
    policy === undefined ? "" : ` --policy ${quoted(JSON.stringify(policy))}`,
  ];
  return `scrapeyard scrape ${target}${options.join("")} --server ${server}`;
}

const PRIVATE = /^(localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|\[)/;
const PRODUCT = ["price", "currency", "availability", "sku", "brand", "category", "description"];

/** A scraper's id for a page: its host, and a word of its path. */
export function idOf(url: string): string {
  const { hostname = "", pathname = "" } = URL.canParse(url) ? new URL(url) : {};
  const name = hostname.replace(/^www\./, "");
  const site = /^[\d.]+$/.test(name) ? "shop" : (name.split(".").at(-2) ?? name);
  const task = pathname.split("/").find((part) => /^[a-z][a-z0-9-]{2,30}$/.test(part)) ?? "page";
  return `${site.replace(/[^a-z0-9-]/g, "") || "site"}/${task}`;
}

/** The fields that `scrapeyard new --url` begins with, as far as the result shows them. */
export function fieldsOf(result: unknown): string[] {
  const page = (result ?? {}) as { title?: unknown; product?: Record<string, unknown> | null };
  const product = PRODUCT.filter((name) => ["string", "number"].includes(typeof page.product?.[name]));
  return [...(page.title ? ["title"] : []), ...product];
}

/** The commands that write a scraper for a page, try it while it is changed, and serve it. */
export function commandsOf(id: string, url: string): [string, string, string] {
  const isPrivate = PRIVATE.test(URL.canParse(url) ? new URL(url).host : url);
  const more = isPrivate ? " --allow-private" : "";
  return [
    `scrapeyard new ${id} --url ${quoted(url)}${more}`,
    `scrapeyard dev scrapers/${id}`,
    `scrapeyard up --scrapers scrapers${more}`,
  ];
}

function typescript(call: Call, server: string): string {
  const extract = extraction(call);
  return [
    'import { Scrapeyard } from "@scrapeyard/client";',
    "",
    `const yard = new Scrapeyard(${JSON.stringify(server)});`,
    `const run = await yard.call("${extract ? "extract" : "scrape"}", { body: ${JSON.stringify(extract ?? call)} });`,
    "console.log(run);",
  ].join("\n");
}
