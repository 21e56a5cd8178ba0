import { expect, test } from "vitest";
import { stack } from "../src/kit/series";
import { flat, statsOf, telling } from "../src/views/data/stats";
import { chosen, csvRows, matcher } from "../src/views/jobs/patterns";
import { cronWords } from "../src/views/schedules/cron";

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
  expect(statsOf(rows, "product.price")).toEqual({ filled: 2 / 3, distinct: 2, low: 3, high: 9 });
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
