/** A cron expression in words, for the forms that people write; null for the rest, which the server explains by its times. */

import type { Language } from "#/words";

const DAYS: Record<Language, string[]> = {
  en: ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
  ko: ["일요일", "월요일", "화요일", "수요일", "목요일", "금요일", "토요일"],
};
const NAMES = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const SHORT: Record<string, string> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
};

const isNumber = (text: string, most: number) => /^\d+$/.test(text) && Number(text) <= most;

export function cronWords(given: string, language: Language): string | null {
  const parts = (SHORT[given.trim()] ?? given.trim()).split(/\s+/);
  if (parts.length !== 5) return null;
  const [minute, hour, day, month, weekday] = parts as [string, string, string, string, string];
  const korean = language === "ko";
  const every = /^\*\/(\d+)$/.exec(minute);
  if (every && [hour, day, month, weekday].every((part) => part === "*"))
    return korean ? `${every[1]}분마다` : `every ${every[1]} minutes`;
  if (!isNumber(minute, 59) || month !== "*") return null;
  if (hour === "*" && day === "*" && weekday === "*")
    return korean ? `매시 ${Number(minute)}분` : `every hour at minute ${Number(minute)}`;
  if (!isNumber(hour, 23)) return null;
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (day === "*" && weekday === "*") return korean ? `매일 ${time}` : `every day at ${time}`;
  if (isNumber(day, 31) && weekday === "*")
    return korean ? `매월 ${Number(day)}일 ${time}` : `on day ${Number(day)} of every month at ${time}`;
  if (day !== "*") return null;
  const days = weekday.split(",").map((one) => daysOf(one.toUpperCase()));
  if (days.some((one) => one === null)) return null;
  const names = [...new Set(days.flat() as number[])].map((one) => DAYS[language][one]!);
  return korean ? `매주 ${names.join(", ")} ${time}` : `every ${names.join(", ")} at ${time}`;
}

function daysOf(text: string): number[] | null {
  const [from, to] = text
    .split("-")
    .map((one) => (NAMES.includes(one) ? NAMES.indexOf(one) : isNumber(one, 7) ? Number(one) % 7 : -1));
  if (from === undefined || from < 0 || to === -1) return null;
  if (to === undefined) return [from];
  const found = [];
  for (let day = from; ; day = (day + 1) % 7) {
    found.push(day);
    if (day === to) return found;
  }
}
