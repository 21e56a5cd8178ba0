import { expect, test } from "vitest";
import { HIGHEST, placed, scrolledHeight, shownRows } from "../src/kit/window";
import { compared } from "../src/views/audit/compared";
import { limitsOf } from "../src/views/keys/limits";
import { byJob, groupsOf } from "../src/views/letters/groups";
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
