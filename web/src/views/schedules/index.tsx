/** Schedules: what starts when, in the reader's time. */

import { usePages } from "#/api/client";
import { may } from "#/api/session";
import { Empty, Head, Problem, Skeleton, Status, Time } from "#/kit/base";
import { type Column, rowsOf, Table } from "#/kit/table";
import { clock, language, lasts, useWords } from "#/words";
import type { ScheduleDocument } from "#client";
import { cronWords } from "./cron";
import { weekOf } from "./week";
import { own } from "./words";

export const nameOf = (one: ScheduleDocument) =>
  one.name || String(one.scrape?.url ?? one.scrape?.scraper ?? one.job?.sitemap_url ?? one.job?.scraper ?? one.id);

export function useWhen(): (one: ScheduleDocument) => string {
  const w = useWords(own);
  return (one) =>
    one.cron ? (cronWords(one.cron, language.get()) ?? one.cron) : w.everySeconds(lasts(one.every_seconds));
}

export default function Schedules() {
  const w = useWords(own);
  const when = useWhen();
  const found = usePages("list_schedules", { query: { limit: 100 } }, (page) => page.schedules, { every: 5 });
  const columns: Column<ScheduleDocument>[] = [
    { id: "name", head: w.name, width: "minmax(0, 2fr)", cell: nameOf },
    {
      id: "state",
      head: w.state,
      width: "110px",
      cell: (one) => <Status of={one.paused ? "paused" : "ok"}>{one.paused ? w.paused : w.on}</Status>,
    },
    { id: "when", head: w.when, width: "minmax(0, 1.6fr)", cell: when },
    { id: "what", head: w.what, width: "80px", line: 0, cell: (one) => (one.target === "job" ? w.job : w.run) },
    { id: "last", head: w.last, width: "110px", end: true, line: 0, cell: (one) => <Time at={one.last_due_at} /> },
    {
      id: "next",
      head: w.next,
      width: "190px",
      end: true,
      cell: (one) => (one.next_run_at ? clock(one.next_run_at) : "–"),
    },
  ];
  return (
    <>
      <Head title={w.title} about={w.about}>
        {may("create_schedule") && (
          <a class="button main" href="/schedules/new">
            {w.new}
          </a>
        )}
      </Head>
      <Problem error={found.error} again={() => found.refetch()} />
      {found.isPending ? (
        <Skeleton />
      ) : found.rows.length === 0 ? (
        <Empty title={w.none}>{w.noneAbout}</Empty>
      ) : (
        <div class="stack">
          <Table
            label={w.title}
            columns={columns}
            rows={rowsOf(found.rows, found.more)}
            id={(one) => one.id}
            href={(one) => `/schedules/${one.id}`}
          />
          <Week schedules={found.rows} />
        </div>
      )}
    </>
  );
}

/** The next seven days, with what starts on each. */
function Week({ schedules }: { schedules: ScheduleDocument[] }) {
  const w = useWords(own);
  const name = new Intl.DateTimeFormat(language.get(), { weekday: "short", day: "numeric" });
  const time = new Intl.DateTimeFormat(language.get(), { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  return (
    <section aria-label={w.week}>
      <h2>{w.week}</h2>
      <div class="week">
        {weekOf(schedules, Date.now()).map(({ day, runs, more }) => (
          <div key={day.toDateString()} class="panel">
            <h3>{name.format(day)}</h3>
            {runs.map(({ one, at }) => (
              <a key={one.id + at.toISOString()} href={`/schedules/${one.id}`} title={nameOf(one)}>
                {time.format(at)} {nameOf(one)}
              </a>
            ))}
            {more.map((one) => (
              <a key={one.id} class="more" href={`/schedules/${one.id}`} title={w.goesOn}>
                … {nameOf(one)}
              </a>
            ))}
          </div>
        ))}
      </div>
    </section>
  );
}
