/** One run: the verdict, why, what it left, and how to do it again. */

import { useState } from "preact/hooks";
import { api, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Head, Problem, Time } from "#/kit/base";
import { Confirm } from "#/kit/dialog";
import { useWords } from "#/words";
import type { ScrapeCall } from "#client";
import { brief } from ".";
import { ended, Outcome } from "./outcome";
import { own } from "./words";

export default function Run({ run_id }: { run_id: string }) {
  const w = useWords(own);
  const { query, change, go } = useAddress();
  const found = useCall("get_run", { path: { run_id }, query: {} });
  const [asking, setAsking] = useState(false);
  const run = found.data;
  const send = (input: unknown) =>
    api.call("scrape", { body: { scraper: run!.scraper, input, wait: 0 } as ScrapeCall });
  const show = (taken: unknown) => go(`/runs/${(taken as { id: string }).id}`);
  const again = useAction(() => send(run!.input), { touches: ["list_runs"], done: show });
  return (
    <>
      <Head
        title={run ? brief(run.input) || run.scraper : run_id}
        about={
          <>
            <code>{run_id}</code> {run && <Time at={run.created_at} />}
          </>
        }
      >
        {run && may("scrape") && (
          <>
            <button type="button" onClick={() => again.mutate(undefined)} disabled={again.isPending}>
              {w.again}
            </button>
            <a class="button" href={editAddress(run.scraper, run.input)}>
              {w.editAgain}
            </a>
          </>
        )}
        {run && !ended(run) && may("cancel_run") && (
          <button type="button" onClick={() => setAsking(true)}>
            {w.cancelRun}
          </button>
        )}
      </Head>
      <Problem error={again.error} />
      <Outcome
        key={run_id}
        id={run_id}
        tab={query.tab}
        choose={(tab) => change({ tab, mark: null })}
        teach={may("scrape") ? (input) => send(input).then(show) : undefined}
        whole
      />
      {asking && (
        <Confirm
          title={w.cancelAsk}
          verb={w.cancelRun}
          close={() => setAsking(false)}
          act={() => api.call("cancel_run", { path: { run_id } }).then(() => found.refetch())}
        >
          {w.cancelAbout}
        </Confirm>
      )}
    </>
  );
}

/** Where the same call can be changed and run again. */
export function editAddress(scraper: string, input: Record<string, unknown>): string {
  const { url, ...rest } = input;
  const query = new URLSearchParams();
  if (typeof url === "string") query.set("url", url);
  if (scraper !== "builtin/page") {
    query.set("scraper", scraper);
    const left = typeof url === "string" ? rest : input;
    if (Object.keys(left).length) query.set("input", JSON.stringify(left));
  }
  return `/try?${query}`;
}
