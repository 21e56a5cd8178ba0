/** The reader's language, theme, clock and numbers. */

import { store, useStore } from "#/api/store";

export type Language = "en" | "ko";
export type Theme = "auto" | "light" | "dark";

const kept = (name: string) => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
};

const preferred: Language = navigator.language.toLowerCase().startsWith("ko") ? "ko" : "en";
export const language = store<Language>((kept("language") as Language | null) ?? preferred);
export const theme = store<Theme>((kept("theme") as Theme | null) ?? "auto");

function apply(): void {
  document.documentElement.lang = language.get();
  const root = document.documentElement;
  if (theme.get() === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme.get();
}

for (const [name, value] of [
  ["language", language],
  ["theme", theme],
] as const) {
  value.follow((now: string) => {
    try {
      localStorage.setItem(name, now);
    } catch {
      // a browser that keeps nothing: the choice holds until the page is closed
    }
    apply();
  });
}
apply();

/** Words of a view: English says which there are, Korean must have the same. */
export interface Words<T> {
  en: T;
  ko: { [K in keyof T]: T[K] extends string ? string : T[K] };
}

export function words<T>(en: T, ko: Words<T>["ko"]): Words<T> {
  return { en, ko };
}

/** The words of a view in the reader's language. */
export function useWords<T>(given: Words<T>): Words<T>["ko"] {
  return useStore(language) === "ko" ? given.ko : (given.en as Words<T>["ko"]);
}

const formats = new Map<string, Intl.NumberFormat>();

/** A number as the reader writes it. */
export function number(value: number | null | undefined, digits = 0): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const name = `${language.get()} ${digits}`;
  let format = formats.get(name);
  if (!format) {
    format = new Intl.NumberFormat(language.get(), { maximumFractionDigits: digits });
    formats.set(name, format);
  }
  return format.format(value);
}

export const percent = (share: number | null | undefined) =>
  share === null || share === undefined ? "–" : `${number(share * 100, share > 0 && share < 0.1 ? 1 : 0)} %`;

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  let left = value;
  while (left >= 1000 && unit < units.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${number(left, left < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`;
}

/** Milliseconds in the unit that reads best. */
export function took(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 10) return `${number(ms, 1)} ms`;
  if (ms < 1000) return `${number(ms)} ms`;
  return lasts(ms / 1000);
}

/** Seconds as people say them, in two units at most. */
export function lasts(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  const korean = language.get() === "ko";
  if (seconds < 60) return `${number(seconds, seconds < 10 ? 1 : 0)} ${korean ? "초" : "s"}`;
  const units: [number, string][] = korean
    ? [
        [86400, "일"],
        [3600, "시간"],
        [60, "분"],
        [1, "초"],
      ]
    : [
        [86400, "d"],
        [3600, "h"],
        [60, "min"],
        [1, "s"],
      ];
  const first = units.findIndex(([size]) => seconds >= size);
  const [size, name] = units[first]!;
  const [smaller, smallerName] = units[first + 1]!;
  const whole = Math.floor(seconds / size);
  const rest = Math.floor((seconds - whole * size) / smaller);
  return `${number(whole)} ${name}${rest && whole < 100 ? ` ${rest} ${smallerName}` : ""}`;
}

/** An instant in the reader's zone. */
export function exact(at: string | number | null | undefined): string {
  if (at === null || at === undefined) return "–";
  return new Intl.DateTimeFormat(language.get(), { dateStyle: "medium", timeStyle: "medium" }).format(new Date(at));
}

/** The time of day, with the day where that is not today. */
export function clock(at: string | number): string {
  const when = new Date(at);
  const today = when.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(language.get(), {
    timeStyle: "short",
    ...(today ? {} : { dateStyle: "medium" }),
  }).format(when);
}

/** How long ago or ahead, in words. */
export function ago(at: string | null | undefined, now = Date.now()): string {
  if (!at) return "–";
  const seconds = (new Date(at).getTime() - now) / 1000;
  const format = new Intl.RelativeTimeFormat(language.get(), { numeric: "auto", style: "short" });
  const far = Math.abs(seconds);
  if (far < 45) return format.format(Math.round(seconds), "second");
  if (far < 2700) return format.format(Math.round(seconds / 60), "minute");
  if (far < 79200) return format.format(Math.round(seconds / 3600), "hour");
  return format.format(Math.round(seconds / 86400), "day");
}
