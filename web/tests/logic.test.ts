import { expect, test } from "vitest";
import { HIGHEST, placed, scrolledHeight, shownRows } from "../src/kit/window";
import { literal, snippet } from "../src/views/try/snippets";

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
