import { expect, test } from "vitest";
import { HIGHEST, placed, scrolledHeight, shownRows } from "../src/kit/window";
import { compared } from "../src/views/audit/compared";
import { limitsOf } from "../src/views/keys/limits";
import { byJob, groupsOf } from "../src/views/letters/groups";
import { agrees, corrected, type FoundField, isList, meant, saidOf, written } from "../src/views/runs/corrections";
import { gentler } from "../src/views/sites/rules";
import { spread } from "../src/views/system/spread";
import { commandsOf, fieldsOf, idOf, literal, snippet } from "../src/views/try/snippets";

test("a short table scrolls as it is", () => {
  expect(scrolledHeight(100, 36)).toBe(3600);
  expect(shownRows({ top: 0, high: 360, count: 100, row: 36 })).toEqual([0, 16]);
  expect(placed({ index: 3, top: 0, high: 360, count: 100, row: 36 })).toBe(108);
});

test("the last of a million rows is seen at the end of the scroll bar", () => {
  const high = 576;
  const seen = { top: HIGHEST - high, high, count: 1_000_000, row: 36 };
  expect(scrolledHeight(1_000_000, 36)).toBe(HIGHEST);
  expect(shownRows(seen)[1]).toBe(999_999);
  expect(placed({ ...seen, index: 999_999 }) + 36).toBeCloseTo(HIGHEST, 0);
});

test("a call is written as Python writes it", () => {
  expect(literal({ a: [true, null, "x'y"], n: 1 })).toBe('{"a": [True, None, "x\'y"], "n": 1}');
  const text = snippet("Python", { url: "http://a.example", policy: { robots: "obey" } }, "http://s");
  expect(text).toContain('client.scrape("http://a.example", policy={"robots": "obey"})');
});

test("a quote in an address cannot end the shell's word", () => {
  expect(snippet("curl", { url: "http://a/'; rm -rf ." }, "http://s")).toContain(`'\\''; rm -rf .`);
  expect(snippet("CLI", { scraper: "a/b", input: { q: "it's" } }, "http://s")).toContain(`--input '{"q":"it'\\''s"}'`);
});

test("data to fields are copied as a call of their own, where that has every option", () => {
  const call = { scraper: "builtin/extract", url: "http://a/1", input: { fields: "title, it's" } };
  expect(snippet("CLI", call, "http://s")).toBe(
    `scrapeyard extract 'http://a/1' --fields 'title, it'\\''s' --server http://s`,
  );
  expect(snippet("curl", call, "http://s")).toContain("/api/extract");
  expect(snippet("TypeScript", call, "http://s")).toContain(
    'yard.call("extract", { body: {"url":"http://a/1","fields"',
  );
  const more = { ...call, input: { ...call.input, headers: { a: "b" } } };
  expect(snippet("curl", more, "http://s")).toContain("/api/scrape");
  expect(snippet("CLI", { ...call, policy: { robots: "obey" } }, "http://s")).toContain("--policy");
});

test("a correction is the page with its value, and keeps what was said of it before", () => {
  const input = { url: "http://a/1", fields: "price: number, tags: text[], day?: date" };
  const once = corrected(input, "price", "1,50");
  expect(once).toEqual({ ...input, examples: [{ url: "http://a/1", values: { price: "1,50" } }] });
  const other = { url: "http://a/2", values: { price: "9" } };
  const twice = corrected({ ...once, examples: [other, ...(once.examples as object[])] }, "day", null);
  expect(saidOf(twice)).toEqual({ price: "1,50", day: null });
  expect(saidOf({ ...twice, url: "http://a/2" })).toEqual({});
  expect([isList(input, "tags", null), isList(input, "price", null), isList({}, "x", [1])]).toEqual([
    true,
    false,
    true,
  ]);
  expect(isList({ schema: { properties: { tags: { type: "array" } } } }, "tags", null)).toBe(true);
});

test("a value is written as the page does, and meant as it is written", () => {
  const found = (value: unknown, text: string): FoundField => ({
    value,
    confidence: 1,
    how: "structured",
    evidence: { text, selector: "//p", json_path: null },
    flags: [],
  });
  expect(written(found(true, "In stock"))).toBe("In stock");
  expect(written(found("2026-05-01", "May 1"))).toBe("May 1");
  expect(written(found(["a", "b"], "a"))).toBe("a\nb");
  expect(written(found(217.71, "€217.71"))).toBe("217.71");
  expect([meant(" x ", false), meant(" \n", true), meant("a\n b\n", true)]).toEqual(["x", null, ["a", "b"]]);
  expect(agrees(found(1299, "1.299,00 €"), "1.299,00 €")).toBe(true);
  expect(agrees(found(1.5, "1.5"), "1.50")).toBe(true);
  expect(agrees(found(true, "In stock"), "In stock")).toBe(true);
  expect(agrees(found("LIG-0001", "LIG-0001"), "LIG-0002")).toBe(false);
  expect(agrees(found("LIG-0001", "LIG-0001"), null)).toBe(false);
  expect(agrees({ ...found(null, ""), evidence: null }, null)).toBe(true);
});

test("the audit shows what changed first, field by field", () => {
  const found = compared({ rate: 2, more: { note: "a" } }, { rate: 1, more: { note: "a" }, robots: "obey" });
  expect(found.map((each) => [each.name, each.before, each.after, each.changed])).toEqual([
    ["rate", "2", "1", true],
    ["robots", undefined, "obey", true],
    ["more.note", "a", "a", false],
  ]);
});

test("only limits that were filled in are sent", () => {
  expect(limitsOf({ rate: "5", concurrency: "", "daily.runs": "100", "monthly.mb": "0" })).toEqual({
    rate: 5,
    daily: { runs: 100 },
    monthly: {},
  });
});

test("items that failed alike are one group, and are run again job by job", () => {
  const letter = (id: string, job_id: string, site: string) => ({ id, job_id, site, exit_reason: "timeout" }) as never;
  const letters = [letter("a", "job_1", "x"), letter("b", "job_1", "x"), letter("c", "job_2", "y")];
  expect(groupsOf(letters).map((group) => [group.job, group.site, group.count])).toEqual([
    ["job_1", "x", 2],
    ["job_2", "y", 1],
  ]);
  expect([...byJob(letters, new Set(["job_1/b", "job_2/c"]))]).toEqual([
    ["job_1", ["b"]],
    ["job_2", ["c"]],
  ]);
});

test("being gentler halves the pace and keeps the other rules", () => {
  const limits = { rate: 4, min_rate: 0.1 };
  const rules = { rate: 4, burst: null, robots: "obey", note: "their wish" };
  expect(gentler({ limits, rules, state: null, more: {} } as never)).toEqual({
    rate: 2,
    robots: "obey",
    note: "their wish",
  });
  expect(gentler({ limits: { rate: 0, min_rate: 0.1 }, rules: null, state: null } as never).rate).toBe(1);
});

test("a minute that nobody counted is a gap in the charts", () => {
  const sample = (minute: number) => ({ at: new Date(minute * 60_000).toISOString(), busy: 1, lanes: {} }) as never;
  const found = spread([sample(1), sample(2), sample(9)]);
  expect(found.map((each) => each.busy)).toEqual([1, 1, null, 1]);
});

test("a page that was tried becomes a scraper by a command", () => {
  expect(idOf("https://www.shop.example/product/1?a=b")).toBe("shop/product");
  expect(idOf("http://127.0.0.1:8800/")).toBe("shop/page");
  expect(idOf("no address")).toBe("site/page");
  expect(commandsOf("shop/product", "http://127.0.0.1:8800/it's")[0]).toBe(
    "scrapeyard new shop/product --url 'http://127.0.0.1:8800/it'\\''s' --allow-private",
  );
  expect(commandsOf("shop/product", "https://shop.example/")[0]).toBe(
    "scrapeyard new shop/product --url 'https://shop.example/'",
  );
  expect(fieldsOf({ title: "A", product: { price: 3, images: [], sku: null } })).toEqual(["title", "price"]);
  expect(fieldsOf(null)).toEqual([]);
});
