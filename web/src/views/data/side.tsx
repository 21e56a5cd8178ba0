/** One page before and now: every field of its record, and how a field went over the crawls. */

import { api, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Problem, Skeleton, Time } from "#/kit/base";
import { Chart } from "#/kit/chart";
import { note } from "#/kit/dialog";
import { exact, number, useWords } from "#/words";
import type { JobCall, JobDocument } from "#client";
import { type Compared, compared, heeded, type Word, wordsOf } from "./compare";
import { crawlsLike, type Sight, useSights } from "./crawls";
import { shown } from "./stats";
import { own } from "./words";

export interface Change {
  url: string;
  change_type: "ADDED" | "MODIFIED" | "REMOVED" | "UNCHANGED" | "FAILED" | "UNKNOWN";
  fields_changed: string | null;
  reason: string | null;
  prev_crawl_at: string | null;
  curr_crawl_at: string | null;
}

interface Given {
  change: Change;
  job: JobDocument;
  jobs: JobDocument[];
  against: string;
  ignored: string[];
}

export function Side({ change, job, jobs, against, ignored }: Given) {
  const w = useWords(own);
  const other = jobs.find((one) => one.id === against);
  const crawls = other ? [job, other, ...crawlsLike(job, jobs).slice(1)] : crawlsLike(job, jobs);
  const found = useSights(
    change.url,
    crawls.filter((one, at) => crawls.findIndex((each) => each.id === one.id) === at),
  );
  const sights = found.data ?? [];
  const now = sights.find((one) => one.job.id === job.id);
  const before = other ? sights.find((one) => one.job.id === other.id) : sights.find((one) => one.job.id !== job.id);
  return (
    <>
      <h2>
        <a href={change.url} rel="noreferrer noopener" target="_blank">
          {change.url}
        </a>
      </h2>
      {change.reason && <p class="muted">{change.reason}</p>}
      <p class="muted">
        {w.was}: {exact(change.prev_crawl_at)} · {w.is}: {exact(change.curr_crawl_at)}
      </p>
      <Noise fields={heeded(change.fields_changed, ignored)} job={job} ignored={ignored} />
      <Problem error={found.error} />
      {found.isPending ? <Skeleton /> : <Fields before={before} now={now} />}
      <History sights={sights} />
    </>
  );
}

/** The fields that count as changed, each with a way not to hear of it again. */
function Noise({ fields, job, ignored }: { fields: string[]; job: JobDocument; ignored: string[] }) {
  const w = useWords(own);
  const { change } = useAddress();
  if (fields.length === 0) return null;
  return (
    <p class="line">
      {fields.map((name) => (
        <span key={name} class="tag">
          {name}{" "}
          <button
            type="button"
            class="quiet small"
            aria-label={`${w.ignore} ${name}`}
            onClick={() => change({ ignore: [...ignored, name].join(";") })}
          >
            {w.ignore}
          </button>
        </span>
      ))}
      <Lasting job={job} ignored={ignored} />
    </p>
  );
}

/** What is ignored here is ignored by the schedule's next crawls, too. */
export function Lasting({ job, ignored }: { job: JobDocument; ignored: string[] }) {
  const w = useWords(own);
  const id = job.schedule_id;
  const schedule = useCall("get_schedule", { path: { schedule_id: id ?? "" } }, { enabled: Boolean(id) });
  const save = useAction(
    (call: JobCall) => api.call("change_schedule", { path: { schedule_id: id! }, body: { job: call } }),
    { touches: ["get_schedule"], done: () => note(w.ignoredOn) },
  );
  const call = schedule.data?.job as JobCall | null | undefined;
  if (!id || !call || !ignored.length || !may("change_schedule")) return null;
  const known = call.policy?.snapshots?.ignore ?? [];
  if (ignored.every((name) => known.includes(name))) return null;
  const snapshots = { ...call.policy?.snapshots, ignore: [...new Set([...known, ...ignored])] };
  return (
    <button
      type="button"
      class="small"
      disabled={save.isPending}
      onClick={() => save.mutate({ ...call, policy: { ...call.policy, snapshots } })}
    >
      {w.ignoreAlways}
    </button>
  );
}

function Fields({ before, now }: { before?: Sight; now?: Sight }) {
  const w = useWords(own);
  if (!before && !now) return <p class="muted">{w.noRecord}</p>;
  const { changed, same } = compared(before?.row ?? {}, now?.row ?? {});
  return (
    <>
      {changed.length > 0 && <Pairs rows={changed} />}
      {same.length > 0 && (
        <details>
          <summary>{w.sameFields(number(same.length))}</summary>
          <Pairs rows={same} />
        </details>
      )}
    </>
  );
}

function Pairs({ rows }: { rows: Compared[] }) {
  const w = useWords(own);
  const { query, change } = useAddress();
  return (
    <table class="compare fields">
      <thead>
        <tr>
          <th scope="col">{w.field}</th>
          <th scope="col">{w.was}</th>
          <th scope="col">{w.is}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((one) => {
          const [old, fresh] = one.before === one.now ? [null, null] : wordsOf(one.before, one.now);
          return (
            <tr key={one.name}>
              <th scope="row">
                <button
                  type="button"
                  class="quiet small"
                  aria-pressed={query.field === one.name}
                  title={w.history}
                  onClick={() => change({ field: query.field === one.name ? null : one.name })}
                >
                  {one.name}
                </button>
              </th>
              <td>{old ? <Marked words={old} as="del" /> : cut(one.before)}</td>
              <td>{fresh ? <Marked words={fresh} as="mark" /> : cut(one.now)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

const MOST = 1500;
const cut = (text: string) => (text.length > MOST ? `${text.slice(0, MOST)}…` : text);

function Marked({ words, as: As }: { words: Word[]; as: "del" | "mark" }) {
  return <>{words.map((word, at) => (word.changed && word.text ? <As key={at}>{cut(word.text)}</As> : word.text))}</>;
}

/** One field over the crawls: a line for numbers, and what it was when. */
function History({ sights }: { sights: Sight[] }) {
  const w = useWords(own);
  const { query } = useAddress();
  const name = query.field;
  if (!name) return sights.length > 1 ? <p class="muted">{w.historyHint}</p> : null;
  const points = [...sights].reverse().map((one) => ({ job: one.job, value: one.row[name] }));
  const numbers = points.filter((one) => typeof one.value === "number");
  const at = (job: JobDocument) => job.finished_at ?? job.created_at;
  return (
    <section aria-label={`${w.history}: ${name}`}>
      <h3>
        {w.history}: {name}
      </h3>
      {numbers.length > 1 && (
        <Chart
          label={name}
          height={110}
          at={numbers.map((one) => new Date(at(one.job)).getTime() / 1000)}
          series={[{ name, tone: "--accent", values: numbers.map((one) => one.value as number) }]}
        />
      )}
      <ul class="past">
        {[...points].reverse().map((one) => (
          <li key={one.job.id}>
            <a href={`/data/${one.job.id}`}>
              <Time at={at(one.job)} />
            </a>
            <span>{cut(shown(one.value)) || "–"}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
