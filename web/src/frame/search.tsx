/** Ctrl-K: a run, a job, a scraper, an address or a view, by what one types. */

import { useEffect, useRef, useState } from "preact/hooks";
import { useCall } from "#/api/client";
import { may, session, signOut } from "#/api/session";
import { useAddress } from "#/kit/address";
import { has, VIEWS } from "#/routes";
import { language, theme, useWords } from "#/words";
import { frame } from "./words";

interface Found {
  href: string;
  name: string;
  kind: string;
  /** Instead of going there. */
  act?: () => void;
}

export function Search({ close }: { close: () => void }) {
  const w = useWords(frame);
  const { go } = useAddress();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const box = useRef<HTMLDialogElement>(null);
  const found = useFound(text.trim());
  useEffect(() => {
    box.current?.showModal();
  }, []);
  const open = (one: Found | undefined) => {
    if (!one) return;
    box.current?.close();
    if (one.act) one.act();
    else go(one.href);
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) {
      event.preventDefault();
      setAt((at + step + found.length) % found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      open(found[Math.min(at, found.length - 1)]);
    }
  };
  return (
    <dialog ref={box} class="search" aria-label={w.find} onClose={close}>
      <input
        type="text"
        role="combobox"
        aria-label={w.findHint}
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={found.length ? `found-${at}` : undefined}
        placeholder={w.findHint}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <div id="found" role="listbox" aria-label={w.find}>
        {found.map((one, index) => (
          <button
            key={one.href + one.name}
            type="button"
            id={`found-${index}`}
            role="option"
            aria-selected={index === at}
            tabIndex={-1}
            onClick={() => open(one)}
          >
            <span>{one.name}</span> <small>{one.kind}</small>
          </button>
        ))}
      </div>
      {found.length === 0 && <p class="muted">{w.nothing}</p>}
    </dialog>
  );
}

/** What can be done from anywhere. */
function commands(w: ReturnType<typeof useWords<typeof frame.en>>): Found[] {
  const command = (name: string, href: string, act?: () => void) => ({ href, name, kind: w.command, act });
  const now = session.get();
  return [
    ...(has("/jobs/new") ? [command(w.newJob, "/jobs/new")] : []),
    ...(has("/schedules/new") ? [command(w.newSchedule, "/schedules/new")] : []),
    ...(may("create_key") ? [command(w.newKey, "/keys?new=1")] : []),
    ...(may("list_runs") ? [command(w.failedRuns, "/runs?status=failed")] : []),
    ...(["auto", "light", "dark"] as const).map((one) =>
      command(`${w.theme}: ${w[one]}`, `#${one}`, () => theme.set(one)),
    ),
    command("English", "#en", () => language.set("en")),
    command("한국어", "#ko", () => language.set("ko")),
    ...(now.state === "in" && now.who.auth_required ? [command(w.signOut, "#out", () => void signOut())] : []),
  ];
}

function useFound(text: string): Found[] {
  const w = useWords(frame);
  const words = w as unknown as Record<string, string>;
  const scrapers = useCall("list_scrapers", {});
  const jobs = useCall("list_jobs", { query: { limit: 100 } });
  const runs = useCall("list_runs", { query: { limit: 50 } });
  const asked = text.toLowerCase();
  const fits = (...given: string[]) => given.some((each) => each.toLowerCase().includes(asked));
  const all: Found[] = [];
  if (/^run_[0-9a-f]{32}$/.test(text)) all.push({ href: `/runs/${text}`, name: text, kind: w.run });
  if (/^(https?:\/\/|[\w-]+(\.[\w-]+)+([:/]|$)|localhost)/.test(text)) {
    all.push({ href: `/try?url=${encodeURIComponent(text)}`, name: w.tryUrl(text), kind: w.try });
    if (has("/jobs/new"))
      all.push({ href: `/jobs/new?start=${encodeURIComponent(text)}`, name: w.crawlUrl(text), kind: w.newJob });
  }
  for (const one of commands(w)) if (asked && fits(one.name)) all.push(one);
  for (const view of VIEWS.filter((each) => each.menu && may(each.needs)))
    if (fits(words[view.name]!, view.name))
      all.push({ href: view.path, name: w.goTo(words[view.name]!), kind: w.menu });
  if (has("/jobs/:job_id"))
    for (const job of jobs.data?.jobs ?? [])
      if (fits(job.id, job.name, job.scraper, job.domain))
        all.push({ href: `/jobs/${job.id}`, name: job.name || job.id, kind: w.job });
  const seen = new Set<string>();
  for (const one of scrapers.data?.scrapers ?? [])
    if (!seen.has(one.id) && fits(one.id, one.name)) {
      seen.add(one.id);
      all.push({
        href: has("/scrapers/:site/:task") ? `/scrapers/${one.id}` : `/try?scraper=${one.id}`,
        name: one.id,
        kind: w.scraper,
      });
    }
  if (asked)
    for (const run of runs.data?.runs ?? [])
      if (fits(run.id, run.scraper, JSON.stringify(run.input)))
        all.push({ href: `/runs/${run.id}`, name: `${run.scraper} ${String(run.input.url ?? "")}`, kind: w.run });
  return all.slice(0, 12);
}
