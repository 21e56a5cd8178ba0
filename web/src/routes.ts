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
];

/** Whether there is a view at this pattern that the reader may see. */
export const has = (path: string) => VIEWS.some((view) => view.path === path && may(view.needs));
