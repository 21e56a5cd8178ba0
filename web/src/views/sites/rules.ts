/** What operators wrote for a site, as the call that writes it wants it. */

import type { SiteCall, SiteDocument } from "#client";

const FIELDS = [
  "rate",
  "burst",
  "concurrency",
  "adapt",
  "min_rate",
  "breaker_failures",
  "breaker_ratio",
  "breaker_seconds",
  "robots",
  "note",
] as const;

/** The rules as they are, so that one can be changed: the call replaces them all. */
export function rulesOf(site: SiteDocument): SiteCall {
  const call: Record<string, unknown> = {};
  if (site.rules) for (const name of FIELDS) if (site.rules[name] !== null) call[name] = site.rules[name];
  return call as SiteCall;
}

/** Half of the pace that is allowed now; without a limit half of what is asked now, and one a second at most. */
export function gentler(site: SiteDocument): SiteCall {
  const allowed = site.limits.rate || site.state?.rate || 0;
  const now = allowed || Math.min(2, site.state?.requests_a_second || 2);
  const rate = Math.max(0.01, Number((now / 2).toPrecision(2)));
  return { ...rulesOf(site), rate, ...(rate < site.limits.min_rate ? { min_rate: rate } : {}) };
}

export interface Way {
  way: string;
  cost: number;
  success_share: number;
  used_at: string;
}

export interface Clearance {
  host: string;
  exit: string;
  expires_at: string;
}

export const waysOf = (site: SiteDocument) => (site.more.ways ?? []) as Way[];
export const clearancesOf = (site: SiteDocument) => (site.more.clearances ?? []) as Clearance[];

/** The cheapest way that works more often than not. */
export const cheapest = (site: SiteDocument) => waysOf(site).find((way) => way.success_share > 0.5)?.way;
