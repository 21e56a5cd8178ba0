/** Scrapers: one row each, its versions behind it. */

import { api, useAction, useCall } from "#/api/client";
import { may } from "#/api/session";
import { useAddress } from "#/kit/address";
import { Empty, Head, Problem, Skeleton, Status } from "#/kit/base";
import { note } from "#/kit/dialog";
import { type Column, rowsOf, Table } from "#/kit/table";
import { number, useWords } from "#/words";
import type { ScraperSummary } from "#client";
import { own } from "./words";

interface Shown extends ScraperSummary {
  count: number;
}

/** One of each id, with how many versions there are. */
export function grouped(all: ScraperSummary[]): Shown[] {
  const found = new Map<string, Shown>();
  for (const one of all) {
    const known = found.get(one.id);
    if (known) known.count += 1;
    else found.set(one.id, { ...one, count: 1 });
  }
  return [...found.values()];
}

export default function Scrapers() {
  const w = useWords(own);
  const { query, change } = useAddress();
  const found = useCall("list_scrapers", {}, { every: 10 });
  const refresh = useAction(() => api.call("refresh_scrapers", { body: undefined as unknown as Response }), {
    touches: ["list_scrapers"],
    done: () => note(w.refreshed),
  });
  const search = (query.q ?? "").toLowerCase();
  const rows = grouped(found.data?.scrapers ?? []).filter((one) =>
    `${one.id} ${one.name} ${one.description}`.toLowerCase().includes(search),
  );
  const columns: Column<Shown>[] = [
    { id: "id", head: w.id, width: "minmax(0, 1.2fr)", cell: (one) => one.id },
    {
      id: "version",
      head: w.version,
      width: "120px",
      cell: (one) => (one.count > 1 ? `${one.version} · ${w.versionsN(number(one.count))}` : one.version),
    },
    { id: "what", head: w.what, width: "minmax(0, 3fr)", cell: (one) => one.problem || one.description },
    { id: "source", head: w.source_, width: "110px", line: 0, cell: (one) => (one.builtin ? w.builtin : one.source) },
    {
      id: "state",
      head: w.state,
      width: "110px",
      end: true,
      cell: (one) => <Status of={one.valid ? "ok" : "failed"}>{one.valid ? w.valid : w.invalid}</Status>,
    },
  ];
  return (
    <>
      <Head title={w.title} about={w.about}>
        {may("refresh_scrapers") && (
          <button type="button" onClick={() => refresh.mutate(undefined)} disabled={refresh.isPending}>
            {w.refresh}
          </button>
        )}
      </Head>
      <div class="line filters">
        <input
          class="narrow-input"
          type="search"
          aria-label={w.search}
          placeholder={w.search}
          value={query.q ?? ""}
          onInput={(event) => change({ q: event.currentTarget.value })}
        />
      </div>
      <Problem error={found.error ?? refresh.error} />
      {found.isPending ? (
        <Skeleton />
      ) : rows.length === 0 ? (
        <Empty title={w.none} />
      ) : (
        <Table
          label={w.title}
          columns={columns}
          rows={rowsOf(rows)}
          id={(one) => one.id}
          href={(one) => `/scrapers/${one.id}`}
          most={20}
        />
      )}
    </>
  );
}
