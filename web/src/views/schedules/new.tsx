/** A new schedule: what, when in words, and what if the last one still runs. */

import { useState } from "preact/hooks";
import { api, useAction } from "#/api/client";
import { useAddress } from "#/kit/address";
import { Field, Head, Problem } from "#/kit/base";
import { language, useWords } from "#/words";
import type { ScheduleCall, ScheduledScrape } from "#client";
import { cronWords } from "./cron";
import { own } from "./words";

export default function NewSchedule() {
  const w = useWords(own);
  const { query, go } = useAddress();
  const given = query.scrape ? (JSON.parse(query.scrape) as ScheduledScrape) : undefined;
  const [form, setForm] = useState<Record<string, string>>({
    cron: "0 9 * * *",
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    url: given?.url ?? "",
    overlap: "skip",
  });
  const set = (some: Record<string, string>) => setForm((now) => ({ ...now, ...some }));
  const make = useAction(() => api.call("create_schedule", { body: callOf(form, given) }), {
    touches: ["list_schedules"],
    done: (made) => go(`/schedules/${made.id}`),
  });
  const text = (name: string, label: string, more: Record<string, unknown> = {}, hint?: string) => (
    <Field label={label} hint={hint}>
      {(id) => (
        <input
          id={id}
          {...more}
          value={form[name] ?? ""}
          onInput={(event) => set({ [name]: event.currentTarget.value })}
        />
      )}
    </Field>
  );
  const said = cronWords(form.cron ?? "", language.get());
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate(undefined);
      }}
    >
      <Head title={w.new}>
        <button type="submit" class="main" disabled={make.isPending}>
          {w.make}
        </button>
      </Head>
      <Problem error={make.error} />
      <section class="panel grid">
        {text("name", w.nameOf)}
        {given?.scraper ? (
          <pre>{JSON.stringify(given, null, 2)}</pre>
        ) : (
          text("url", w.url, { placeholder: "https://", required: !form.sitemap })
        )}
        {!given && text("sitemap", w.sitemap, { placeholder: "https://" })}
        {text("cron", w.cron, { required: !form.every }, form.cron ? (said ?? w.cronOdd) : w.cronHint)}
        {text("every", w.every, { type: "number", min: "1" })}
        {text("zone", w.zone)}
        <Field label={w.overlap}>
          {(id) => (
            <select id={id} value={form.overlap} onChange={(event) => set({ overlap: event.currentTarget.value })}>
              {(["skip", "queue", "cancel_previous"] as const).map((one) => (
                <option key={one} value={one}>
                  {w[one]}
                </option>
              ))}
            </select>
          )}
        </Field>
      </section>
    </form>
  );
}

function callOf(form: Record<string, string>, given: ScheduledScrape | undefined): ScheduleCall {
  const when = form.every ? { every_seconds: Number(form.every) } : { cron: form.cron, time_zone: form.zone };
  const what = form.sitemap
    ? {
        job: {
          sitemap_url: form.sitemap,
          scraper: "builtin/page",
          exports: [{ type: "full" as const, format: "csv" as const }],
        },
      }
    : { scrape: given?.scraper ? given : { ...given, url: form.url } };
  return { name: form.name || undefined, overlap: form.overlap as "skip", ...when, ...what };
}
