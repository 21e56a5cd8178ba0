/** One page in the last crawls: its record in each, and what became of its fields. */

import { useQuery } from "@tanstack/preact-query";
import { api } from "#/api/client";
import type { ItemDocument, JobDocument } from "#client";
import { type Flat, flat } from "./stats";

export interface Sight {
  job: JobDocument;
  row: Flat;
}

const MOST_CRAWLS = 20;
const MOST_LOOKS = 20;

/** The crawls that a job is compared with, itself first, then the newest. */
export function crawlsLike(job: JobDocument, all: JobDocument[]): JobDocument[] {
  const isLike = (one: JobDocument) =>
    one.scraper === job.scraper &&
    one.created_at < job.created_at &&
    (job.schedule_id ? one.schedule_id === job.schedule_id : one.name === job.name && one.domain === job.domain);
  return [job, ...all.filter(isLike).sort((a, b) => (a.created_at < b.created_at ? 1 : -1))].slice(0, MOST_CRAWLS);
}

/** A page in these crawls; those that do not have it are left out. */
export function useSights(url: string, crawls: JobDocument[]) {
  return useQuery({
    queryKey: ["sights", url, crawls.map((job) => job.id)],
    queryFn: () => sightsOf(url, crawls),
    staleTime: 60_000,
  });
}

async function sightsOf(url: string, crawls: JobDocument[]): Promise<Sight[]> {
  let key: string | undefined;
  const found: Sight[] = [];
  for (const job of crawls) {
    const item = key === undefined ? await named(job, url) : await keyed(job, key);
    key ??= item?.id;
    if (item?.result) found.push({ job, row: flat(item.result) });
  }
  return found;
}

/** An item has the same id in every job with the same input. A job that was swept has none. */
async function keyed(job: JobDocument, key: string): Promise<ItemDocument | null> {
  const query = { key: [key], limit: 1 };
  const page = await api.call("list_items", { path: { job_id: job.id }, query }).catch(() => null);
  return page?.items[0] ?? null;
}

async function named(job: JobDocument, url: string): Promise<ItemDocument | null> {
  let cursor: string | undefined;
  for (let look = 0; look < MOST_LOOKS; look++) {
    const query = { q: url.slice(0, 200), limit: 200, cursor };
    const page = await api.call("list_items", { path: { job_id: job.id }, query });
    const item = page.items.find((one) => (one.input as { url?: string }).url === url);
    if (item || page.next_cursor === null) return item ?? null;
    cursor = page.next_cursor;
  }
  return null;
}
