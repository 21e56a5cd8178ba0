/** Every view: where it is, in which menu, and what the reader must be allowed to ask for. One folder for each. */

import type { FunctionComponent } from "preact";
import { lazy } from "preact-iso";
import { may } from "#/api/session";
import type { Operations } from "#client";

// biome-ignore lint/suspicious/noExplicitAny: each view has the parameters of its own path
type Component = FunctionComponent<any>;

export interface View {
  /** Names it in the words of the frame. */
  name: string;
  path: string;
  /** `bar`: always seen; `more`: below "More"; none: reached by a link. */
  menu?: "bar" | "more";
  needs: keyof Operations;
  component: Component;
}

type Loaded = Promise<{ default: Component }>;
const load = (loading: () => Promise<unknown>) => lazy(loading as () => Loaded);

export const VIEWS: View[] = [
  { name: "try", path: "/try", menu: "bar", needs: "scrape", component: load(() => import("./views/try")) },
  { name: "runs", path: "/runs", menu: "bar", needs: "list_runs", component: load(() => import("./views/runs")) },
  { name: "run", path: "/runs/:run_id", needs: "get_run", component: load(() => import("./views/runs/run")) },
  { name: "jobs", path: "/jobs", menu: "bar", needs: "list_jobs", component: load(() => import("./views/jobs")) },
  { name: "newJob", path: "/jobs/new", needs: "create_job", component: load(() => import("./views/jobs/new")) },
  { name: "job", path: "/jobs/:job_id", needs: "get_job", component: load(() => import("./views/jobs/job")) },
  { name: "data", path: "/data", menu: "bar", needs: "list_jobs", component: load(() => import("./views/data")) },
  { name: "data", path: "/data/:job_id", needs: "list_items", component: load(() => import("./views/data/records")) },
  {
    name: "changes",
    path: "/data/:job_id/changes",
    needs: "list_exports",
    component: load(() => import("./views/data/changes")),
  },
  {
    name: "schedules",
    path: "/schedules",
    menu: "bar",
    needs: "list_schedules",
    component: load(() => import("./views/schedules")),
  },
  {
    name: "schedule",
    path: "/schedules/new",
    needs: "create_schedule",
    component: load(() => import("./views/schedules/new")),
  },
  {
    name: "schedule",
    path: "/schedules/:schedule_id",
    needs: "get_schedule",
    component: load(() => import("./views/schedules/schedule")),
  },
  {
    name: "scrapers",
    path: "/scrapers",
    menu: "bar",
    needs: "list_scrapers",
    component: load(() => import("./views/scrapers")),
  },
  {
    name: "scraper",
    path: "/scrapers/:site/:task",
    needs: "get_scraper",
    component: load(() => import("./views/scrapers/scraper")),
  },
  { name: "sites", path: "/sites", menu: "bar", needs: "list_sites", component: load(() => import("./views/sites")) },
  { name: "site", path: "/sites/:site", needs: "get_site", component: load(() => import("./views/sites/site")) },
  {
    name: "system",
    path: "/system",
    menu: "more",
    needs: "get_stats",
    component: load(() => import("./views/system")),
  },
  {
    name: "alerts",
    path: "/alerts",
    menu: "more",
    needs: "list_alerts",
    component: load(() => import("./views/alerts")),
  },
  {
    name: "workers",
    path: "/workers",
    menu: "more",
    needs: "list_workers",
    component: load(() => import("./views/workers")),
  },
  {
    name: "letters",
    path: "/dead-letters",
    menu: "more",
    needs: "list_dead_letters",
    component: load(() => import("./views/letters")),
  },
  {
    name: "webhooks",
    path: "/webhooks",
    menu: "more",
    needs: "list_deliveries",
    component: load(() => import("./views/webhooks")),
  },
  {
    name: "proxies",
    path: "/proxies",
    menu: "more",
    needs: "list_proxies",
    component: load(() => import("./views/proxies")),
  },
  { name: "cache", path: "/cache", menu: "more", needs: "get_cache", component: load(() => import("./views/cache")) },
  { name: "usage", path: "/usage", menu: "more", needs: "get_usage", component: load(() => import("./views/usage")) },
  { name: "keys", path: "/keys", menu: "more", needs: "list_keys", component: load(() => import("./views/keys")) },
  {
    name: "settings",
    path: "/settings",
    menu: "more",
    needs: "get_settings",
    component: load(() => import("./views/settings")),
  },
  { name: "audit", path: "/audit", menu: "more", needs: "list_audit", component: load(() => import("./views/audit")) },
];

/** Whether there is a view at this pattern that the reader may see. */
export const has = (path: string) => VIEWS.some((view) => view.path === path && may(view.needs));
