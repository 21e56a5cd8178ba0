/** Dead letters: what failed for good, grouped by why, and run again. */

import { useState } from "preact/hooks";
import { api, cache, usePages } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Empty, Facts, Head, Problem, Skeleton, Time } from "#/kit/base";
import { Confirm, Dialog, note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { has } from "#/routes";
import { brief } from "#/views/runs";
import { number, useWords } from "#/words";
import type { DeadLetterDocument, ExitReason } from "#client";
import { byJob, type Group, groupsOf } from "./groups";
import { own } from "./words";

/** Items that one call runs again at most. */
const MOST_KEYS = 1000;
const nameOf = (letter: DeadLetterDocument) => `${letter.job_id}/${letter.id}`;
const short = (job: string) => `${job.slice(0, 8)}…${job.slice(-6)}`;

export default function DeadLetters() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [asking, setAsking] = useState<Group | "chosen" | null>(null);
  const asked = {
    job_id: query.job || undefined,
    scraper: query.scraper || undefined,
    exit_reason: query.reason ? [query.reason as ExitReason] : undefined,
    site: query.site ? [query.site] : undefined,
    limit: 200,
  };
  const found = usePages("list_dead_letters", { query: asked }, (page) => page.items, { every: 10 });
  const letters = found.rows;
  const filtered = Boolean(query.job || query.scraper || query.reason || query.site);
  const one = letters.find((letter) => nameOf(letter) === query.letter);
  const toggle = (name: string) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    setChosen(next);
  };
  return (
    <>
      <Head title={w.title} about={w.about} />
      <div class="line filters">
        <input
          class="narrow-input"
          type="search"
          aria-label={w.byScraper}
          placeholder={w.byScraper}
          value={query.scraper ?? ""}
          onChange={(event) => change({ scraper: event.currentTarget.value })}
        />
        {(["job", "reason", "site"] as const).map(
          (name) =>
            query[name] && (
              <button key={name} type="button" class="small" onClick={() => change({ [name]: null })}>
                {w.only(name === "job" ? short(query.job!) : query[name]!)} ✕
              </button>
            ),
        )}
      </div>
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton rows={10} />
      ) : letters.length === 0 ? (
        <Empty title={filtered ? w.noneFit : w.none}>{!filtered && w.noneAbout}</Empty>
      ) : (
        <div class="stack">
          <Groups letters={letters} cut={found.hasNextPage} again={setAsking} />
          {may("redrive_job") && (
            <div class="line">
              <button type="button" class="main" disabled={chosen.size === 0} onClick={() => setAsking("chosen")}>
                {w.again}
              </button>
              <button type="button" onClick={() => setChosen(new Set(chosen.size ? [] : letters.map(nameOf)))}>
                {chosen.size ? w.clear : w.chooseAll}
              </button>
              {chosen.size > 0 && <span class="muted">{w.chosen(number(chosen.size))}</span>}
            </div>
          )}
          <Letters letters={letters} more={found.more} {...{ chosen, toggle, query }} />
        </div>
      )}
      {one && <Why of={one} close={() => change({ letter: null })} />}
      {asking && (
        <Again {...{ asking, letters, chosen }} close={() => setAsking(null)} done={() => setChosen(new Set())} />
      )}
    </>
  );
}

function Groups({ letters, cut, again }: { letters: DeadLetterDocument[]; cut: boolean; again: (of: Group) => void }) {
  const w = useWords(own);
  const groups = groupsOf(letters);
  const columns: Column<Group>[] = [
    {
      id: "reason",
      head: w.reason,
      width: "minmax(110px, 1fr)",
      cell: (group) => <span class="status bad">✖ {group.reason}</span>,
    },
    { id: "count", head: w.count, label: w.count, width: "70px", end: true, cell: (group) => number(group.count) },
    { id: "site", head: w.site, width: "minmax(0, 1fr)", cell: (group) => group.site ?? "–" },
    {
      id: "example",
      head: w.example,
      width: "minmax(0, 3fr)",
      line: 0,
      cell: (group) => group.example.error?.message ?? "",
    },
    { id: "job", head: w.job, width: "130px", line: 0, cell: (group) => <code>{short(group.job)}</code> },
    {
      id: "again",
      head: <span class="hidden">{w.again}</span>,
      width: "minmax(110px, auto)",
      end: true,
      cell: (group) =>
        may("redrive_job") && (
          <button type="button" class="small" onClick={() => again(group)} title={w.againAll}>
            {w.again}
          </button>
        ),
    },
  ];
  return (
    <section aria-label={w.groups}>
      <Table
        label={w.groups}
        columns={columns}
        rows={rowsOf(groups)}
        id={(group) => group.id}
        href={(group) =>
          `/dead-letters?${new URLSearchParams({ job: group.job, reason: group.reason, ...(group.site ? { site: group.site } : {}) })}`
        }
        most={6}
      />
      {cut && <p class="muted">{w.groupsOf(number(letters.length))}</p>}
    </section>
  );
}

function Letters({
  letters,
  more,
  chosen,
  toggle,
  query,
}: {
  letters: DeadLetterDocument[];
  more: () => unknown;
  chosen: ReadonlySet<string>;
  toggle: (name: string) => void;
  query: Record<string, string | undefined>;
}) {
  const w = useWords(own);
  const choose: Column<DeadLetterDocument> = {
    id: "choose",
    head: <span class="hidden">{w.choose}</span>,
    width: "20px",
    cell: (letter) => (
      <input
        type="checkbox"
        aria-label={w.chooseOne(brief(letter.input))}
        checked={chosen.has(nameOf(letter))}
        onChange={() => toggle(nameOf(letter))}
      />
    ),
  };
  const columns: Column<DeadLetterDocument>[] = [
    { id: "input", head: w.input, width: "minmax(0, 2fr)", cell: (letter) => brief(letter.input) },
    ...(may("redrive_job") ? [choose] : []),
    { id: "reason", head: w.reason, width: "minmax(110px, 1fr)", cell: (letter) => letter.exit_reason },
    {
      id: "message",
      head: w.details,
      width: "minmax(0, 2.5fr)",
      line: 0,
      cell: (letter) => letter.error?.message ?? "",
    },
    {
      id: "status",
      head: w.status,
      label: w.status,
      width: "50px",
      end: true,
      cell: (letter) => letter.http_status ?? "–",
    },
    { id: "tries", head: w.tries, width: "50px", end: true, line: 0, cell: (letter) => number(letter.attempt) },
    { id: "when", head: w.when, width: "110px", end: true, cell: (letter) => <Time at={letter.finished_at} /> },
  ];
  const href = (letter: DeadLetterDocument) =>
    `/dead-letters?${new URLSearchParams({ ...(query as Record<string, string>), letter: nameOf(letter) })}`;
  return (
    <Table
      label={w.title}
      columns={columns}
      rows={rowsOf(letters, more)}
      id={nameOf}
      href={href}
      selected={query.letter}
      most={14}
    />
  );
}

function Why({ of, close }: { of: DeadLetterDocument; close: () => void }) {
  const w = useWords(own);
  return (
    <Dialog title={brief(of.input)} close={close} wide>
      <div class="stack">
        <p class="status bad verdict">✖ {of.exit_reason}</p>
        <p>{of.error?.message}</p>
        {of.error?.traceback && <pre>{of.error.traceback}</pre>}
        <Facts
          facts={[
            [w.input, <code>{JSON.stringify(of.input)}</code>],
            [w.status, of.http_status ?? "–"],
            [w.site, of.site ?? "–"],
            [w.tries, number(of.attempt)],
            [w.when, <Time at={of.finished_at} />],
            [w.job, has("/jobs/:job_id") ? <a href={`/jobs/${of.job_id}`}>{of.job_id}</a> : <code>{of.job_id}</code>],
          ]}
        />
      </div>
    </Dialog>
  );
}

function Again({
  asking,
  letters,
  chosen,
  close,
  done,
}: {
  asking: Group | "chosen";
  letters: DeadLetterDocument[];
  chosen: ReadonlySet<string>;
  close: () => void;
  done: () => void;
}) {
  const w = useWords(own);
  const jobs = asking === "chosen" ? byJob(letters, chosen) : new Map<string, string[]>();
  const act = async () => {
    let count = 0;
    if (asking !== "chosen") {
      const body = { exit_reasons: [asking.reason], ...(asking.site ? { sites: [asking.site] } : {}) };
      count = (await api.call("redrive_job", { path: { job_id: asking.job }, body })).items;
    }
    for (const [job_id, keys] of jobs)
      for (let at = 0; at < keys.length; at += MOST_KEYS) {
        const body = { keys: keys.slice(at, at + MOST_KEYS) };
        count += (await api.call("redrive_job", { path: { job_id }, body })).items;
      }
    done();
    note(w.done(number(count)));
    void cache.invalidateQueries({ queryKey: ["list_dead_letters"] });
  };
  return (
    <Confirm title={w.askTitle} verb={w.again} close={close} act={act}>
      {asking === "chosen"
        ? w.askSome(number(chosen.size), number(jobs.size))
        : w.askAll(`${asking.reason}${asking.site ? ` (${asking.site})` : ""}`, short(asking.job))}
    </Confirm>
  );
}
