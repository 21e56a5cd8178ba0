/** A new job in three steps: what, how, then; and what will be asked of the site. */

import { useState } from "preact/hooks";
import { api, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Copy, Field, Head, Problem } from "#/kit/base";
import { note } from "#/kit/dialog";
import { bytes, lasts, number, useWords } from "#/words";
import type { ScrapeCall } from "#client";
import { create, EXPORTS, REPEATS } from "./new-call";
import { type Form, type Kind, type Part, Text, What } from "./new-what";
import { own } from "./new-words";
import { chosen, estimated, hostOf, lines } from "./patterns";

const SAMPLE = 1000;
const STEPS = ["what", "how", "after"] as const;
type Step = (typeof STEPS)[number];

/** Look at what an address lists, and fetch one page of it to know how large they are. */
async function looked(kind: Kind, address: string) {
  const scope = kind === "sitemap" ? ("any" as const) : ("host" as const);
  const run = await api.call("map_site", { body: { url: address, limit: SAMPLE, sitemap: true, scope, wait: 60 } });
  const { urls, has_more } = (run as { result: { urls: { url: string; source: string }[]; has_more: boolean } }).result;
  const all = urls.filter((one) => kind === "crawl" || one.source === "sitemap").map((one) => one.url);
  const call = { url: all[Math.floor(all.length / 2)], formats: [], wait: 20, policy: { retries: 0 } } as ScrapeCall;
  const page = all.length ? ((await api.call("scrape", { body: call }).catch(() => null)) as Fetched | null) : null;
  return { all, has_more, bytes: page?.usage?.bytes_received ?? null };
}

interface Fetched {
  usage?: { bytes_received: number } | null;
}

export default function NewJob() {
  const w = useWords(own);
  const { query, change, go } = useAddress();
  const kind = (query.kind ?? "crawl") as Kind;
  const step = (query.step ?? "what") as Step;
  const [form, setForm] = useState<Form>({
    address: query.start ?? query.url ?? "",
    scraper: query.scraper ?? "",
    input: (query.scraper && query.input) || "",
    limit: "1000",
    depth: "3",
    export: "full_csv",
  });
  const [file, setFile] = useState<{ file: File; rows: string[][]; about: number } | null>(null);
  const [columns, setColumns] = useState<Record<string, string>>({});
  const set = (some: Form) => setForm((now) => ({ ...now, ...some }));
  const look = useAction(() => looked(kind, form.address!));
  const start = useAction(() => create(kind, form, file?.file ?? null, columns), {
    touches: ["list_jobs", "get_stats", "list_schedules"],
    done: (job) => {
      if (form.repeat) note(w.repeats);
      go(`/jobs/${job.id}`);
    },
  });
  const fit = chosen(look.data?.all ?? [], form.include ?? "", form.exclude ?? "");
  const most = Number(form.limit) || Number.POSITIVE_INFINITY;
  const pages =
    kind === "paste"
      ? lines(form.list ?? "").length
      : kind === "file"
        ? (file?.about ?? 0)
        : Math.min(fit.length, most);
  const isReady =
    kind === "file" ? file !== null : kind === "paste" ? pages > 0 : /^\S+$/.test((form.address ?? "").trim());
  const host = kind === "paste" ? hostOf(lines(form.list ?? "")[0] ?? "") : hostOf(form.address ?? "");
  const summaries: Record<Step, string> = {
    what: [w[`kind_${kind}`], pages ? w.pagesN(number(pages)) : ""].filter(Boolean).join(" · "),
    how: [
      form.scraper || "builtin/page",
      form.input ?? "",
      form.rate ? `${form.rate}/s` : "",
      form.megabytes ? `${form.megabytes} MB` : "",
    ]
      .filter(Boolean)
      .join(" · "),
    after: [form.export ? w[form.export as "full_csv"] : "", form.webhook ? "webhook" : "", form.repeat ? w.repeat : ""]
      .filter(Boolean)
      .join(" · "),
  };
  const at = STEPS.indexOf(step);
  const to = (next: Step) => change({ step: next === "what" ? null : next });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        start.mutate(undefined);
      }}
    >
      <Head title={w.title} about={w.about}>
        <button type="submit" class="main" disabled={start.isPending || !isReady}>
          {w.start_}
        </button>
      </Head>
      <Problem error={start.error} />
      <ol class="steps">
        {STEPS.map((one, index) => (
          <li key={one}>
            <button type="button" aria-current={one === step ? "step" : undefined} onClick={() => to(one)}>
              <strong>
                {number(index + 1)} {w[one]}
              </strong>
              <small>{summaries[one]}</small>
            </button>
          </li>
        ))}
      </ol>
      <section class="panel stack" aria-label={w[step]}>
        {step === "what" && (
          <What
            {...{ kind, form, set, look: { ...look, mutate: () => look.mutate(undefined) } }}
            found={look.data ? { fit, all: look.data.all.length, hasMore: look.data.has_more } : null}
            choose={(next) => {
              change({ kind: next === "crawl" ? null : next });
              look.reset();
            }}
            file={{
              file: file?.file ?? null,
              rows: file?.rows ?? [],
              take: (given, rows, about) => setFile({ file: given, rows, about }),
              columns,
              setColumns,
            }}
          />
        )}
        {step === "how" && <How {...{ form, set }} />}
        {step === "after" && <Then {...{ form, set, kind }} />}
        <div class="line">
          <Asked {...{ form, pages, host }} hasMore={look.data?.has_more ?? false} size={look.data?.bytes ?? null} />
          <span class="spring" />
          {at > 0 && (
            <button type="button" onClick={() => to(STEPS[at - 1]!)}>
              {w.back}
            </button>
          )}
          {at < STEPS.length - 1 && (
            <button type="button" onClick={() => to(STEPS[at + 1]!)}>
              {w.next}
            </button>
          )}
        </div>
      </section>
    </form>
  );
}

/** One line: pages, time and megabytes. */
function Asked({
  form,
  pages,
  host,
  size,
  hasMore,
}: {
  form: Form;
  pages: number;
  host: string;
  size: number | null;
  hasMore: boolean;
}) {
  const w = useWords(own);
  const site = useCall("get_site", { path: { site: host } }, { enabled: host !== "" && may("get_site") });
  const jobs = useCall("list_jobs", { query: { domain: host, limit: 20 } }, { enabled: host !== "" });
  if (!pages) return <p class="muted">{w.estimateNone}</p>;
  const told = estimated({
    pages,
    wished: Number(form.rate) || null,
    allowed: site.data?.limits.rate || null,
    size,
    jobs: jobs.data?.jobs ?? [],
  });
  const words = [
    (hasMore ? w.atLeast : w.about_)(number(pages)),
    told.rate ? w.atRate(number(told.rate, 2), lasts(told.seconds)) : w.asAllowed,
    told.bytes ? w.aboutSize(bytes(told.bytes)) : "",
  ];
  const budget = Number(form.megabytes) * 2 ** 20;
  return (
    <p role="status">
      {words.filter(Boolean).join(", ")}.
      {budget > 0 && told.bytes !== null && told.bytes > budget && (
        <span class="status warn"> ! {w.overBudget(bytes(budget))}</span>
      )}
    </p>
  );
}

function How({ form, set }: Part) {
  const w = useWords(own);
  return (
    <>
      <div class="grid">
        <Scraper form={form} set={set} />
        <Text name="rate" label={w.rate} hint={w.rateHint} type="number" form={form} set={set} />
        <Text name="megabytes" label={w.budget} hint={w.budgetHint} type="number" form={form} set={set} />
      </div>
      <details>
        <summary>{w.advanced}</summary>
        <div class="grid">
          <Text name="concurrency" label={w.concurrency} type="number" form={form} set={set} />
          <Text name="retries" label={w.retries} type="number" form={form} set={set} />
          {!form.scraper && (
            <Field label={w.engine}>
              {(id) => (
                <select
                  id={id}
                  value={form.engine ?? ""}
                  onChange={(event) => set({ engine: event.currentTarget.value })}
                >
                  <option value="">{w.engine_auto}</option>
                  <option value="http">{w.engine_http}</option>
                  <option value="browser">{w.engine_browser}</option>
                </select>
              )}
            </Field>
          )}
          <Field label={w.robots}>
            {(id) => (
              <select
                id={id}
                value={form.robots ?? ""}
                onChange={(event) => set({ robots: event.currentTarget.value })}
              >
                <option value="">{w.default}</option>
                <option value="obey">{w.obey}</option>
                <option value="ignore">{w.ignore}</option>
              </select>
            )}
          </Field>
        </div>
      </details>
    </>
  );
}

function Then({ form, set, kind }: Part & { kind: Kind }) {
  const w = useWords(own);
  return (
    <>
      <div class="grid">
        <Text name="name" label={w.name} hint={w.nameHint} form={form} set={set} />
        <Field label={w.export}>
          {(id) => (
            <select id={id} value={form.export} onChange={(event) => set({ export: event.currentTarget.value })}>
              {Object.keys(EXPORTS).map((one) => (
                <option key={one} value={one}>
                  {w[one as "full_csv"]}
                </option>
              ))}
              <option value="">{w.nothing}</option>
            </select>
          )}
        </Field>
        {kind !== "file" && may("create_schedule") && (
          <Field label={w.repeat} hint={w.repeatHint}>
            {(id) => (
              <select
                id={id}
                value={form.repeat ?? ""}
                onChange={(event) => set({ repeat: event.currentTarget.value })}
              >
                <option value="">{w.once}</option>
                {Object.keys(REPEATS).map((one) => (
                  <option key={one} value={one}>
                    {w[one as "daily"]}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        <Text
          name="webhook"
          label={w.webhook}
          hint={w.webhookHint}
          form={form}
          set={({ webhook = "" }) => set({ webhook, secret: form.secret || random() })}
          placeholder="https://"
        />
        {form.webhook && (
          <div class="two">
            <Text name="secret" label={w.secret} hint={w.secretHint} form={form} set={set} minLength={16} required />
            <span class="low">
              <Copy text={form.secret ?? ""} />
            </span>
          </div>
        )}
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={form.changes === "1"}
          onChange={(event) => set({ changes: event.currentTarget.checked ? "1" : "" })}
        />{" "}
        {w.changes}
      </label>
    </>
  );
}

function Scraper({ form, set }: Part) {
  const w = useWords(own);
  const found = useCall("list_scrapers", {});
  const ids = [
    ...new Set(
      (found.data?.scrapers ?? [])
        .filter((one) => one.valid && !["builtin/map", "builtin/actions", "builtin/replay"].includes(one.id))
        .map((one) => one.id),
    ),
  ].sort();
  return (
    <Field label={w.scraper}>
      {(id) => (
        <select
          id={id}
          value={form.scraper}
          onChange={(event) => set({ scraper: event.currentTarget.value, input: "" })}
        >
          <option value="">builtin/page</option>
          {ids
            .filter((one) => one !== "builtin/page")
            .map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
        </select>
      )}
    </Field>
  );
}

/** A secret that nobody guesses. */
const random = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
