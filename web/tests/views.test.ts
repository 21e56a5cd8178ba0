import { expect, test } from "vitest";
import { around, coloured, diffLines } from "../src/kit/diff";
import { stack } from "../src/kit/series";
import { compared, heeded, wordsOf } from "../src/views/data/compare";
import { conditionOf, flat, searchFor, statsOf, telling, valuesOf } from "../src/views/data/stats";
import { chosen, csvRows, estimated, hostOf, matcher } from "../src/views/jobs/patterns";
import { quietStyles } from "../src/views/runs/styles";
import { cronWords } from "../src/views/schedules/cron";
import { weekOf } from "../src/views/schedules/week";
import { byVersion } from "../src/views/scrapers/success";
import { inSections, shownValue } from "../src/views/settings/sections";
import { byKind, failuresOf } from "../src/views/sites/statuses";

test("patterns choose addresses as the server does", () => {
  expect(matcher("/product/*")?.test("https://shop.example/product/1")).toBe(true);
  expect(matcher("/product/*")?.test("https://shop.example/product/1/more")).toBe(false);
  expect(matcher("https://shop.example/**")?.test("https://shop.example/a/b")).toBe(true);
  expect(matcher("re:/p[0-9]+$")?.test("https://shop.example/p12")).toBe(true);
  expect(matcher("re:(")).toBe(null);
  const urls = ["http://a/x", "http://a/y", "http://a/x/old"];
  expect(chosen(urls, "/x\n/x/*", "**/old")).toEqual(["http://a/x"]);
});

test("the first rows of a CSV, with quotes and another delimiter", () => {
  expect(csvRows('url;note\nhttp://a;"x; ""y""\nz"\n\nhttp://b;2\n')).toEqual([
    ["url", "note"],
    ["http://a", 'x; "y"\nz'],
    ["http://b", "2"],
  ]);
});

test("cron in words, in both languages", () => {
  expect(cronWords("0 9 * * MON-WED", "en")).toBe("every Monday, Tuesday, Wednesday at 09:00");
  expect(cronWords("@daily", "ko")).toBe("매일 00:00");
  expect(cronWords("*/5 * * * *", "en")).toBe("every 5 minutes");
  expect(cronWords("0 9 1-5/2 * *", "en")).toBe(null);
});

test("columns of records and their figures", () => {
  const rows = [
    flat({ title: "A", product: { price: 3 }, markdown: "…" }),
    flat({ title: "B", product: { price: 9 }, markdown: "…" }),
    flat({ title: null }),
  ];
  expect(statsOf(rows, "product.price")).toEqual({
    filled: 2 / 3,
    distinct: 2,
    low: 3,
    high: 9,
    steps: [1, 0, 0, 0, 0, 0, 0, 0, 0, 1],
  });
  expect(telling(rows)).toEqual(["title", "product.price"]);
});

test("stacked series add up from the last to the first", () => {
  const series = [
    { name: "a", tone: "", values: [1, 2] },
    { name: "b", tone: "", values: [3, null] },
  ];
  expect(stack(series)).toEqual([
    [4, 2],
    [3, 0],
  ]);
});

test("two versions of a file, line by line", () => {
  const lines = diffLines("a\nb\nc\nd\n", "a\nc\nd\ne\n");
  expect(lines.map((line) => [line.kind, line.text, line.old, line.now])).toEqual([
    ["same", "a", 1, 1],
    ["out", "b", 2, null],
    ["same", "c", 3, 2],
    ["same", "d", 4, 3],
    ["in", "e", null, 4],
  ]);
  expect(around(diffLines(`${"x\n".repeat(9)}a`, `${"x\n".repeat(9)}b`), 1).map((line) => line?.kind)).toEqual([
    undefined,
    "same",
    "out",
    "in",
  ]);
  expect(diffLines("", "a\n").map((line) => line.kind)).toEqual(["in"]);
});

test("code in colours keeps every character", () => {
  const line = '    return f(x, "a # b")  # note 1';
  const pieces = coloured(line);
  expect(pieces.map((piece) => piece.text).join("")).toBe(line);
  expect(pieces.filter((piece) => piece.kind).map((piece) => [piece.kind, piece.text])).toEqual([
    ["word", "return"],
    ["string", '"a # b"'],
    ["note", "# note 1"],
  ]);
});

test("success by version counts runs and the items of jobs", () => {
  const run = (version: string, status: string, wall_ms: number) =>
    ({ version, status, exit_reason: status, usage: { wall_ms } }) as never;
  const job = { version: "2", counts: { success: 8, error: 2 } } as never;
  const found = byVersion([run("1", "succeeded", 5), run("1", "failed", 9), run("1", "cancelled", 1)], [job]);
  expect(found.get("1")).toMatchObject({ ended: 2, good: 1, ms: 9 });
  expect(found.get("2")).toMatchObject({ ended: 10, good: 8, ms: null });
});

test("settings stand in the sections of their file", () => {
  const keys = inSections([{ key: "data_dir" }, { key: "http.x" }, { key: "http.y" }]);
  expect(keys.map(([section, some]) => [section, some.length])).toEqual([
    ["", 1],
    ["http", 2],
  ]);
  expect([shownValue(["a", "b"]), shownValue(null), shownValue([{ a: 1 }]), shownValue(false)]).toEqual([
    "a, b",
    "",
    '[{"a":1}]',
    "false",
  ]);
});

test("what a job asks of a site: the slower pace, and bytes as known of the site", () => {
  const job = (success: number, bytes_received: number) => ({ counts: { success }, usage: { bytes_received } });
  expect(estimated({ pages: 100, wished: 5, allowed: 2, size: 10, jobs: [] })).toEqual({
    rate: 2,
    seconds: 50,
    bytes: 1000,
  });
  expect(estimated({ pages: 10, wished: null, allowed: null, size: 10, jobs: [job(2, 60), job(0, 9)] })).toEqual({
    rate: null,
    seconds: null,
    bytes: 300,
  });
  expect([hostOf("shop.example/a"), hostOf("https://a.example:8/"), hostOf("")]).toEqual([
    "shop.example",
    "a.example",
    "",
  ]);
});

test("two records field by field, and their words", () => {
  const { changed, same } = compared({ title: "A red lamp", price: 3 }, { title: "A blue lamp", price: 3, sku: "x" });
  expect(changed.map((one) => one.name)).toEqual(["title", "sku"]);
  expect(same.map((one) => one.name)).toEqual(["price"]);
  const [before, now] = wordsOf("A red lamp", "A blue lamp");
  expect(before.map((word) => word.text).join("")).toBe("A red lamp");
  expect(before.filter((word) => word.changed).map((word) => word.text.trim())).toEqual(["red"]);
  expect(now.filter((word) => word.changed).map((word) => word.text.trim())).toEqual(["blue"]);
  expect(heeded("price;title", ["title"])).toEqual(["price"]);
});

test("styles of a page ask for nothing", () => {
  const css = quietStyles(
    '@import "x.css"; @font-face { src: url(f.woff) } a { background: url("http://x/a.png") url(data:image/png;base64,A) }',
  );
  expect(css).not.toMatch(/import|woff|http/);
  expect(css).toContain("url(data:image/png;base64,A)");
});

test("what a site answered, the oldest job first, and how items failed there", () => {
  const jobs: { created_at: string; http_statuses: Record<string, number> }[] = [
    { created_at: "2026-01-02T00:00:00Z", http_statuses: { "200": 5, "204": 1, "403": 2, "429": 1, "404": 3 } },
    { created_at: "2026-01-03T00:00:00Z", http_statuses: {} },
    { created_at: "2026-01-01T00:00:00Z", http_statuses: { "301": 1, "503": 4 } },
  ];
  expect(byKind(jobs)).toEqual({
    at: [Date.UTC(2026, 0, 1) / 1000, Date.UTC(2026, 0, 2) / 1000],
    counts: { fine: [0, 6], elsewhere: [1, 0], refused: [0, 3], missing: [0, 3], broken: [4, 0] },
  });
  const letter = (http_status: number | null, finished_at: string) =>
    ({ http_status, exit_reason: "blocked", error: { message: "no" }, finished_at }) as never;
  expect(failuresOf([letter(500, "a"), letter(403, "b"), letter(403, "a")])).toMatchObject([
    { status: 403, reason: "blocked", count: 2, last: "b", example: "no" },
    { status: 500, count: 1, last: "a" },
  ]);
});

test("values to filter by, and what the server searches for", () => {
  const rows = [{ brand: "A" }, { brand: "B" }, { brand: "B" }, { brand: null }, { brand: ["x"] }];
  expect(valuesOf(rows, "brand")).toEqual([
    ["B", 2],
    ["A", 1],
  ]);
  expect(conditionOf("offer.price=3=4")).toEqual({ name: "offer.price", value: "3=4" });
  expect([conditionOf("price"), conditionOf("price="), conditionOf("=3"), conditionOf(undefined)]).toEqual([
    null,
    null,
    null,
    null,
  ]);
  expect(searchFor('27" screen, black')).toBe(" screen, black");
});

test("a week of schedules says where it knows no more", () => {
  const now = new Date(2026, 0, 5, 12).getTime();
  const morning = (ahead: number) => new Date(2026, 0, 5 + ahead, 9).toISOString();
  const daily = { next_runs: [1, 2, 3, 4, 5].map(morning) };
  const once = { next_runs: [morning(6)] };
  const week = weekOf([daily, once], now);
  expect(week.map((one) => one.runs.length)).toEqual([0, 1, 1, 1, 1, 1, 1]);
  expect(week.map((one) => one.more.length)).toEqual([0, 0, 0, 0, 0, 0, 1]);
  const often = { next_runs: [0, 1, 2, 3, 4].map((ahead) => new Date(now + ahead * 60_000).toISOString()) };
  expect(weekOf([often], now).map((one) => one.more.length)).toEqual([1, 1, 1, 1, 1, 1, 1]);
  expect(week[6]!.runs[0]!.one).toBe(once);
  expect(weekOf([{ next_runs: [] }], now)[0]!.more).toEqual([]);
});
