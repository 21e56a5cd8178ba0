/** The calls that make a job, and its schedule, of what the form says. */

import { api, send } from "#/api/client";
import { ApiError, type CreatedJobDocument, type ExportCall, type JobCall } from "#client";
import type { Form, Kind } from "./new-what";
import { hostOf, lines } from "./patterns";

export const EXPORTS: Record<string, ExportCall> = {
  full_csv: { type: "full", format: "csv" },
  full_xlsx: { type: "full", format: "xlsx" },
  pages_jsonl: { type: "pages", format: "jsonl" },
  records_csv: { type: "records", format: "csv" },
};
export const REPEATS: Record<string, string> = { hourly: "0 * * * *", daily: "0 9 * * *", weekly: "0 9 * * 1" };

const count = (text: string | undefined) => (text ? Number(text) : undefined);

/** The body of the call, without what was left open. */
export function jobOf(kind: Kind, form: Form): JobCall {
  const include = lines(form.include ?? "");
  const exclude = lines(form.exclude ?? "");
  const wish = EXPORTS[form.export ?? ""];
  const policy = {
    rate: count(form.rate),
    concurrency: count(form.concurrency),
    retries: count(form.retries),
    robots: (form.robots || undefined) as "obey" | undefined,
    budget: form.megabytes ? { megabytes: Number(form.megabytes) } : undefined,
    snapshots: form.changes ? {} : undefined,
  };
  const input = form.scraper ? form.input && JSON.parse(form.input) : form.engine && { engine: form.engine };
  return {
    scraper: form.scraper || "builtin/page",
    name: form.name || undefined,
    policy,
    ...(input ? { input } : {}),
    exports: wish ? [wish] : undefined,
    webhook: form.webhook ? { url: form.webhook, ...(form.secret ? { secret: form.secret } : {}) } : undefined,
    ...(kind === "crawl"
      ? {
          start_url: form.address,
          follow: {
            include,
            exclude,
            depth: count(form.depth),
            limit: count(form.limit),
            scope: "host" as const,
            sitemap: true,
          },
        }
      : {}),
    ...(kind === "sitemap"
      ? { sitemap_url: form.address, sitemap: { include, exclude, limit: count(form.limit) } }
      : {}),
    ...(kind === "paste" ? { items: lines(form.list ?? "") } : {}),
  };
}

export async function create(
  kind: Kind,
  form: Form,
  file: File | null,
  columns: Record<string, string>,
): Promise<{ id: string }> {
  const call = jobOf(kind, form);
  if (kind !== "file" || !file) return repeated(await api.call("create_job", { body: call }), call, form);
  const query = new URLSearchParams({ scraper: call.scraper! });
  if (call.name) query.set("name", call.name);
  if (call.policy) query.set("policy", JSON.stringify(call.policy));
  if (call.exports) query.set("exports", JSON.stringify(call.exports));
  if (call.webhook) query.set("webhook", JSON.stringify(call.webhook));
  if (call.input) query.set("input", JSON.stringify(call.input));
  if (Object.keys(columns).length) query.set("columns", JSON.stringify(columns));
  const type = /\.jsonl$/i.test(file.name)
    ? "application/x-ndjson"
    : /\.json$/i.test(file.name)
      ? "application/json"
      : /\.csv$/i.test(file.name)
        ? "text/csv"
        : "text/plain";
  const answer = await send(`/api/jobs?${query}`, { method: "POST", headers: { "Content-Type": type }, body: file });
  const said = await answer.json();
  if (!answer.ok) throw new ApiError(answer.status, said);
  return said as CreatedJobDocument;
}

/** Also make the schedule that was wished for. */
async function repeated<Made>(job: Made, call: JobCall, form: Form): Promise<Made> {
  const cron = REPEATS[form.repeat ?? ""];
  if (cron) {
    const time_zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const name = call.name ?? hostOf(form.address ?? "");
    await api.call("create_schedule", { body: { name, cron, time_zone, job: call } });
  }
  return job;
}
