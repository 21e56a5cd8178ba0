// Made of the OpenAPI document by `make clients`. Do not change it by hand.

/** What models may use up for one page. */
export type AiBudget = {
  /** Tokens that are read and written. */
  tokens?: number | null;
  /** Money, in the currency of the operator's prices. */
  cost?: number | null;
};

/** Which model is asked, if one is needed. */
export type AiChoice = {
  /** One of the operator's; `none`: no model is asked. */
  provider?: string;
  /** Name of a provider's model. */
  model?: string;
  /** How often it is asked; more make confidence better, and cost more. */
  samples?: number;
  /** What models may use up for each page. */
  budget?: AiBudget;
};

/** Something that is wrong, or was. */
export type AlertDocument = {
  /** Its id. */
  id: string;
  /** Name of the rule, from `alerts.rules` of the settings. */
  rule: string;
  /** What it is about: a lane, client, site or worker; `all`: everything. */
  subject: string;
  /** `firing` as long as it lasts. */
  state: "firing" | "resolved";
  /** What is wrong, as of the last time that receivers were told. */
  words: string;
  /** What was measured then. */
  value: number;
  /** What the rule allows. */
  threshold: number;
  /** When it was first found. */
  started_at: string;
  /** When receivers were last told that it lasts. */
  told_at: string;
  /** How often they were told so. */
  tells: number;
  /** When it was over; null: it lasts. */
  resolved_at: string | null;
};

/** One page of the listing, newest first. */
export type AlertPageDocument = {
  /** Alerts on this page. */
  alerts: Array<AlertDocument>;
  /** Receivers that the settings name. */
  receivers: Array<"email" | "slack" | "webhook">;
  /** Give it as `cursor` for the next page; null on the last. */
  next_cursor: string | null;
};

/** Messages that are on their way. */
export type AlertTestDocument = {
  /** Ids by receiver; `/api/webhooks/deliveries/{delivery_id}` tells how it went. */
  deliveries: Record<string, string>;
};

/** More items for a job that runs. */
export type AppendCall = {
  /** Of a list; `auto`: as it looks. */
  format?: "auto" | "csv" | "jsonl" | "json" | "urls";
  /** Of CSV; empty: told from its first line. */
  delimiter?: "" | "," | ";" | "\t" | "|";
  /** Columns of CSV without a header. */
  names?: Array<string>;
  /** Column → field of the input; other columns are left out. */
  columns?: Record<string, string>;
  /** Fields that every item has, unless its row says. */
  input?: Record<string, unknown>;
  /** Whether a row that cannot be used refuses the whole list, or is left out and counted. Default: `reject`; of sitemaps and links, which nobody wrote for this job, `skip`. */
  bad_rows?: "reject" | "skip" | null;
  /** As when a job is created. */
  items: Array<unknown>;
};

/** What became of more items. */
export type AppendedDocument = {
  /** Items that were added. */
  added: number;
  /** Those that the job has already. */
  twice: number;
  /** Rows that cannot be used. */
  bad: number;
  /** The first of those rows, at most 100. */
  first_bad: Array<BadRowDocument>;
};

/** Where the items of an ended job lie: in the database, or as an archive in the blob store. */
export type ArchiveState = "" | "archived" | "archiving" | "removing" | "restoring";

/** Bytes the run kept. */
export type ArtifactDocument = {
  /** Its name. */
  name: string;
  /** Media type of the content. */
  content_type: string;
  /** Size in bytes. */
  size: number;
  /** Where to get it. */
  href: string;
};

/** What a run kept. */
export type ArtifactsDocument = {
  /** Files that were kept. */
  artifacts: Array<ArtifactDocument>;
};

/** One time that it was sent. */
export type AttemptDocument = {
  /** When it was sent. */
  at: string;
  /** What the receiver answered; null: nothing. */
  status: number | null;
  /** Milliseconds that it took. */
  ms: number;
  /** Null: it was taken. */
  error: string | null;
};

/** A change, or a call that was refused. */
export type AuditDocument = {
  /** Its place in the chain, from 1 without gaps. */
  number: number;
  /** When it was sent. */
  at: string;
  /** Who called; empty: nobody who is known; `local:` and a user: on the server's machine. */
  client: string;
  /** The role of the caller; empty: unknown. */
  role: string;
  /** The key that was used; empty: none, or other credentials. */
  key_id: string;
  /** Where the call came from; empty for commands on the server. */
  address: string;
  /** The operation's id in the OpenAPI document, or the command. */
  action: string;
  /** The path of the call, or what the command changed. */
  resource: string;
  /** HTTP status of the answer; 0 for a command. */
  status: number;
  /** Why it was refused; empty if it was done. */
  code: string;
  /** As the answer had it in X-Request-Id. */
  request_id: string;
  /** How many equal refusals of one minute it stands for. */
  count: number;
  /** What was there before; null: unknown or too large. */
  before: unknown;
  /** What is there since; null: nothing, unknown or too large. */
  after: unknown;
  /** SHA-256 over this row and the hash of the row before it. */
  hash: string;
};

/** One page of the audit, newest first. */
export type AuditPageDocument = {
  /** Rows in the file so far. */
  rows: Array<AuditDocument>;
  /** Give it as `cursor` for the next page; null on the last. */
  next_cursor: string | null;
};

/** How long to wait before another attempt, unless the site says. */
export type Backoff = {
  /** How the wait grows; default: exponential. */
  kind?: "linear" | "exponential" | null;
  /** Before the second attempt; default: 5. */
  first_seconds?: number | null;
  /** How many times the first wait the second one is; default: 2. */
  factor?: number | null;
  /** No wait is longer; default: 300. */
  cap_seconds?: number | null;
};

/** A row that cannot be used. */
export type BadRowDocument = {
  /** Counted from 1; of `items` in a body: its place. */
  line: number;
  /** Why. */
  reason: string;
  /** The uploaded file that has the row; empty: the body. */
  file: string;
};

/** When a job is halted because its items fail, and for how long. */
export type Breaker = {
  /** Whether the job is ever halted by itself. */
  enabled?: boolean;
  /** So many errors in a row halt it. */
  failures?: number;
  /** Or this share of the last `window` outcomes. */
  ratio?: number;
  /** Outcomes that `ratio` looks at. */
  window?: number;
  /** How long it is halted before items probe. */
  cooldown_seconds?: number;
  /** Items let through then; one success closes the breaker. */
  probes?: number;
};

/** How the job's breaker stands. */
export type BreakerDocument = {
  /** `open`: the job is paused; `half_open`: a few items try. */
  state: "closed" | "half_open" | "open";
  /** Why it opened; empty: it did not. */
  reason: string;
  /** Failures in a row. */
  in_a_row: number;
  /** Failures among the last outcomes. */
  recent_failures: number;
  /** How many last outcomes are looked at. */
  recent: number;
  /** How often it opened. */
  trips: number;
  /** When it opened last; null: never. */
  opened_at: string | null;
  /** When items probe again; null unless it is open. */
  probes_at: string | null;
};

/** What the run may use up; then its fetches end as `fetch_budget`. The smaller of this and the operator's holds. */
export type Budget = {
  /** Requests to the web, redirects included. */
  requests?: number | null;
  /** Received, as on the wire. */
  megabytes?: number | null;
  /** The part of it that came through residential or unlocking proxies. */
  residential_megabytes?: number | null;
  /** Spent in requests; those at once add up. */
  seconds?: number | null;
  /** Tokens that models read and write. */
  ai_tokens?: number | null;
  /** What models cost, in the currency of the operator's prices. */
  ai_cost?: number | null;
};

/** What a client may use in one day or one month. 0: no limit. */
export type BudgetCall = {
  /** Runs, and items of jobs. */
  runs?: number;
  /** Requests to the web. */
  fetches?: number;
  /** Megabytes received. */
  mb?: number;
  /** Megabytes without a proxy. */
  direct_mb?: number;
  /** Megabytes through datacenter proxies. */
  datacenter_mb?: number;
  /** Megabytes through residential proxies and unlockers. */
  residential_mb?: number;
  /** Seconds that browser contexts are open. */
  browser_seconds?: number;
};

/** How pages are kept, and how many there are. */
export type CacheDocument = {
  /** Unless policy says. */
  mode: "around" | "back" | "off" | "through";
  /** How old a kept page may be unless policy says; 0: none serves. */
  max_age_seconds: number;
  /** In each worker. */
  memory_limit_bytes: number;
  /** Null: this gateway has no part in it. */
  shared: SharedDocument | null;
};

/** What of a job is changed. */
export type ChangeCall = {
  /** Changes of the job's policy; the rest stays as it is. */
  policy?: JobPolicyCall;
  /** Name to show in lists. */
  name?: string | null;
  /** Of items that are handed out from now on. */
  priority?: Priority | null;
};

/** A scraper's channels. */
export type ChannelsDocument = {
  /** The scraper, as `site/task`. */
  scraper: string;
  /** Channel → version, as now in force. An unset `stable` is the newest release. */
  channels: Record<string, string>;
  /** Those that operators moved. */
  moved: Record<string, string>;
  /** The last moves, newest first. */
  moves: Array<MoveDocument>;
};

/** What went through proxies of one class. */
export type ClassUseDocument = {
  /** Requests that were sent. */
  requests: number;
  /** Requests without an answer. */
  failures: number;
  /** Received. */
  bytes: number;
  /** `direct`: without a proxy. */
  proxy_class: string;
};

/** What a client may use in one day or one month. 0: no limit. */
export type ClientBudget = {
  /** Runs, and items of jobs; 0: no limit. */
  runs: number;
  /** Requests to the web; 0: no limit. */
  fetches: number;
  /** Megabytes received; 0: no limit. */
  mb: number;
  /** Megabytes without a proxy; 0: no limit. */
  direct_mb: number;
  /** Megabytes through datacenter proxies; 0: no limit. */
  datacenter_mb: number;
  /** Megabytes through residential proxies and unlockers; 0: no limit. */
  residential_mb: number;
  /** Seconds that browser contexts are open; 0: no limit. */
  browser_seconds: number;
};

/** How much a client may ask for. 0: no limit. */
export type ClientLimits = {
  /** Calls per second; 0: no limit. */
  rate: number;
  /** Runs at once; 0: no limit. */
  concurrency: number;
  /** Megabytes of one call's body; 0: what the gateway takes. */
  body_mb: number;
  /** Of each day, in UTC. */
  daily: ClientBudget;
  /** Of each month, in UTC. */
  monthly: ClientBudget;
};

/** Items by status; they add up to `total` at every moment. */
export type CountsDocument = {
  /** All items that are known so far. */
  total: number;
  /** Items that wait to be handed out. */
  pending: number;
  /** Items that were handed out and wait for a slot. */
  queued: number;
  /** Items that run now. */
  in_progress: number;
  /** Items that succeeded. */
  success: number;
  /** Items that failed. */
  error: number;
  /** Items that never ran, because the job was cancelled. */
  cancelled: number;
};

/** A crawl of one site. It becomes a job, with these defaults. */
export type CrawlCall = {
  /** One must fit, if any. */
  include?: Array<string>;
  /** None may fit. */
  exclude?: Array<string>;
  /** Where to begin. */
  url: string;
  /** Links from the start to the farthest page. */
  depth?: number;
  /** Maximum pages. */
  limit?: number;
  /** Which links are followed: those to the same host (`www.` or not), to the same site, or below the path of `url`. */
  scope?: "host" | "site" | "path" | "any";
  /** The query of a link: as it is; `clean`: without utm_source and the like; `sort`: also sorted; `drop`: none. */
  query?: "keep" | "clean" | "sort" | "drop";
  /** Whether the pages of the site's sitemaps are taken, too. */
  sitemap?: boolean;
  /** What is read of each page beside its head and its links. */
  formats?: Array<"markdown" | "html" | "raw_html" | "text" | "links" | "anchors" | "article" | "metadata" | "structured" | "product" | "images" | "tables" | "records" | "next_page" | "data">;
  /** Whether robots.txt is obeyed. */
  robots?: "ignore" | "obey";
  /** Pages begun a second; null: as fast as the politeness of sites allows. */
  rate?: number | null;
  /** Pages at once; null: as workers take them. */
  concurrency?: number | null;
  /** As of a job; `robots`, `rate`, `concurrency` go first. */
  policy?: JobPolicyCall;
  /** Name to show in lists. */
  name?: string;
  /** Files to be made when it has ended; `pages` is made for this. */
  exports?: Array<ExportCall>;
  /** Who is told of what happens to it. */
  webhook?: WebhookCall | null;
};

/** A job that was made. */
export type CreatedJobDocument = {
  /** Its id. */
  id: string;
  /** Where it stands. */
  status: JobStatus;
  /** Its name. */
  name: string;
  /** Who the job is for, as the call named it. */
  owner: string;
  /** The scraper, as `site/task`. */
  scraper: string;
  /** Pinned when the job was made; null for a built-in scraper. */
  version: string | null;
  /** The scraper as the call named it. */
  asked_for: string;
  /** The profile whose defaults it was made with. */
  profile: string | null;
  /** Which workers take it. */
  lane: string;
  /** `high` is taken before `normal`, and `normal` before `low`. */
  priority: Priority;
  /** Items by status. */
  counts: CountsDocument;
  /** Items that have ended, by the HTTP status of the last page that each fetched. Items that fetched none, or got no answer, are not counted. */
  http_statuses: Record<string, number>;
  /** Share of the items known so far that have ended. */
  progress: number;
  /** Ended lately; null while none were handed out. */
  items_per_second: number | null;
  /** Until the end, if it goes on like this; null: cannot be told. */
  eta_seconds: number | null;
  /** Whether items are still being added by its source. */
  reading: boolean;
  /** Rows of its list that were not usable, or there twice. */
  skipped_rows: number;
  /** What its reader must know: that all items failed; what of its source was not read, and why: files of a sitemap, pages beyond a limit, links of pages that failed, rows that could not be used. */
  warnings: Array<string>;
  /** Where its items come from. */
  source: Record<string, unknown>;
  /** How pages are fetched, and how often failures are tried again. */
  policy: Record<string, unknown>;
  /** Null: the scraper's version is not here, which has a say. */
  manners: JobManners | null;
  /** How the job's breaker stands. */
  breaker: BreakerDocument;
  /** Why it is paused; empty: it is not, or by a call. */
  pause_reason: string;
  /** Why it failed; null: it did not. */
  error: ErrorDocument | null;
  /** Of all its items together. */
  usage: UsageDocument;
  /** Files that are made of the job. */
  exports: Array<WishDocument>;
  /** Whether manifests and exports are still being written: while the job is `finishing`, and for a while after it was `cancelled`. */
  files_pending: boolean;
  /** When retention removed `results`, `artifacts`, `html` or `logs` of its items. */
  swept: Record<string, string>;
  /** Where its items lie: empty for the database, `archived` for the blob store. */
  archive: ArchiveState;
  /** Names of the sinks that its results are delivered to. */
  sinks: Array<string>;
  /** Who is told what happens; null: nobody. */
  webhook: WebhookDocument | null;
  /** The schedule that started it; null: a call did. */
  schedule_id: string | null;
  /** When it was created. */
  created_at: string;
  /** When it started; null: not yet. */
  started_at: string | null;
  /** When it ended; null while it has not. */
  finished_at: string | null;
  /** When `policy.max_seconds` are over. */
  deadline: string | null;
  /** Where to go from here. */
  links: JobLinks;
  /** The site it is about; empty if neither the call nor an address tells. */
  domain: string;
  /** @deprecated Another name of `counts.total`. */
  total_urls: number;
  /** @deprecated Another name of `counts.success`. */
  success_urls: number;
  /** @deprecated Another name of `counts.error`. */
  failed_urls: number;
  /** @deprecated Another name of `usage.bytes_received / 1048576`. */
  traffic_mb_used: number;
  /** @deprecated Another name of `usage.bytes_by_class / 1048576, of residential and unlocking proxies`. */
  residential_mb_used: number;
  /** @deprecated Another name of `error.message`. */
  error_message: string | null;
  /** @deprecated Another name of `finished_at, started_at or created_at, the last that is set`. */
  updated_at: string;
  /** Null: its source is read from now on. */
  rows: RowsDocument | null;
};

/** An item that ended as an error. */
export type DeadLetterDocument = {
  /** Its id. */
  id: string;
  /** Its place in the job, from 0. */
  number: number;
  /** Where it stands. */
  status: ItemStatus;
  /** What the scraper is called with. */
  input: Record<string, unknown>;
  /** Attempts begun. */
  attempt: number;
  /** When it is tried again. */
  not_before: string | null;
  /** Why it ended; null while it has not. */
  exit_reason: ExitReason | null;
  /** Of the last page that it fetched; null if there was none, or no answer. */
  http_status: number | null;
  /** It failed, and `result` has the records that the script yielded before. */
  partial: boolean;
  /** Why it failed; null: it did not. */
  error: ErrorDocument | null;
  /** Registrable domain. */
  site: string | null;
  /** What it used; null before the end. */
  usage: UsageDocument | null;
  /** How its last page was had: `http`, `clearance` (plain HTTP with what the solver had got), `solver` or `cache`; null if it got none. */
  strategy_used: string | null;
  /** Class and exit of the proxy that the page came through, without credentials. */
  proxy_used: string | null;
  /** When it started; null: not yet. */
  started_at: string | null;
  /** When it ended; null while it has not. */
  finished_at: string | null;
  /** Links from a start to it; null unless links are followed. */
  depth: number | null;
  /** The page that linked to it first. */
  referrer: string | null;
  /** Null before the end and where the data is an object: `artifacts` has it. */
  result: PageResult | ProductResult | SelectResult | ListResult | unknown;
  /** Size of the result in bytes. */
  result_bytes: number;
  /** Files that were kept. */
  artifacts: Array<ArtifactDocument>;
  /** What retention has removed of it. */
  swept: Array<string>;
  /** Where to go from here. */
  links: ItemLinks;
  /** The job's id. */
  job_id: string;
};

/** One page of the dead letters, those of the newest job first. */
export type DeadLetterPageDocument = {
  /** Items on this page. */
  items: Array<DeadLetterDocument>;
  /** Give it as `cursor` for the next page; null on the last. */
  next_cursor: string | null;
};

/** A message to a receiver. */
export type DeliveryDocument = {
  /** Its id. */
  id: string;
  /** The job, run or alert that it tells of. */
  subject: string;
  /** What happened. */
  event: string;
  /** Without user and query, which may hold secrets; `alert:slack` for alerts. */
  url: string;
  /** Where it stands. */
  state: DeliveryState;
  /** Begun, replays included. */
  attempts: number;
  /** Of the last attempt. */
  status: number | null;
  /** Of the last attempt. */
  error: string | null;
  /** When it was created. */
  created_at: string;
  /** When it is sent again; null unless it waits. */
  next_at: string | null;
  /** When sending is given up. */
  give_up_at: string;
  /** When it ended; null while it has not. */
  finished_at: string | null;
  /** The last 30 attempts, the newest last. */
  log: Array<AttemptDocument>;
};

/** One page of the listing, newest first. */
export type DeliveryPageDocument = {
  /** Messages to receivers on this page. */
  deliveries: Array<DeliveryDocument>;
  /** Give it as `cursor` for the next page; null on the last. */
  next_cursor: string | null;
};

/** How a delivery stands. */
export type DeliveryState = "waiting" | "delivered" | "failed";

/** The state of one thing we depend on. */
export type DependencyDocument = {
  /** Whether it answers. */
  state: "away" | "ok";
  /** Null when it did not answer or there is nothing to measure. */
  latency_ms: number | null;
  /** How old this finding is; for workers, since the last heartbeat seen. */
  age_seconds: number;
  /** More about it; empty: nothing to tell. */
  detail: string;
};

/** How the fields of a scraper's results are doing. */
export type DriftDocument = {
  /** Its id. */
  scraper: string;
  /** Fields that are not as they were, of all sites. */
  drifted: number;
  /** By host, at most 1,000. */
  sites: Array<SiteHealthDocument>;
};

/** How far a scraper's packages are installed: the worst of what workers tell. */
export type EnvironmentDocument = {
  /** `unknown`: no worker has told. */
  status: "none" | "waiting" | "building" | "ready" | "failed" | "unknown";
  /** Why it cannot be used; empty: it can. */
  problem: string;
  /** The workers. */
  workers: Array<WorkerEnvironment>;
};

/** How far a scraper's packages are installed on one worker. */
export type EnvironmentStateDocument = {
  /** Where it stands. */
  status: EnvironmentStatus;
  /** Names the environment; empty until its requirements are resolved. */
  key: string;
  /** Why it could not be built. */
  problem: string;
  /** Size in bytes. */
  size_bytes: number;
  /** When it was built; null: not yet. */
  built_at: string | null;
};

/** How far a scraper's environment has come on one machine. waiting ──► building ──► ready │ └──────► failed ──► waiting (tried again later) `none`: the scraper requires nothing and shares the base. A ready environment that made room for others waits again. */
export type EnvironmentStatus = "building" | "failed" | "none" | "ready" | "waiting";

/** What went wrong in a run. */
export type ErrorDocument = {
  /** What went wrong, in words. */
  message: string;
  /** The class of the exception, or the kind of failure. */
  type: string;
  /** Where in the script it went wrong; empty: unknown. */
  traceback: string;
  /** What the site answered, where a fetch ended the run. */
  site_status: number | null;
  /** More about it, from the script or the engine. */
  details: Record<string, unknown>;
};

/** Why a run ended. Stable names: clients, metrics and retries depend on them. */
export type ExitReason = "succeeded" | "gone" | "script_error" | "failed" | "skipped" | "retry" | "blocked" | "bad_input" | "bad_result" | "timeout" | "cpu_limit" | "memory_limit" | "disk_limit" | "output_limit" | "process_limit" | "crashed" | "protocol_error" | "cancelled" | "lost_worker" | "scraper_not_found" | "scraper_invalid" | "source_unavailable" | "internal_error" | "fetch_dns" | "fetch_connect" | "fetch_tls" | "fetch_timeout" | "fetch_protocol" | "fetch_too_large" | "fetch_decode" | "fetch_status" | "fetch_redirects" | "fetch_bad_url" | "fetch_private_address" | "fetch_not_allowed" | "fetch_rate_limited" | "fetch_site_down" | "fetch_blocked" | "fetch_captcha" | "fetch_proxy" | "fetch_robots" | "fetch_limit" | "fetch_budget" | "ai_unavailable" | "browser_step" | "browser_timeout" | "browser_crashed" | "browser_unavailable";

/** Where the time went, what was tried and why it ended so. */
export type Explanation = {
  /** Its id. */
  id: string;
  /** Where it stands. */
  status: RunStatus;
  /** The scraper, as `site/task`. */
  scraper: string;
  /** Its version. */
  version: string | null;
  /** Why it ended; null while it has not. */
  exit_reason: ExitReason | null;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  /** Which attempt this is, from 1. */
  attempt: number;
  /** How often it is tried at most. */
  max_attempts: number;
  /** The worker's id. */
  worker: string | null;
  /** Milliseconds from the call to the end, or until now. */
  total_ms: number;
  /** Where the time went, phase by phase. */
  phases: Array<PhaseDocument>;
  /** Whether a child process was waiting for the run. */
  forked_ahead: boolean;
  /** Each fetch, in order. */
  fetches: Array<FetchDocument>;
  /** What the fetches took of the web. */
  requests: number;
  /** Received, by what it came through. */
  bytes_by_class: Record<string, number>;
  /** What it may use. */
  limits: Array<LimitDocument>;
  /** Why it failed; null: it did not. */
  error: ErrorDocument | null;
  /** A few plain sentences: where the time went and what to do. */
  summary: Array<string>;
};

/** A file to be made of a job. */
export type ExportCall = {
  /** Which columns; `pages`: markdown, and which page is a duplicate; `records`: the scraper's own. */
  type: "full" | "pages" | "seo" | "diff" | "links" | "records";
  /** Of the file. */
  format: "csv" | "xlsx" | "json" | "jsonl" | "parquet";
  /** CSV alone: begin with the mark by which Excel knows UTF-8. */
  bom?: boolean;
  /** `diff` alone: the job to compare with, instead of the crawl before. Neither needs snapshots. */
  against?: string | null;
  /** `diff` alone: no file of a first crawl, which has nothing to compare with. */
  skip_first?: boolean;
};

/** A file made of a job. */
export type ExportDocument = {
  /** Its id. */
  id: string;
  /** The job's id. */
  job_id: string;
  /** Which columns: `full`, `seo`, `diff`, … */
  type: string;
  /** Format of the file, such as `csv`. */
  format: string;
  /** Whether a CSV file begins with a byte order mark, for Excel. */
  bom: boolean;
  /** Of a `diff`: the job it compares with; null for the crawl before. */
  against: string | null;
  /** Where it stands. */
  state: ExportState;
  /** How far it is, from 0 to 1. */
  progress: number;
  /** Rows in the file so far. */
  rows: number;
  /** Size in bytes. */
  bytes: number;
  /** SHA-256 of the file; null until it is done. */
  sha256: string | null;
  /** Name of the file when it is downloaded. */
  filename: string;
  /** Why it could not be made; null: it could, or is not done. */
  error: string | null;
  /** What its readers must know: empty columns and why, what was not read. */
  notes: Array<string>;
  /** When it was created. */
  created_at: string;
  /** When it started; null: not yet. */
  started_at: string | null;
  /** When it ended; null while it has not. */
  finished_at: string | null;
  /** Where to go from here. */
  links: ExportLinks;
  /** @deprecated Another name of `links.download`. */
  url: string | null;
  /** @deprecated Another name of `bytes`. */
  size_bytes: number;
};

/** Where to go from here. */
export type ExportLinks = {
  /** This document. */
  self: string;
  /** The job. */
  job: string;
  /** Null until it is done. */
  download: string | null;
};

/** Where an export stands. */
export type ExportState = "done" | "failed" | "queued" | "running";

/** The exports of a job, the oldest first. */
export type ExportsDocument = {
  /** Files that are made of the job. */
  exports: Array<ExportDocument>;
};

/** Data to extract. Give `url`, `urls` or `html`, and one of `fields`, `schema` and `prompt`. */
export type ExtractCall = {
  /** The page; with `html`, the address that it has. */
  url?: string | null;
  /** One run for each. */
  urls?: Array<string> | null;
  /** A page that you have. */
  html?: string | null;
  /** `title, price: number, in_stock: bool, subtitle?, images: url[]`, or a table of names and types. */
  fields?: string | Record<string, unknown> | null;
  /** A JSON schema that the data must fit, instead of `fields`. */
  schema?: Record<string, unknown> | null;
  /** What is wanted as a sentence, instead of `fields`. */
  prompt?: string | null;
  /** Pages of the same kind, `url` or `html`, each with its `values`. */
  examples?: Array<Record<string, unknown>> | null;
  /** Selectors by field, for what nothing else finds. */
  fallback?: Record<string, unknown> | null;
  /** How the page is had. Default: `auto`. */
  engine?: "auto" | "http" | "browser" | "light" | "solver" | null;
  /** Which model is asked, and what it may use up. */
  ai?: AiChoice;
  /** Confidence that is enough; default: the operator's. */
  sure?: number | null;
  /** Values below this confidence are left out of `data`. */
  least?: number | null;
  /** A model's value that does not stand in the page: flagged, or left out. */
  invented?: "flag" | "refuse" | null;
  /** Whether answers teach the site's pattern. */
  learn?: boolean;
  /** Seconds to wait for the end; 0 answers at once with a handle. */
  wait?: number | null;
  /** As of a scrape. */
  policy?: Policy;
  /** Who is told when a run ends. */
  webhook?: RunWebhookCall | null;
};

/** Items of a job that failed alike. */
export type FailureDocument = {
  /** Why it ended; null while it has not. */
  exit_reason: ExitReason;
  /** Of the last page that they fetched; null: there was none. */
  http_status: number | null;
  /** Registrable domain. */
  site: string | null;
  /** How many there are. */
  count: number;
  /** The first of them. */
  example: ItemDocument;
};

/** Why items of a job failed. */
export type FailuresDocument = {
  /** The job's id. */
  job_id: string;
  /** The 50 largest groups, the largest first. */
  groups: Array<FailureDocument>;
};

/** One request to the web. */
export type FetchDocument = {
  /** The address. */
  url: string;
  /** HTTP method. */
  method: string;
  /** What the site answered; null: nothing. */
  status: number | null;
  /** The address after redirects. */
  final_url: string;
  /** Size in bytes. */
  bytes: number;
  /** Milliseconds that it took. */
  ms: number;
  /** Milliseconds after the script began. */
  started_ms: number;
  /** Why it failed; empty: it did not. */
  error: string;
  /** How the page was had: browser, pool, clearance, solver, `cache`; empty: not at all. */
  way: string;
  /** Of a kept page; null: it was fetched. */
  age_seconds: number | null;
  /** Ways that did not lead to a page, in order: `way`, `reason`, and `status`, `kind` and `vendor` of a block, or the `message` of a failure. */
  tried: Array<Record<string, unknown>>;
};

/** One field of the results. */
export type FieldHealthDocument = {
  /** Its name; `offer.price` for one inside another. */
  name: string;
  /** Share of earlier pages that had a value, from 0 to 1. */
  fill_rate: number;
  /** The same of the last 20 pages. */
  recent_fill_rate: number;
  /** How it is not as it was; null while it is. */
  drift: "changed" | "emptied" | "filled" | "repeated" | null;
  /** When that was noticed. */
  since: string | null;
  /** What it was, in words. */
  before: string | null;
  /** What it was in the 20 pages in which that was noticed. */
  now: string | null;
};

/** A time that came, and what became of it. */
export type FiringDocument = {
  /** When it was due. */
  due_at: string;
  /** Whether the clock or a call started it. */
  kind: "manual" | "scheduled";
  /** Where it stands. */
  state: FiringState;
  /** The job or run that it started; of one that waits, that it will start. */
  id: string | null;
  /** Why it waits, was skipped, failed or was missed. */
  reason: string | null;
  /** When it was decided what becomes of it; null: it waits. */
  settled_at: string | null;
};

/** What became of a time that came. */
export type FiringState = "failed" | "missed" | "skipped" | "started" | "waiting";

/** How the links of pages are followed. */
export type Follow = {
  /** One must fit, if any. */
  include?: Array<string>;
  /** None may fit. */
  exclude?: Array<string>;
  /** Links from a start to the farthest page. */
  depth?: number;
  /** Whether links to other sites are left. */
  same_site?: boolean;
  /** Which links are followed: those to the host of a start (`www.` or not), to its site, or below its path. Default: as `same_site` says. */
  scope?: "host" | "site" | "path" | "any" | null;
  /** The query of a link: as it is; `clean`: without utm_source and the like; `sort`: also sorted; `drop`: none. */
  query?: "keep" | "clean" | "sort" | "drop";
  /** Whether the pages of the site's sitemaps are taken, too, as if it linked them. */
  sitemap?: boolean;
  /** Whether links deeper than `depth` are counted, as `source.found.beyond_depth`, or those to pages beyond a `limit` that was reached, as `source.found.beyond_limit`. */
  count_beyond?: boolean;
  /** Items at most, the starts among them. */
  limit?: number;
  /** Field of the results with the links. */
  links?: string;
};

/** What to forget: exactly one of `url`, `site` and `client`. */
export type ForgetCall = {
  /** A page's URL. */
  url?: string | null;
  /** A host, such as `shop.example`. */
  site?: string | null;
  /** A client's name. */
  client?: string | null;
  /** Count what would go, and remove nothing. */
  dry_run?: boolean;
};

/** What went, or with `dry_run` what would go. */
export type ForgottenDocument = {
  /** Whether nothing was removed. */
  dry_run: boolean;
  /** By kind: runs, jobs, items, exports, schedules, webhook_messages, snapshots, state, patterns, drift, keys, cached_pages. */
  counts: Record<string, number>;
  /** Archived jobs that have it and are being restored: call again in a minute, until it is empty. */
  restoring: Array<string>;
};

/** A query of GraphQL. */
export type GraphqlCall = {
  /** The query; at most 1,000 tokens. */
  query: string;
  /** Values of its variables. */
  variables?: Record<string, unknown> | null;
  /** Which of its operations, if it has several. */
  operationName?: string | null;
  /** For clients that send some; nothing reads them. */
  extensions?: Record<string, unknown> | null;
};

/** A run that goes on. */
export type Handle = {
  /** Its id. */
  id: string;
  /** Where it stands. */
  status: RunStatus;
  /** Where to look the run up. */
  links: Links;
};

/** Several runs, of which at least one goes on. */
export type Handles = {
  /** The runs. */
  runs: Array<Handle>;
};

/** The whole, and each dependency: queue, store, blobs, workers. */
export type HealthDocument = {
  /** `ok`; `degraded`: calls are taken, but not all goes well; `down`: calls cannot be taken. */
  status: "degraded" | "down" | "ok";
  /** Its version. */
  version: string;
  /** The id of the gateway that answers. */
  gateway: string;
  /** `ok`, or `error: ` and why; the same as `dependencies.store`. */
  database: string;
  /** The state of each dependency, by name. */
  dependencies: Record<string, DependencyDocument>;
};

/** The last times of a schedule, newest first. */
export type HistoryDocument = {
  /** The schedule's id. */
  schedule_id: string;
  /** Due times, and what became of each. */
  firings: Array<FiringDocument>;
};

/** What becomes of a Git host's call. */
export type HookDocument = {
  /** What happened. */
  event: string;
  /** Whether repositories are being refreshed because of the call. */
  refreshing: boolean;
};

/** How politely hosts of a kind are fetched from. */
export type HostManners = {
  /** Whether robots.txt is obeyed. */
  robots: "ignore" | "obey";
  /** Maximum requests a second to one site; null: no limit. */
  requests_per_second: number | null;
};

/** Who calls. */
export type IdentityDocument = {
  /** Owns what is created with the key; empty while nobody is asked for one. */
  client: string;
  /** What the caller may do. */
  role: Role;
  /** Patterns of the scrapers that it may call; [] for all. */
  scrapers: Array<string>;
  /** How much the client may ask for. */
  limits: ClientLimits;
};

/** Which kept pages to forget. Give exactly one. */
export type InvalidateCall = {
  /** Pages that were asked for by this URL, whoever asked and how. */
  url?: string | null;
  /** Pages of this site; any host of it names it. */
  site?: string | null;
  /** Every page. */
  all?: boolean;
};

/** What was forgotten. */
export type InvalidatedDocument = {
  /** Pages that the shared tier held; each worker's memory forgets as well. */
  dropped: number;
};

/** An item. */
export type ItemDocument = {
  /** Its id. */
  id: string;
  /** Its place in the job, from 0. */
  number: number;
  /** Where it stands. */
  status: ItemStatus;
  /** What the scraper is called with. */
  input: Record<string, unknown>;
  /** Attempts begun. */
  attempt: number;
  /** When it is tried again. */
  not_before: string | null;
  /** Why it ended; null while it has not. */
  exit_reason: ExitReason | null;
  /** Of the last page that it fetched; null if there was none, or no answer. */
  http_status: number | null;
  /** It failed, and `result` has the records that the script yielded before. */
  partial: boolean;
  /** Why it failed; null: it did not. */
  error: ErrorDocument | null;
  /** Registrable domain. */
  site: string | null;
  /** What it used; null before the end. */
  usage: UsageDocument | null;
  /** How its last page was had: `http`, `clearance` (plain HTTP with what the solver had got), `solver` or `cache`; null if it got none. */
  strategy_used: string | null;
  /** Class and exit of the proxy that the page came through, without credentials. */
  proxy_used: string | null;
  /** When it started; null: not yet. */
  started_at: string | null;
  /** When it ended; null while it has not. */
  finished_at: string | null;
  /** Links from a start to it; null unless links are followed. */
  depth: number | null;
  /** The page that linked to it first. */
  referrer: string | null;
  /** Null before the end and where the data is an object: `artifacts` has it. */
  result: PageResult | ProductResult | SelectResult | ListResult | unknown;
  /** Size of the result in bytes. */
  result_bytes: number;
  /** Files that were kept. */
  artifacts: Array<ArtifactDocument>;
  /** What retention has removed of it. */
  swept: Array<string>;
  /** Where to go from here. */
  links: ItemLinks;
};

/** Where to go from here. */
export type ItemLinks = {
  /** This document. */
  self: string;
  /** The job. */
  job: string;
};

/** One page of the items, in the order of the list. */
export type ItemPageDocument = {
  /** Items on this page. */
  items: Array<ItemDocument>;
  /** Give it as `cursor` for the next page; null on the last. */
  next_cursor: string | null;
};

/** Where an item stands. It follows from where the item is found; only the last but `cancelled` are stored. */
export type ItemStatus = "pending" | "queued" | "in_progress" | "success" | "error" | "cancelled";

/** A job to do. Give exactly one of `items`, `items_url`, `sitemap_url`, `kafka` and `start_url`. */
export type JobCall = {
  /** Of a list; `auto`: as it looks. */
  format?: "auto" | "csv" | "jsonl" | "json" | "urls";
  /** Of CSV; empty: told from its first line. */
  delimiter?: "" | "," | ";" | "\t" | "|";
  /** Columns of CSV without a header. */
  names?: Array<string>;
  /** Column → field of the input; other columns are left out. */
  columns?: Record<string, string>;
  /** Fields that every item has, unless its row says. */
  input?: Record<string, unknown>;
  /** Whether a row that cannot be used refuses the whole list, or is left out and counted. Default: `reject`; of sitemaps and links, which nobody wrote for this job, `skip`. */
  bad_rows?: "reject" | "skip" | null;
  /** Defaults for whatever the call leaves open. `site`: a careful crawl of one site, with files. */
  profile?: "site" | null;
  /** `site/task` or `site/task@version`; pinned to one version now. */
  scraper?: string | null;
  /** The site it is about, for listings; default: the host of the first address that is given. */
  domain?: string | null;
  /** Name to show in lists. */
  name?: string;
  /** Whose share of the workers it uses. */
  owner?: string;
  /** Default: the scraper's, else `normal`. */
  priority?: Priority | null;
  /** Which workers take it; default: the scraper's lane. */
  lane?: string | null;
  /** Whether it waits for /resume before its first item is handed out. */
  paused?: boolean;
  /** How pages are fetched, and how often failures are tried again. */
  policy?: JobPolicyCall;
  /** Files to be made when it has ended. */
  exports?: Array<ExportCall>;
  /** Sinks that its results are delivered to while it runs, by name: `GET /api/sinks` lists them. Default: those that the operator chose for all jobs. */
  sinks?: Array<string> | null;
  /** Who is told of what happens to it. */
  webhook?: WebhookCall | null;
  /** The id that the job shall have; the same call again is the same job. Default: one of ours. A client's id gets its name before it: `acme.test-001`. */
  job_id?: string | null;
  /** Limits under other names. */
  options?: SiteOptions | null;
  /** Inputs: objects, or addresses. `{"item_id": …, "input": {…}}` names an item; `item_id` may also stand beside the input's fields. */
  items?: Array<unknown> | null;
  /** A list at an address: CSV, JSONL, JSON or plain addresses. */
  items_url?: string | null;
  /** A sitemap, an index of them, a robots.txt, or a site whose robots.txt names them. */
  sitemap_url?: string | null;
  /** What is taken of the sitemap. */
  sitemap?: SitemapChoice;
  /** Records of a Kafka topic. */
  kafka?: KafkaItems | null;
  /** Where to begin to follow links: an address, or several. */
  start_url?: string | Array<string> | null;
  /** How the links of `start_url` are followed. */
  follow?: Follow;
  /** Which of the large fields to return; the others are null. As `input.formats`. */
  formats?: Array<"markdown" | "html" | "raw_html" | "text" | "links" | "anchors" | "article" | "metadata" | "structured" | "product" | "images" | "tables" | "records" | "next_page" | "data" | "headers">;
  /** Whether `markdown` and `html` are the main part of the page, or all that is visible. Default: the main part as `markdown`, all of it as `html`. As `input.only_main`. */
  only_main?: boolean;
  /** Read only the parts of the page that these CSS selectors match. As `input.include_tags`. */
  include_tags?: Array<string>;
  /** Leave out the parts of the page that these CSS selectors match. As `input.exclude_tags`. */
  exclude_tags?: Array<string>;
  /** Headers of the request. Those that the engine sets itself, such as `Host`, are refused. As `input.headers`. */
  headers?: Record<string, string>;
  /** Cookies of the request, by name. Not together with a `Cookie` header. As `input.cookies`. */
  cookies?: Record<string, string>;
  /** Default: `GET`, or `POST` if there is a `body`. As `input.method`. */
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";
  /** What is sent: text as it is, `{"json": …}` or `{"form": {…}}`. As `input.body`. */
  body?: {
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as a web form does. */
  form?: Record<string, string | number | boolean>;
} | string;
  /** How the page is had. Default: `auto`, plain HTTP, and a browser only where that does not do; `light` is a small browser without layout. `browser` if `browser` says how. As `input.engine`. */
  engine?: "auto" | "http" | "browser" | "light" | "solver";
  /** What a browser does with the page before it is read. As `input.browser`. */
  browser?: {
  /** Selector of an element to wait for. */
  wait_for?: string;
  /** State of loading to wait for. Default: `load`. */
  wait_until?: "load" | "domcontentloaded" | "networkidle" | "commit";
  /** Times that the page is scrolled to its end, at most, while it grows. */
  scroll?: number;
  /** Keep the artifact `screenshot.png`. */
  screenshot?: boolean;
  /** Of the screenshot: the whole page, not the window. */
  full_page?: boolean;
  /** Device to look like, as `iPhone 15`. */
  device?: string;
  /** Language, as `de-DE`. */
  locale?: string;
  /** Time zone, as `Europe/Berlin`. */
  timezone?: string;
  /** Kinds of requests that are not made. */
  block?: Array<"image" | "media" | "font" | "stylesheet" | "tracker">;
};
  /** What to take from the page, by name: a CSS selector or XPath, such as `h1`, `a@href`, `h1::text`, `//h1`; or an object with `css` or `xpath`, and `as`, `attr`, `regex`, `list`, `default`, `required`; or `{"each": ".review", "fields": {…}}` for a list of records. As `input.fields`. */
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
  each?: string;
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
  each?: string;
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
  each?: string;
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
}>;
}>;
}>;
}>;
};

/** A job. */
export type JobDocument = {
  /** Its id. */
  id: string;
  /** Where it stands. */
  status: JobStatus;
  /** Its name. */
  name: string;
  /** Who the job is for, as the call named it. */
  owner: string;
  /** The scraper, as `site/task`. */
  scraper: string;
  /** Pinned when the job was made; null for a built-in scraper. */
  version: string | null;
  /** The scraper as the call named it. */
  asked_for: string;
  /** The profile whose defaults it was made with. */
  profile: string | null;
  /** Which workers take it. */
  lane: string;
  /** `high` is taken before `normal`, and `normal` before `low`. */
  priority: Priority;
  /** Items by status. */
  counts: CountsDocument;
  /** Items that have ended, by the HTTP status of the last page that each fetched. Items that fetched none, or got no answer, are not counted. */
  http_statuses: Record<string, number>;
  /** Share of the items known so far that have ended. */
  progress: number;
  /** Ended lately; null while none were handed out. */
  items_per_second: number | null;
  /** Until the end, if it goes on like this; null: cannot be told. */
  eta_seconds: number | null;
  /** Whether items are still being added by its source. */
  reading: boolean;
  /** Rows of its list that were not usable, or there twice. */
  skipped_rows: number;
  /** What its reader must know: that all items failed; what of its source was not read, and why: files of a sitemap, pages beyond a limit, links of pages that failed, rows that could not be used. */
  warnings: Array<string>;
  /** Where its items come from. */
  source: Record<string, unknown>;
  /** How pages are fetched, and how often failures are tried again. */
  policy: Record<string, unknown>;
  /** Null: the scraper's version is not here, which has a say. */
  manners: JobManners | null;
  /** How the job's breaker stands. */
  breaker: BreakerDocument;
  /** Why it is paused; empty: it is not, or by a call. */
  pause_reason: string;
  /** Why it failed; null: it did not. */
  error: ErrorDocument | null;
  /** Of all its items together. */
  usage: UsageDocument;
  /** Files that are made of the job. */
  exports: Array<WishDocument>;
  /** Whether manifests and exports are still being written: while the job is `finishing`, and for a while after it was `cancelled`. */
  files_pending: boolean;
  /** When retention removed `results`, `artifacts`, `html` or `logs` of its items. */
  swept: Record<string, string>;
  /** Where its items lie: empty for the database, `archived` for the blob store. */
  archive: ArchiveState;
  /** Names of the sinks that its results are delivered to. */
  sinks: Array<string>;
  /** Who is told what happens; null: nobody. */
  webhook: WebhookDocument | null;
  /** The schedule that started it; null: a call did. */
  schedule_id: string | null;
  /** When it was created. */
  created_at: string;
  /** When it started; null: not yet. */
  started_at: string | null;
  /** When it ended; null while it has not. */
  finished_at: string | null;
  /** When `policy.max_seconds` are over. */
  deadline: string | null;
  /** Where to go from here. */
  links: JobLinks;
  /** The site it is about; empty if neither the call nor an address tells. */
  domain: string;
  /** @deprecated Another name of `counts.total`. */
  total_urls: number;
  /** @deprecated Another name of `counts.success`. */
  success_urls: number;
  /** @deprecated Another name of `counts.error`. */
  failed_urls: number;
  /** @deprecated Another name of `usage.bytes_received / 1048576`. */
  traffic_mb_used: number;
  /** @deprecated Another name of `usage.bytes_by_class / 1048576, of residential and unlocking proxies`. */
  residential_mb_used: number;
  /** @deprecated Another name of `error.message`. */
  error_message: string | null;
  /** @deprecated Another name of `finished_at, started_at or created_at, the last that is set`. */
  updated_at: string;
};

/** Where to go from here. */
export type JobLinks = {
  /** This document. */
  self: string;
  /** The job's items. */
  items: string;
  /** Manifests of the job. */
  results: string;
  /** The job's exports. */
  exports: string;
  /** How the job went over time. */
  metrics: string;
  /** Live events, server-sent. */
  stream: string;
  /** Live events, by WebSocket. */
  ws: string;
};

/** How politely a job fetches. A site with settings of its own (`/api/sites`) follows those. */
export type JobManners = {
  /** `policy.rate`; null: no rate of its own. */
  items_per_second: number | null;
  /** Of all other hosts. */
  public: HostManners;
  /** Of private and loopback hosts. */
  private: HostManners;
};

/** How a job went over time. */
export type JobMetricsDocument = {
  /** The job's id. */
  job_id: string;
  /** One series for each number. */
  series: Array<MetricSeries>;
};

/** One page of the listing, newest first. */
export type JobPageDocument = {
  /** Jobs on this page. */
  jobs: Array<JobDocument>;
  /** Give it as `cursor` for the next page; null on the last. */
  next_cursor: string | null;
};

/** How a job's items are run. What is not given is as the scraper's manifest says, then as the operator set it. */
export type JobPolicyCall = {
  /** Shortens the scraper's own wall clock, never lengthens it. */
  timeout_seconds?: number | null;
  /** Further attempts of an item after its first. */
  retries?: number;
  /** What robots.txt means. */
  robots?: "ignore" | "obey" | null;
  /** Which pages are kept, and where. */
  cache?: "off" | "through" | "back" | "around" | null;
  /** A kept page not older than this serves. */
  max_age_seconds?: number | null;
  /** To connect, TLS included; at most `http.connect_seconds`. */
  connect_seconds?: number | null;
  /** For one request with all its redirects; at most `http.total_seconds`. */
  request_seconds?: number | null;
  /** Browser to look like. */
  profile?: "chrome" | "firefox" | "safari" | "none" | null;
  /** Name of a pool; `none` for no proxy. */
  proxy?: string | null;
  /** Where the exit is, as two letters. */
  country?: string | null;
  /** Its state, as two letters; needs a country. */
  state?: string | null;
  /** Its city; needs a country. */
  city?: string | null;
  /** Whether a block leads to other profiles, proxies and the solver. */
  escalate?: boolean | null;
  /** Whether residential and unlocking proxies may be used; default: yes. */
  allow_residential?: boolean | null;
  /** Whether captchas may be solved: not, by the local model, by the vendor as well. */
  captcha?: "off" | "local" | "vendor" | null;
  /** Personal data to mask in what the run leaves, with commas between: `email`, `phone`, `card`, `national_id`, `ip`, `own` (the operator's patterns); `none` for nothing. */
  mask?: string | null;
  /** Replace by the kind alone, or with a token that is the same for the same value. */
  mask_as?: "mask" | "hash" | null;
  /** Where it is masked, with commas between: `results` (and with them exports, snapshots and webhooks), `logs` (and errors, progress and `explain`), `html`, other `artifacts`, and files that are exported (`exports`, which leaves the results as they are); default: everywhere. */
  mask_in?: string | null;
  /** What the whole job may use up; then it is paused. */
  budget?: Budget;
  /** How long to wait before each further attempt. */
  backoff?: Backoff;
  /** How long what it leaves is kept, in days after its end. */
  retention?: KeepDays;
  /** `run`: a child for every item; `job`: a child serves many items of the job, much quicker. */
  isolation?: "run" | "job";
  /** Items begun a second; null: as workers take them. */
  rate?: number | null;
  /** Items that may begin at once after a rest. */
  burst?: number;
  /** Items out at once; null: as workers take them. */
  concurrency?: number | null;
  /** Pauses the job when too many items fail. */
  breaker?: Breaker;
  /** Wall clock of the whole job from its first item, pauses included; then items that have not begun are cancelled, and with them the job. */
  max_seconds?: number | null;
  /** What one item may use up; then it ends as `fetch_budget`. */
  item_budget?: Budget;
  /** `objects`: every item's data is an object of its own, by the key layout. */
  results?: "rows" | "objects";
  /** Whether the page that an item fetched last is kept. */
  keep_html?: boolean;
  /** Error statuses that are a result for built-in scrapers of pages. Otherwise 404 and 410 end as `gone`, the rest as `fetch_status`; 408, 425, 429 and 5xx are tried again. */
  accept_status?: Array<number>;
  /** Scripts add no items by `ctx.enqueue` once the job has so many. */
  max_items?: number;
  /** Nor items that are more than so many steps from the job's own list. */
  max_depth?: number;
  /** Null: pages are remembered if a diff export is wished for. */
  snapshots?: Snapshots | null;
};

/** What one sink has of a job. */
export type JobSinkDocument = {
  /** Name of the sink. */
  sink: string;
  /** `active`: delivered as items end, or tried again; `done`: has all; `failed`: given up. */
  state: SinkState;
  /** Records that it took; those of items that ran again count again. */
  delivered: number;
  /** Records that it can never take. */
  failed: number;
  /** Items that have ended and are not delivered yet. */
  behind: number;
  /** Failed attempts in a row. */
  attempts: number;
  /** Of the attempt or record that failed last. */
  last_error: string | null;
  /** When it took something last. */
  delivered_at: string | null;
  /** Since when no attempt succeeded; null: the last one did. */
  failing_since: string | null;
  /** When it is looked at next; null unless it is active. */
  next_at: string | null;
};

/** Where a job stands. */
export type JobStatus = "creating" | "running" | "paused" | "cancelling" | "finishing" | "completed" | "cancelled" | "failed";

/** Jobs that are not final. */
export type JobsCount = {
  /** Number of jobs by status. */
  by_status: Record<string, number>;
  /** Of all of them together. */
  items: CountsDocument;
  /** By all of them together. */
  solver: SolverCount;
  /** Whether there are more than were counted. */
  more: boolean;
};

/** Records of a Kafka topic, each an item. */
export type KafkaItems = {
  /** The topic, on the cluster that the operator names; one that jobs may read. */
  topic: string;
  /** Consumer group: the job begins where it stands, and moves it on when the job has its items, so that the next job continues. Use it for one job at a time. */
  group?: string;
  /** Where to begin in a partition in which the group, if any, has no position. */
  start?: "earliest" | "latest";
  /** First offset by partition, instead of `start`. */
  offsets?: Record<string, unknown>;
  /** Records read at most. */
  limit?: number | null;
  /** Read on until no record came for this long; 0: up to the end of the topic as it is now. Needs a limit. */
  idle_seconds?: number;
};

/** How long what it leaves is kept, in days after its end; null: as the operator set it. */
export type KeepDays = {
  /** The run or job with all it left. */
  days?: number | null;
  /** Results; of a job its manifests, changes and exports too. */
  results_days?: number | null;
  /** Artifacts that are not HTML. */
  artifacts_days?: number | null;
  /** Artifacts that are HTML, kept pages too. */
  html_days?: number | null;
  /** What scripts wrote. */
  logs_days?: number | null;
};

/** A key to make. */
export type KeyCall = {
  /** What people call the key. */
  name: string;
  /** Who owns what is created with it; default: the name of the key. */
  client?: string | null;
  /** What it may do. */
  role: Role;
  /** Patterns of the scrapers that it may call; [] for all. */
  scrapers?: Array<string>;
  /** Days until it ends; null: never. */
  expires_days?: number | null;
  /** How much its client may ask for. */
  limits?: LimitsCall;
};

/** A key, without its secret, which nobody knows but who made it. */
export type KeyDocument = {
  /** Owns what is created with the key; empty while nobody is asked for one. */
  client: string;
  /** What the caller may do. */
  role: Role;
  /** Patterns of the scrapers that it may call; [] for all. */
  scrapers: Array<string>;
  /** How much the client may ask for. */
  limits: ClientLimits;
  /** Its id. */
  id: string;
  /** What people call the key. */
  name: string;
  /** When it was created. */
  created_at: string;
  /** When it ends; null: never. */
  expires_at: string | null;
  /** When it was revoked; null: it was not. */
  revoked_at: string | null;
  /** The key that replaces it; null: none. */
  replaced_by: string | null;
  /** To the minute; null: never. */
  last_used_at: string | null;
  /** Whether calls may use it now. */
  usable: boolean;
};

/** Every key, the newest first. */
export type KeysDocument = {
  /** The keys. */
  keys: Array<KeyDocument>;
};

/** What waits in one lane of the queue. */
export type LaneDocument = {
  /** Which workers take it. */
  lane: string;
  /** `high` is taken before `normal`, and `normal` before `low`. */
  priority: Priority;
  /** How many wait. */
  waiting: number;
};

/** What waits in one lane, and who takes it. */
export type LaneScaleDocument = {
  /** Which workers take it. */
  lane: string;
  /** Seconds that the workers of the lane need for what waits. */
  queued_seconds: number;
  /** Seconds that a single slot would need for it. */
  slot_seconds: number;
  /** Runs that wait in the queue. */
  runs: number;
  /** Items of jobs that wait and may run now. */
  items: number;
  /** What a run takes of a slot, lately; 1 is assumed where none has been measured. */
  seconds_per_run: number;
  /** What an item takes of a slot, lately; 1 is assumed where none has been measured. */
  seconds_per_item: number;
  /** False if something waits of which no worker has measured yet how long it takes: the numbers are then a guess, and right themselves as soon as some of it has ended. */
  measured: boolean;
  /** Workers that take from this lane and do not drain. */
  workers: number;
  /** Slots of those workers. */
  slots: number;
};

/** What was used of what was allowed. */
export type LimitDocument = {
  /** Which limit it is. */
  name: string;
  /** What the run used. */
  used: number;
  /** What the run may use at most. */
  allowed: number;
  /** Share in percent. */
  percent: number;
};

/** How much a client may ask for. 0: no limit. */
export type LimitsCall = {
  /** Calls per second. */
  rate?: number;
  /** Runs at once. */
  concurrency?: number;
  /** Megabytes of one call's body, within what the gateway takes. */
  body_mb?: number;
  /** Of each day, in UTC. */
  daily?: BudgetCall;
  /** Of each month, in UTC. */
  monthly?: BudgetCall;
};

/** What one run may use before it is ended from outside. */
export type LimitsDocument = {
  /** Maximum seconds of real time. */
  wall_seconds: number;
  /** Maximum CPU seconds. */
  cpu_seconds: number;
  /** Maximum megabytes of memory. */
  memory_mb: number;
  /** Maximum megabytes on disk. */
  disk_mb: number;
  /** Maximum megabytes of the result and records. */
  output_mb: number;
  /** Maximum kilobytes of logs; the rest is cut. */
  log_kb: number;
  /** Maximum megabytes of artifacts. */
  artifact_mb: number;
  /** Maximum threads and processes. */
  threads: number;
  /** Maximum fetches. */
  fetches: number;
};

/** What a link opens. */
export type LinkCall = {
  /** Path and query of a download or a stream, as answers name it. */
  path: string;
  /** How long it can be opened. */
  seconds?: number;
};

/** A link that a browser can open. */
export type LinkDocument = {
  /** Path and query, with a signature. */
  url: string;
  /** Until when it can be opened. */
  expires_at: string;
};

/** Where to go from here. */
export type Links = {
  /** This document. */
  self: string;
  /** What the script wrote. */
  logs: string;
  /** Live events of the run. */
  events: string;
  /** Where the time went. */
  explain: string;
  /** Files that the run kept. */
  artifacts: string;
};

/** The records of a listing page and of the pages after it, found without selectors. */
export type ListResult = {
  /** As asked. */
  url: string;
  /** What the site answered for the first page. */
  status: number;
  /** In the order of the pages, without what an earlier page had. What a record lacks is null. */
  records: Array<Record<string, unknown>>;
  /** By field: its kind, and its place in a record. */
  columns: Record<string, unknown>;
  /** The pages that were read, each with its number of new records. */
  pages: Array<{
  url: string;
  records: number;
}>;
  /** Where the list goes on; null if it was read to its end. */
  next_page: string | null;
  /** Whether the list was read to its end. */
  complete: boolean;
  /** Why it stopped: no page follows; the button that loads more is gone; a page or a press brought nothing new; there is a button, and `more` does not say to press it; a limit of pages, records or time; a page or a press failed. */
  stopped: "end" | "button_gone" | "no_new_records" | "not_pressed" | "pages" | "limit" | "seconds" | "failed";
  /** What could not be read, and why. */
  warnings: Array<string>;
};

/** The process answers. */
export type LiveDocument = {
  /** Always true. */
  alive: true;
};

/** How busy the cluster was. Minutes in which no dispatcher led are missing. */
export type LoadHistoryDocument = {
  /** One for each minute, the oldest first. */
  samples: Array<LoadSampleDocument>;
};

/** How busy the cluster was in one minute. */
export type LoadSampleDocument = {
  /** When the minute began. */
  at: string;
  /** Slots that run something now. */
  busy: number;
  /** How many runs and items run at once. */
  slots: number;
  /** Workers that were alive. */
  workers: number;
  /** How many wait. */
  waiting: number;
  /** Seconds that the oldest of what waited had waited, by lane. */
  lanes: Record<string, number>;
  /** Runs that were not final. */
  runs: number;
  /** Items of jobs that were queued or ran. */
  items: number;
  /** Runs and items that ended in the minute before; null: nobody counted them. */
  ended: number | null;
};

/** One line a script wrote. */
export type LogLineDocument = {
  /** After the script began. */
  at_ms: number;
  /** stdout, stderr or log. */
  stream: string;
  /** The line. */
  text: string;
  /** Level of the line: debug, info, warning, error. */
  level: string;
  /** Fields that the script logged. */
  fields: Record<string, unknown>;
};

/** What the last recorded attempt wrote. */
export type LogsDocument = {
  /** Its id. */
  id: string;
  /** Lines in the order they were written. */
  lines: Array<LogLineDocument>;
  /** Whether lines beyond the scraper's log limit were dropped. */
  cut: boolean;
};

/** The parts of one manifest. */
export type ManifestDocument = {
  /** How many items it has. */
  items: number;
  /** The parts, in order. */
  parts: Array<PartDocument>;
};

/** One part of a manifest, as it is kept. */
export type ManifestPartDocument = {
  /** The job's id. */
  job_id: string;
  /** Which manifest: `full`, `success` or `errors`. */
  manifest: string;
  /** Number of the part, from 1. */
  part: number;
  /** How many items it has. */
  items: number;
  /** Items by status. */
  counts: Record<string, number>;
  /** SHA-256 of the array `entries` as it stands here. */
  digest: string;
  /** One entry for each item. */
  entries: Array<Record<string, unknown>>;
};

/** The URLs of a site to list. */
export type MapCall = {
  /** One must fit, if any. */
  include?: Array<string>;
  /** None may fit. */
  exclude?: Array<string>;
  /** A page of the site. */
  url: string;
  /** Maximum URLs. */
  limit?: number;
  /** Which URLs are listed: of the same host, site, or below the path. */
  scope?: "host" | "site" | "path" | "any";
  /** Only URLs that contain this word. */
  search?: string;
  /** Whether the site's sitemaps are read. */
  sitemap?: boolean;
  /** Seconds to wait for the end; 0 answers at once with a handle. */
  wait?: number | null;
};

/** A value at a time. */
export type MetricPoint = {
  /** When it was measured. */
  timestamp: string;
  /** The value. */
  value: number;
};

/** One number over time. */
export type MetricSeries = {
  /** Its name. */
  name: "bytes" | "bytes_per_second" | "bytes_received" | "flaresolverr_success_rate" | "items" | "items_per_second" | "requests" | "solver_calls" | "solver_successes";
  /** `state` of `items`, `class` of `bytes`; else none. */
  labels: Record<string, string>;
  /** Values in the order of time. */
  points: Array<MetricPoint>;
};

/** Where to point a channel. */
export type MoveCall = {
  /** A version that is there. */
  version: string;
};

/** One move. */
export type MoveDocument = {
  /** The channel that was moved. */
  channel: string;
  /** Empty: it was where the repository says. */
  before: string;
  /** Empty: the move was taken back. */
  after: string;
  /** When it was moved. */
  moved_at: string;
};

/** A key that was made just now. */
export type NewKeyDocument = {
  /** Owns what is created with the key; empty while nobody is asked for one. */
  client: string;
  /** What the caller may do. */
  role: Role;
  /** Patterns of the scrapers that it may call; [] for all. */
  scrapers: Array<string>;
  /** How much the client may ask for. */
  limits: ClientLimits;
  /** Its id. */
  id: string;
  /** What people call the key. */
  name: string;
  /** When it was created. */
  created_at: string;
  /** When it ends; null: never. */
  expires_at: string | null;
  /** When it was revoked; null: it was not. */
  revoked_at: string | null;
  /** The key that replaces it; null: none. */
  replaced_by: string | null;
  /** To the minute; null: never. */
  last_used_at: string | null;
  /** Whether calls may use it now. */
  usable: boolean;
  /** Send it with each call. It is shown this once. */
  secret: string;
};

/** One page: title, meta, headings, links, text, markdown, structured data, product. */
export type PageResult = {
  /** What the site answered; an error status is a failure in a job. */
  status: number;
  /** As asked. */
  url: string;
  /** After redirects. */
  final_url: string;
  /** Media type of the page. */
  content_type: string | null;
  /** Bytes of the page, decompressed. */
  size: number;
  /** URLs that redirected, in order; empty if the first answered. */
  redirects: Array<string>;
  /** Media type of the page. */
  title: string | null;
  /** Media type of the page. */
  description: string | null;
  /** The first; `headings` has all. */
  h1: string | null;
  /** Media type of the page. */
  canonical: string | null;
  /** Media type of the page. */
  language: string | null;
  /** Media type of the page. */
  keywords: string | null;
  /** `meta` and `header` as they are, `index` and `follow` as they are meant. */
  robots: Record<string, unknown> | null;
  /** `language` and `url` of each alternate. */
  hreflang: Array<Record<string, unknown>> | null;
  /** OpenGraph properties. */
  opengraph: Record<string, unknown> | null;
  /** Properties of the Twitter card. */
  twitter: Record<string, unknown> | null;
  /** All other `<meta>` elements by their name. */
  meta: Record<string, unknown> | null;
  /** `h1` and `h2`, in order. */
  headings: Record<string, unknown> | null;
  /** Who wrote it: from structured data, meta elements or the byline. */
  authors: Array<string> | null;
  /** When it was published, in ISO 8601: from the same, time elements or the address. */
  published: string | null;
  /** When it was changed last, as the page says. */
  modified: string | null;
  /** Words that a reader sees. */
  word_count: number | null;
  /** SHA-256 of the visible words; changes when they do, not when the markup does. */
  text_hash: string | null;
  /** The main part of the page; all of it with `only_main` false. */
  markdown: string | null;
  /** The page without scripts, styles and tracking, with absolute links. */
  html: string | null;
  /** The page as it came, decoded. */
  raw_html: string | null;
  /** What a reader sees, one line for each block. */
  text: string | null;
  /** Where the page's links lead, each once. */
  links: Array<string> | null;
  /** Links with `text`, `rel` and `internal`. */
  anchors: Array<Record<string, unknown>> | null;
  /** `url` and `alt`. */
  images: Array<Record<string, unknown>> | null;
  /** `json_ld`, `microdata` and `rdfa` as lists of items, `opengraph` as a table. */
  structured: Record<string, unknown> | null;
  /** Null also when the page shows no product. */
  product: {
  /** Media type of the page. */
  name: string | null;
  /** How surely the page is about this product: 0.5 to 1. Below that there is no product. */
  confidence: number;
  /** What it costs now. */
  price: number | null;
  /** ISO 4217 code. */
  currency: string | null;
  /** What it cost before, where that is published. */
  list_price: number | null;
  /** The upper end, where the price is a range. */
  high_price: number | null;
  availability: "InStock" | "OutOfStock" | null;
  /** schema.org's word: `PreOrder`, `LimitedAvailability`, … */
  availability_detail: string | null;
  /** Media type of the page. */
  sku: string | null;
  /** EAN, UPC or ISBN-13 with a right check digit. */
  gtin: string | null;
  /** Media type of the page. */
  mpn: string | null;
  /** Media type of the page. */
  brand: string | null;
  /** Media type of the page. */
  category: string | null;
  /** Media type of the page. */
  condition: string | null;
  /** Media type of the page. */
  description: string | null;
  breadcrumbs: Array<string>;
  images: Array<string>;
  attributes: Record<string, string>;
  rating: Record<string, unknown> | null;
  variants: Array<Record<string, unknown>>;
  /** Where each answer is from: json-ld, microdata, rdfa, opengraph, script, attributes, page, url, assumed. */
  sources: Record<string, string>;
} | null;
  /** The main text, as text and Markdown, with title, authors, dates and language. */
  article: Record<string, unknown> | null;
  /** The page's head in one table: title, description, canonical, opengraph, … */
  metadata: Record<string, unknown> | null;
  /** `caption`, `header`, `rows` and `markdown`; spanning cells repeated. */
  tables: Array<Record<string, unknown>> | null;
  /** The main list of the page: `records`, `columns` with the place of each field, and `more_button`, a selector of the button without an address that loads more, or null. Null if there is no list. */
  records: Record<string, unknown> | null;
  /** Where the list goes on; null on its last page. */
  next_page: string | null;
  /** The content of a JSON document or of a feed; null for any other page. */
  data: unknown;
  /** Parts that could not be read, and why; they are null. */
  warnings: Array<string>;
  /** `name` and `value` of each header of the answer, in order; values of cookies are hidden. Only on request. */
  headers?: Array<Record<string, unknown>>;
};

/** One part of a manifest. */
export type PartDocument = {
  /** Number of the part, from 1. */
  part: number;
  /** How many items it has. */
  items: number;
  /** Size in bytes. */
  bytes: number;
  /** SHA-256 of the file; null until it is done. */
  sha256: string;
  /** Where to get it. */
  href: string;
};

/** A change of a pattern. */
export type PatternCall = {
  /** New rules, whole, as `pattern` shows them; they become the next version. */
  pattern?: Record<string, unknown> | null;
  /** `stale`: it is not used, and learned anew from the next answered pages. */
  status?: "ready" | "stale" | null;
};

/** A learned pattern: how the fields of one kind of page are read. */
export type PatternDocument = {
  /** Its id. */
  id: string;
  /** Registrable domain. */
  site: string;
  /** Whose pages taught it; others do not use it. */
  client: string;
  /** Names of the wanted fields. */
  fields: Array<string>;
  /** `learning`: it needs more answered pages; `stale`: the site changed, it is learned anew. */
  status: "learning" | "ready" | "stale";
  /** 0: nothing is learned yet. */
  version: number;
  /** Answered pages that it was learned from. */
  examples: number;
  /** How it is doing. */
  health: PatternHealthDocument;
  /** When it was created. */
  created_at: string;
  /** When it was last learned or edited. */
  changed_at: string;
};

/** How a pattern is doing, since its version. */
export type PatternHealthDocument = {
  /** Pages that it read. */
  pages: number;
  /** Those of them for which a model was asked as well. */
  asked: number;
  /** By field: the share of pages where it was found. */
  fill_rates: Record<string, number>;
  /** When it last read a page; null: never. */
  used_at: string | null;
};

/** One page of the listing. */
export type PatternPageDocument = {
  /** Learned patterns. */
  patterns: Array<PatternDocument>;
  /** Give it as `cursor` for the next page; null on the last. */
  next_cursor: string | null;
};

/** One version of a pattern. */
export type PatternVersionDocument = {
  /** Its version. */
  version: number;
  /** Who made it. */
  origin: "edited" | "learned";
  /** When it was made. */
  made_at: string;
};

/** What a route asks for. */
export type Permission = "admin" | "hook" | "known" | "open" | "platform:read" | "platform:write" | "work:read" | "work:write";

/** One stretch of a run's time. */
export type PhaseDocument = {
  /** Which phase it is. */
  name: string;
  /** Milliseconds that it took. */
  ms: number;
  /** Share in percent. */
  percent: number;
};

/** How hard to try, and how. What is not given is as the scraper's manifest says, then as the operator set it. */
export type Policy = {
  /** Shortens the scraper's own wall clock, never lengthens it. */
  timeout_seconds?: number | null;
  /** Further attempts after the first. */
  retries?: number;
  /** What robots.txt means. */
  robots?: "ignore" | "obey" | null;
  /** Which pages are kept, and where. */
  cache?: "off" | "through" | "back" | "around" | null;
  /** A kept page not older than this serves. */
  max_age_seconds?: number | null;
  /** To connect, TLS included; at most `http.connect_seconds`. */
  connect_seconds?: number | null;
  /** For one request with all its redirects; at most `http.total_seconds`. */
  request_seconds?: number | null;
  /** Browser to look like. */
  profile?: "chrome" | "firefox" | "safari" | "none" | null;
  /** Name of a pool; `none` for no proxy. */
  proxy?: string | null;
  /** Where the exit is, as two letters. */
  country?: string | null;
  /** Its state, as two letters; needs a country. */
  state?: string | null;
  /** Its city; needs a country. */
  city?: string | null;
  /** Whether a block leads to other profiles, proxies and the solver. */
  escalate?: boolean | null;
  /** Whether residential and unlocking proxies may be used; default: yes. */
  allow_residential?: boolean | null;
  /** Whether captchas may be solved: not, by the local model, by the vendor as well. */
  captcha?: "off" | "local" | "vendor" | null;
  /** Personal data to mask in what the run leaves, with commas between: `email`, `phone`, `card`, `national_id`, `ip`, `own` (the operator's patterns); `none` for nothing. */
  mask?: string | null;
  /** Replace by the kind alone, or with a token that is the same for the same value. */
  mask_as?: "mask" | "hash" | null;
  /** Where it is masked, with commas between: `results` (and with them exports, snapshots and webhooks), `logs` (and errors, progress and `explain`), `html`, other `artifacts`, and files that are exported (`exports`, which leaves the results as they are); default: everywhere. */
  mask_in?: string | null;
  /** What the run may use in all. */
  budget?: Budget;
  /** How long to wait before each further attempt. */
  backoff?: Backoff;
  /** How long what it leaves is kept, in days after its end. */
  retention?: KeepDays;
  /** `run`: a child of its own, even if the scraper's manifest says `warm`. */
  isolation?: "run" | null;
};

/** What a call that does not say gets. Null and empty: the platform's own default. */
export type PolicyDefaults = {
  /** Further attempts; null: the platform's default. */
  retries: number | null;
  /** Seconds that a run may take; null: the scraper's limit. */
  timeout_seconds: number | null;
  /** `high` is taken before `normal`, and `normal` before `low`. */
  priority: string;
  /** The keys of a call's `policy` that are about fetching. */
  fetching: Record<string, unknown>;
};

/** A pool, whole. Of a pool that is there, `urls` and `password` may be left out: they stay as they are. */
export type PoolCall = {
  /** A plain list, or a vendor's template. */
  kind?: "list" | "brightdata";
  /** What it costs: its place among the tiers. */
  proxy_class?: "datacenter" | "residential" | "unlocker";
  /** http, https, socks5 or socks5h URLs, with credentials. For a list. */
  urls?: Array<string> | null;
  /** Vendor's endpoint, host:port; empty: its usual one. */
  host?: string;
  /** Vendor's account. */
  customer?: string;
  /** Vendor's zone. */
  zone?: string;
  /** Vendor's password for the zone. */
  password?: string | null;
  /** Exit country, unless a policy names another. */
  country?: string;
  /** When another exit is taken. */
  rotation?: "request" | "session" | "site";
  /** Exits of a vendor's zone that are used in turn. */
  exits?: number;
  /** How long a proxy that failed rests. */
  cooldown_seconds?: number;
  /** PEM file on the workers, of authorities trusted through this pool. */
  ca_file?: string | null;
};

/** A pool, without its secrets. */
export type PoolDocument = {
  /** Its name. */
  name: string;
  /** 1 is the cheapest; blocks lead to the next. */
  tier: number;
  /** Whether it is from the settings or was made by the API. */
  source: "api" | "settings";
  /** A plain list, or a vendor's template. */
  kind: "brightdata" | "list";
  /** What kind of proxies they are; it decides what a page costs. */
  proxy_class: "datacenter" | "residential" | "unlocker";
  /** When another exit is taken. */
  rotation: "request" | "session" | "site";
  /** Country of the exit; empty: any. */
  country: string;
  /** How many there are to choose from. */
  exits: number;
  /** host:port, at most 100 of them. */
  endpoints: Array<string>;
  /** The vendor's account. */
  customer: string;
  /** The vendor's zone. */
  zone: string;
  /** Seconds that a proxy rests after a failure. */
  cooldown_seconds: number;
  /** PEM file on the workers, of authorities trusted through this pool. */
  ca_file: string | null;
  /** Null for a pool of the settings. */
  changed_at: string | null;
  /** Of workers that told lately. */
  health: Array<RestingDocument>;
  /** Since midnight UTC. */
  today: UseDocument;
  /** Of the last 30 days. */
  month: UseDocument;
};

/** Every pool, the cheapest first, and what all fetches received in the last 30 days. */
export type PoolsDocument = {
  /** Pools of proxies. */
  pools: Array<PoolDocument>;
  /** Traffic of today, by class of proxy. */
  by_class: Array<ClassUseDocument>;
};

/** A worker takes `high` before `normal` before `low`; some slots are kept for `high` alone. */
export type Priority = "high" | "normal" | "low";

/** Why a call was not answered as asked (RFC 9457). `code` is stable. */
export type Problem = {
  /** A URN that ends in `code`. */
  type: string;
  /** What kind of problem it is, in words. */
  title: string;
  /** The HTTP status of the answer. */
  status: number;
  /** What was wrong in this case. */
  detail: string;
  /** Stable name of the problem, for programs. */
  code: string;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  /** What to do about it. */
  remedy: string;
  /** Places that are not valid. */
  errors?: Array<Record<string, string>>;
  /** Rows that cannot be used. */
  rows?: Array<Record<string, unknown>>;
  /** How many rows cannot be used. */
  count?: number;
};

/** One product: name, price, availability, codes, brand, category, images, attributes. */
export type ProductResult = {
  /** What the site answered; an error status is a failure in a job. */
  status?: number;
  /** As asked. */
  url?: string;
  /** After redirects. */
  final_url?: string;
  /** Media type of the page. */
  content_type?: string | null;
  /** Bytes of the page, decompressed. */
  size?: number;
  /** URLs that redirected, in order; empty if the first answered. */
  redirects?: Array<string>;
  /** Media type of the page. */
  title?: string | null;
  /** SHA-256 of the visible words. */
  text_hash?: string | null;
  /** Null when the page shows no product. */
  product?: {
  /** Media type of the page. */
  name: string | null;
  /** How surely the page is about this product: 0.5 to 1. Below that there is no product. */
  confidence: number;
  /** What it costs now. */
  price: number | null;
  /** ISO 4217 code. */
  currency: string | null;
  /** What it cost before, where that is published. */
  list_price: number | null;
  /** The upper end, where the price is a range. */
  high_price: number | null;
  availability: "InStock" | "OutOfStock" | null;
  /** schema.org's word: `PreOrder`, `LimitedAvailability`, … */
  availability_detail: string | null;
  /** Media type of the page. */
  sku: string | null;
  /** EAN, UPC or ISBN-13 with a right check digit. */
  gtin: string | null;
  /** Media type of the page. */
  mpn: string | null;
  /** Media type of the page. */
  brand: string | null;
  /** Media type of the page. */
  category: string | null;
  /** Media type of the page. */
  condition: string | null;
  /** Media type of the page. */
  description: string | null;
  breadcrumbs: Array<string>;
  images: Array<string>;
  attributes: Record<string, string>;
  rating: Record<string, unknown> | null;
  variants: Array<Record<string, unknown>>;
  /** Where each answer is from: json-ld, microdata, rdfa, opengraph, script, attributes, page, url, assumed. */
  sources: Record<string, string>;
} | null;
  /** Parts that could not be read, and why; they are null. */
  warnings?: Array<string>;
};

/** The uploads of a project that are there. */
export type ProjectDocument = {
  /** The site of its scrapers. */
  project: string;
  /** Versions of its scrapers, oldest first. */
  versions: Array<string>;
};

/** Whether calls can be taken now. */
export type ReadyDocument = {
  /** Always true; while calls cannot be taken the answer is a 503. */
  ready: true;
};

/** Which items are run again, and how. An item must fit every filter that is given. */
export type RedriveCall = {
  /** Default: errors, and whatever was cancelled. */
  statuses?: Array<"success" | "error" | "cancelled"> | null;
  /** Any of these. */
  exit_reasons?: Array<ExitReason> | null;
  /** Registrable domains, any of these. */
  sites?: Array<string> | null;
  /** Statuses of the last page that an item fetched, any of these. */
  http_statuses?: Array<number> | null;
  /** Items by their ids, any of these. */
  keys?: Array<string> | null;
  /** Run them by this version from now on; pinned to one version now. */
  scraper?: string | null;
  /** Changes of the job's policy; the rest stays as it is. */
  policy?: JobPolicyCall | null;
};

/** What is run again. */
export type RedrivenDocument = {
  /** Items that are run again. */
  items: number;
  /** The job. */
  job: JobDocument;
};

/** How the pool does in one worker. */
export type RestingDocument = {
  /** The worker's id. */
  worker: string;
  /** Exits that the worker knows. */
  exits: number;
  /** Exits that rest after a failure. */
  resting: number;
  /** Of exits that rest, at most 50. */
  names: Array<string>;
};

/** What a job came to. */
export type ResultsDocument = {
  /** Its id. */
  id: string;
  /** Where it stands. */
  status: JobStatus;
  /** Items by status. */
  counts: CountsDocument;
  /** Null until the manifests are written. */
  exit_reasons: Record<string, number> | null;
  /** Items by the HTTP status of their last page. Null until the manifests are written. */
  http_statuses: Record<string, number> | null;
  /** Seconds from start to end; null while the job runs. */
  duration_seconds: number | null;
  /** Whether every item is in the manifests; false while the job runs or they are written. */
  complete: boolean;
  /** Those that exist: `full`, `success`, `errors`. A job with `results` `objects` has them while it runs: a part is listed when the last of its items has ended. */
  manifests: Record<string, ManifestDocument>;
};

/** What an identity may do; the gateway's table of permissions says it route by route. */
export type Role = "client" | "viewer" | "operator" | "admin";

/** What answers here. */
export type RootDocument = {
  /** The process answers; `/api/health` tells more. */
  status: "ok";
  /** Always `scrapeyard`. */
  service: string;
  /** Its version. */
  version: string;
  /** The reference of the API, for a browser. */
  docs: string;
  /** The OpenAPI document. */
  api: string;
  /** The state of every dependency. */
  health: string;
};

/** How a key is replaced. */
export type RotateCall = {
  /** Seconds that the old key works on. */
  overlap_seconds?: number;
};

/** What became of the list that came with the call. */
export type RowsDocument = {
  /** Rows that can be used; some may be the same item. */
  taken: number;
  /** Rows that cannot be used. */
  bad: number;
  /** At most 100. */
  first_bad: Array<BadRowDocument>;
};

/** A run. */
export type RunDocument = {
  /** Its id. */
  id: string;
  /** Where it stands. */
  status: RunStatus;
  /** The scraper, as `site/task`. */
  scraper: string;
  /** What ran; before that, what was asked for; null: the newest. */
  version: string | null;
  /** Of the content that ran; null before that, and for a built-in scraper. */
  digest: string | null;
  /** What the scraper is called with. */
  input: Record<string, unknown>;
  /** Why it ended; null while it has not. */
  exit_reason: ExitReason | null;
  /** It failed, and `result` has the records that the script yielded before. */
  partial: boolean;
  /** Why it failed; null: it did not. */
  error: ErrorDocument | null;
  /** What it used; null before the end. */
  usage: UsageDocument | null;
  /** Where the time went; null before the end. */
  timing: TimingDocument | null;
  /** Which attempt this is, from 1. */
  attempt: number;
  /** Null: the row is broken, and its time cannot be told. */
  created_at: string | null;
  /** Of a queued run that was put back, for another attempt or until its site's turn: when it is due. */
  starts_at: string | null;
  /** When it started; null: not yet. */
  started_at: string | null;
  /** When it ended; null while it has not. */
  finished_at: string | null;
  /** How far the script says that it is, about a second old; null if it does not tell. */
  progress: RunProgress | null;
  /** What it waits for now, about a second old; null if it does not wait. */
  waiting: WaitDocument | null;
  /** Files that were kept. */
  artifacts: Array<ArtifactDocument>;
  /** When retention removed its `results`, `artifacts`, `html` or `logs`. */
  swept: Record<string, string>;
  /** Where to go from here. */
  links: Links;
  /** @deprecated Another name of `input.url`. */
  url?: string | null;
  /** @deprecated Another name of `error.message`. */
  error_message?: string | null;
  /** @deprecated Another name of `finished_at, started_at or created_at, the last that is set`. */
  updated_at?: string | null;
  /** What the scraper returned; null before the end and for a skip. Of a failed run: the records that the script yielded before, or null. */
  result: PageResult | ProductResult | SelectResult | ListResult | unknown;
};

/** Several runs that have all ended, each saying how. */
export type RunDocuments = {
  /** The runs. */
  runs: Array<RunDocument>;
};

/** One page of the listing, newest first. */
export type RunPageDocument = {
  /** The runs. */
  runs: Array<Summary>;
  /** Give it as `cursor` for the next page; null on the last. */
  next_cursor: string | null;
};

/** A run that ended badly, told to the call that waited for it. */
export type RunProblem = {
  /** A URN that ends in `code`. */
  type: string;
  /** What kind of problem it is, in words. */
  title: string;
  /** The HTTP status of the answer. */
  status: number;
  /** What was wrong in this case. */
  detail: string;
  /** Stable name of the problem, for programs. */
  code: string;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  /** What to do about it. */
  remedy: string;
  /** Places that are not valid. */
  errors?: Array<Record<string, string>>;
  /** Rows that cannot be used. */
  rows?: Array<Record<string, unknown>>;
  /** How many rows cannot be used. */
  count?: number;
  /** The run. */
  id?: string;
  /** The scraper, as `site/task`. */
  scraper?: string;
  /** Its version. */
  version?: string | null;
  /** SHA-256 of the scraper's content. */
  digest?: string | null;
  /** Why the run ended. */
  exit_reason?: ExitReason;
  /** Whether the run left records: GET `links.self` has them. */
  partial?: boolean;
  /** Why it failed; null: it did not. */
  error?: ErrorDocument | null;
  /** Where to go from here. */
  links?: Links;
  /** Of a call with `urls`. */
  runs?: Array<Handle>;
};

/** How far a script says that it is. */
export type RunProgress = {
  /** How much is done. */
  done: number;
  /** Of how much; null: the script does not know. */
  total: number | null;
  /** What the script says of it. */
  message: string;
};

/** Where a run stands. */
export type RunStatus = "queued" | "running" | "succeeded" | "failed" | "cancelled";

/** Who is told when a run ends. */
export type RunWebhookCall = {
  /** Where to; private addresses are refused unless the operator allows them. */
  url: string;
  /** What is told. */
  events?: Array<"run.succeeded" | "run.failed" | "run.cancelled">;
  /** Signs what is sent, never shown; default: the operator's. */
  secret?: string | null;
};

/** How many workers the waiting work needs, for programs that start and stop workers. */
export type ScaleDocument = {
  /** As it was asked. */
  target_seconds: number;
  /** Workers needed for what waits to begin within `target_seconds`, and for what runs now. 0 only if nothing waits and nothing runs. */
  wanted_workers: number;
  /** Workers that take from one of the lanes and do not drain. */
  workers: number;
  /** Slots of those workers. */
  slots: number;
  /** Of them, slots that run something now. */
  busy: number;
  /** On average. While no worker is alive: `worker.slots` of the gateway's settings. */
  slots_per_worker: number;
  /** Of the lane where work waits longest. */
  queued_seconds: number;
  /** Whether it is for every lane. */
  measured: boolean;
  /** Every lane that was asked for, by name. */
  lanes: Array<LaneScaleDocument>;
};

/** What is to be started when. Give one of `cron` and `every_seconds`, and one of `job` and `scrape`. */
export type ScheduleCall = {
  /** Name to show in lists. */
  name?: string;
  /** Minute, hour, day, month, weekday, in the time zone; names and `@daily`, `@hourly`, … are understood. */
  cron?: string | null;
  /** Seconds from one start to the next; instead of `cron`. */
  every_seconds?: number | null;
  /** For `cron`: a name such as `Europe/Berlin`. */
  time_zone?: string;
  /** Each start is late by up to so many seconds, always the same for the same time. */
  jitter_seconds?: number;
  /** What is done when the last one still goes on: `skip`, `queue` until it has ended, or `cancel_previous`. */
  overlap?: "skip" | "queue" | "cancel_previous";
  /** What is done about times when no dispatcher worked: `skip` them, `run_once`, or `run_all` (the last 100). */
  missed?: "skip" | "run_once" | "run_all";
  /** Whether it waits for /resume. */
  paused?: boolean;
  /** As `POST /api/jobs` takes it. */
  job?: JobCall | null;
  /** As `POST /api/scrape` takes it. */
  scrape?: ScheduledScrape | null;
};

/** What is to be different; the rest stays. A schedule of jobs stays one of jobs. */
export type ScheduleChange = {
  /** Name to show in lists. */
  name?: string | null;
  /** Minute, hour, day, month, weekday, in the time zone; names and `@daily`, `@hourly`, … are understood. */
  cron?: string | null;
  /** Seconds from one start to the next; instead of `cron`. */
  every_seconds?: number | null;
  /** For `cron`. */
  time_zone?: string | null;
  /** Each start is late by up to so many seconds, always the same for the same time. */
  jitter_seconds?: number | null;
  /** What is done when the last one still goes on: `skip`, `queue` until it has ended, or `cancel_previous`. */
  overlap?: "skip" | "queue" | "cancel_previous" | null;
  /** What is done about times when no dispatcher worked: `skip` them, `run_once`, or `run_all` (the last 100). */
  missed?: "skip" | "run_once" | "run_all" | null;
  /** As /pause and /resume. */
  paused?: boolean | null;
  /** Whole. */
  job?: JobCall | null;
  /** Whole. */
  scrape?: ScheduledScrape | null;
};

/** A schedule. */
export type ScheduleDocument = {
  /** Its id. */
  id: string;
  /** Its name. */
  name: string;
  /** Whether it starts jobs or runs. */
  target: "job" | "scrape";
  /** What is started, without secrets; null: a scrape. */
  job: Record<string, unknown> | null;
  /** What is started, without secrets; null: a job. */
  scrape: Record<string, unknown> | null;
  /** When it starts, as a cron expression; null: by `every_seconds`. */
  cron: string | null;
  /** Seconds from one start to the next; null: by `cron`. */
  every_seconds: number | null;
  /** Time zone of `cron`. */
  time_zone: string;
  /** Each start is late by up to so many seconds. */
  jitter_seconds: number;
  /** What is done when the last one still runs. */
  overlap: "cancel_previous" | "queue" | "skip";
  /** What is done about due times when no dispatcher worked. */
  missed: "run_all" | "run_once" | "skip";
  /** Whether it starts nothing until resumed. */
  paused: boolean;
  /** With its jitter, in UTC; null: paused, or there is none. */
  next_run_at: string | null;
  /** The next five times by its own clock, without jitter; none when paused. */
  next_runs: Array<string>;
  /** The last time that was due; null: none yet. */
  last_due_at: string | null;
  /** The job or run that was started last. */
  last_id: string | null;
  /** When it was created. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
  /** Where to go from here. */
  links: ScheduleLinks;
  /** @deprecated Another name of `scrape.url`. */
  url: string | null;
  /** @deprecated Another name of `every_seconds`. */
  interval: number | null;
  /** @deprecated Another name of `paused, the other way round`. */
  enabled: boolean;
  /** @deprecated Another name of `next_run_at`. */
  next_run: string | null;
};

/** Where to go from here. */
export type ScheduleLinks = {
  /** This document. */
  self: string;
  /** Its last due times. */
  history: string;
  /** The job or run that was started last; it may have been removed since. */
  last: string | null;
};

/** One page of the listing, newest first. */
export type SchedulePageDocument = {
  /** Schedules on this page. */
  schedules: Array<ScheduleDocument>;
  /** Give it as `cursor` for the next page; null on the last. */
  next_cursor: string | null;
};

/** A single run, as `POST /api/scrape` takes it. */
export type ScheduledScrape = {
  /** The page. Alone it runs `builtin/page`; else it becomes `input.url`. */
  url?: string | null;
  /** `site/task` or `site/task@version`. */
  scraper?: string | null;
  /** Fits the scraper's input schema. */
  input?: Record<string, unknown>;
  /** Default: the scraper's, else `normal`. */
  priority?: Priority | null;
  /** Which workers take it; default: the scraper's lane. */
  lane?: string | null;
  /** How pages are fetched, and how often failures are tried again. */
  policy?: Policy;
  /** Who is told when a run ends. */
  webhook?: RunWebhookCall | null;
  /** Which of the large fields to return; the others are null. As `input.formats`. */
  formats?: Array<"markdown" | "html" | "raw_html" | "text" | "links" | "anchors" | "article" | "metadata" | "structured" | "product" | "images" | "tables" | "records" | "next_page" | "data" | "headers">;
  /** Whether `markdown` and `html` are the main part of the page, or all that is visible. Default: the main part as `markdown`, all of it as `html`. As `input.only_main`. */
  only_main?: boolean;
  /** Read only the parts of the page that these CSS selectors match. As `input.include_tags`. */
  include_tags?: Array<string>;
  /** Leave out the parts of the page that these CSS selectors match. As `input.exclude_tags`. */
  exclude_tags?: Array<string>;
  /** Headers of the request. Those that the engine sets itself, such as `Host`, are refused. As `input.headers`. */
  headers?: Record<string, string>;
  /** Cookies of the request, by name. Not together with a `Cookie` header. As `input.cookies`. */
  cookies?: Record<string, string>;
  /** Default: `GET`, or `POST` if there is a `body`. As `input.method`. */
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";
  /** What is sent: text as it is, `{"json": …}` or `{"form": {…}}`. As `input.body`. */
  body?: {
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as a web form does. */
  form?: Record<string, string | number | boolean>;
} | string;
  /** How the page is had. Default: `auto`, plain HTTP, and a browser only where that does not do; `light` is a small browser without layout. `browser` if `browser` says how. As `input.engine`. */
  engine?: "auto" | "http" | "browser" | "light" | "solver";
  /** What a browser does with the page before it is read. As `input.browser`. */
  browser?: {
  /** Selector of an element to wait for. */
  wait_for?: string;
  /** State of loading to wait for. Default: `load`. */
  wait_until?: "load" | "domcontentloaded" | "networkidle" | "commit";
  /** Times that the page is scrolled to its end, at most, while it grows. */
  scroll?: number;
  /** Keep the artifact `screenshot.png`. */
  screenshot?: boolean;
  /** Of the screenshot: the whole page, not the window. */
  full_page?: boolean;
  /** Device to look like, as `iPhone 15`. */
  device?: string;
  /** Language, as `de-DE`. */
  locale?: string;
  /** Time zone, as `Europe/Berlin`. */
  timezone?: string;
  /** Kinds of requests that are not made. */
  block?: Array<"image" | "media" | "font" | "stylesheet" | "tracker">;
};
  /** What to take from the page, by name: a CSS selector or XPath, such as `h1`, `a@href`, `h1::text`, `//h1`; or an object with `css` or `xpath`, and `as`, `attr`, `regex`, `list`, `default`, `required`; or `{"each": ".review", "fields": {…}}` for a list of records. As `input.fields`. */
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
  each?: string;
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
  each?: string;
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
  each?: string;
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
}>;
}>;
}>;
}>;
};

/** A scrape to do. Give at least one of `url`, `urls` and `scraper`; `url` and `urls` exclude each other. */
export type ScrapeCall = {
  /** The page. Alone it runs `builtin/page`, with `fields` `builtin/select`; with `scraper` it becomes `input.url`. */
  url?: string | null;
  /** One run for each. */
  urls?: Array<string> | null;
  /** `site/task` or `site/task@version`. */
  scraper?: string | null;
  /** Fits the scraper's input schema. */
  input?: Record<string, unknown>;
  /** Seconds to wait for the end; 0 answers at once with a handle. */
  wait?: number | null;
  /** What becomes of a run that is not finished when `wait` is over. */
  on_timeout?: "continue" | "cancel";
  /** What becomes of it when the caller hangs up while waiting. */
  on_disconnect?: "continue" | "cancel";
  /** Default: `high` for a waiting call, otherwise `normal`. */
  priority?: Priority | null;
  /** Which workers take it; default: the scraper's lane. */
  lane?: string | null;
  /** How pages are fetched, and how often failures are tried again. */
  policy?: Policy;
  /** Who is told when a run ends. */
  webhook?: RunWebhookCall | null;
  /** Which of the large fields to return; the others are null. As `input.formats`. */
  formats?: Array<"markdown" | "html" | "raw_html" | "text" | "links" | "anchors" | "article" | "metadata" | "structured" | "product" | "images" | "tables" | "records" | "next_page" | "data" | "headers">;
  /** Whether `markdown` and `html` are the main part of the page, or all that is visible. Default: the main part as `markdown`, all of it as `html`. As `input.only_main`. */
  only_main?: boolean;
  /** Read only the parts of the page that these CSS selectors match. As `input.include_tags`. */
  include_tags?: Array<string>;
  /** Leave out the parts of the page that these CSS selectors match. As `input.exclude_tags`. */
  exclude_tags?: Array<string>;
  /** Headers of the request. Those that the engine sets itself, such as `Host`, are refused. As `input.headers`. */
  headers?: Record<string, string>;
  /** Cookies of the request, by name. Not together with a `Cookie` header. As `input.cookies`. */
  cookies?: Record<string, string>;
  /** Default: `GET`, or `POST` if there is a `body`. As `input.method`. */
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";
  /** What is sent: text as it is, `{"json": …}` or `{"form": {…}}`. As `input.body`. */
  body?: {
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as a web form does. */
  form?: Record<string, string | number | boolean>;
} | string;
  /** How the page is had. Default: `auto`, plain HTTP, and a browser only where that does not do; `light` is a small browser without layout. `browser` if `browser` says how. As `input.engine`. */
  engine?: "auto" | "http" | "browser" | "light" | "solver";
  /** What a browser does with the page before it is read. As `input.browser`. */
  browser?: {
  /** Selector of an element to wait for. */
  wait_for?: string;
  /** State of loading to wait for. Default: `load`. */
  wait_until?: "load" | "domcontentloaded" | "networkidle" | "commit";
  /** Times that the page is scrolled to its end, at most, while it grows. */
  scroll?: number;
  /** Keep the artifact `screenshot.png`. */
  screenshot?: boolean;
  /** Of the screenshot: the whole page, not the window. */
  full_page?: boolean;
  /** Device to look like, as `iPhone 15`. */
  device?: string;
  /** Language, as `de-DE`. */
  locale?: string;
  /** Time zone, as `Europe/Berlin`. */
  timezone?: string;
  /** Kinds of requests that are not made. */
  block?: Array<"image" | "media" | "font" | "stylesheet" | "tracker">;
};
  /** What to take from the page, by name: a CSS selector or XPath, such as `h1`, `a@href`, `h1::text`, `//h1`; or an object with `css` or `xpath`, and `as`, `attr`, `regex`, `list`, `default`, `required`; or `{"each": ".review", "fields": {…}}` for a list of records. As `input.fields`. */
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
  each?: string;
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
  each?: string;
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
  each?: string;
  fields?: Record<string, string | {
  css?: string;
  xpath?: string;
  attr?: string;
  as?: "text" | "number" | "price" | "date" | "url" | "bool" | "html" | "markdown" | "json";
  regex?: string;
  list?: boolean;
  /** What it is if nothing is found. */
  default?: unknown;
  required?: boolean;
  decimal?: "." | ",";
  order?: "dmy" | "mdy" | "ymd";
}>;
}>;
}>;
}>;
};

/** A scraper with how it is called. The schemas and limits are null when it is invalid. */
export type ScraperDocument = {
  /** Its id. */
  id: string;
  /** Its version. */
  version: string;
  /** Its name. */
  name: string;
  /** What it does, in its author's words. */
  description: string;
  /** Whether it is part of Scrapeyard. */
  builtin: boolean;
  /** Whether it can run. */
  valid: boolean;
  /** Why it cannot run; empty when it can. */
  problem: string;
  /** The repository it comes from; empty for a built-in. */
  source: string;
  /** Why what is served of that repository may be out of date; empty when it is fresh. */
  stale: string;
  /** Channels that point to this version. */
  channels: Array<string>;
  /** SHA-256 of the scraper's content. */
  digest: string;
  /** Where in its repository it lies: a folder, a tag, a key. */
  place: string;
  /** The file and the function that are run. */
  entry: string | null;
  /** Which workers take it. */
  lane: string | null;
  /** `run`: each call has a child of its own; `warm`: a child serves many calls. */
  isolation: string | null;
  /** How it reaches the web: `engines` or `direct`. */
  network: string | null;
  /** Hosts that it may fetch from; empty: any. */
  allowed_hosts: Array<string> | null;
  /** Packages that it needs. */
  requirements: Array<string> | null;
  /** What it needs of a worker, such as `http`. */
  capabilities: Array<string> | null;
  /** JSON Schema of its input. */
  input_schema: Record<string, unknown> | null;
  /** JSON Schema of its result; null: any. */
  output_schema: Record<string, unknown> | null;
  /** What it may use. */
  limits: LimitsDocument | null;
  /** How pages are fetched, and how often failures are tried again. */
  policy: PolicyDefaults | null;
  /** How far its packages are installed; null: it is invalid. */
  environment: EnvironmentDocument | null;
  /** Its repository; null for a built-in. */
  freshness: SourceDocument | null;
  /** All of them, newest first. */
  versions: Array<VersionDocument>;
  /** Channel → version, as now in force. */
  all_channels: Record<string, string>;
};

/** The files of one version of a scraper. */
export type ScraperSourceDocument = {
  /** `site/task@version`. */
  scraper: string;
  /** SHA-256 of the scraper's content. */
  digest: string;
  /** The file and the function that a run calls. */
  entry: string;
  /** By name, at most 500. */
  files: Array<ScriptFileDocument>;
  /** Whether there are files that are not listed. */
  more: boolean;
};

/** A scraper in the listing. */
export type ScraperSummary = {
  /** Its id. */
  id: string;
  /** Its version. */
  version: string;
  /** Its name. */
  name: string;
  /** What it does, in its author's words. */
  description: string;
  /** Whether it is part of Scrapeyard. */
  builtin: boolean;
  /** Whether it can run. */
  valid: boolean;
  /** Why it cannot run; empty when it can. */
  problem: string;
  /** The repository it comes from; empty for a built-in. */
  source: string;
  /** Why what is served of that repository may be out of date; empty when it is fresh. */
  stale: string;
  /** Channels that point to this version. */
  channels: Array<string>;
};

/** Every version of every scraper there is, and where they come from, in order of precedence. */
export type ScrapersDocument = {
  /** Every version of every scraper. */
  scrapers: Array<ScraperSummary>;
  /** Every repository, in order of precedence. */
  sources: Array<SourceDocument>;
};

/** A file of a scraper. */
export type ScriptFileDocument = {
  /** Relative to the scraper's folder, with slashes. */
  name: string;
  /** Size in bytes. */
  size: number;
  /** Null if it is not UTF-8, larger than 256 KiB, or past 2 MiB of text in one answer. */
  text: string | null;
};

/** The value of a secret. */
export type SecretCall = {
  /** Encrypted in the database, given to runs of the scraper, and never shown again. */
  value: string;
};

/** A secret, without its value. */
export type SecretDocument = {
  /** Who gets it: `site/task`, or `site/*` for all scrapers of a site. */
  scrapers: string;
  /** As a manifest names it: `{ secret = "name" }`. */
  name: string;
  /** When it was last set. */
  changed_at: string;
};

/** Every secret, without values. */
export type SecretsDocument = {
  /** By scraper and name. */
  secrets: Array<SecretDocument>;
};

/** Fields of one page by CSS or XPath, with types, lists and records in records. */
export type SelectResult = {
  /** As asked, unless a field has this name. */
  url: unknown;
  /** What the site answered, unless a field has this name. */
  status: unknown;
  /** Fields that were not found or are not of their type, and why; they are null. */
  warnings: Array<string>;
};

/** Who has signed in with a browser, and what a page must know to serve them. */
export type SessionDocument = {
  /** Whether callers must be known; else everybody may do everything. */
  auth_required: boolean;
  /** Whether the caller may call: known by a session or a key, or not asked. */
  signed_in: boolean;
  /** Owns what is created; empty while nobody is asked, or nobody signed in. */
  client: string;
  /** What the caller may do; null: not signed in. */
  role: Role | null;
  /** Patterns of the scrapers that it may call; [] for all. */
  scrapers: Array<string>;
  /** What the role allows; docs/permissions.md lists routes. */
  permissions: Array<Permission>;
  /** When the session ends; null: there is none. */
  expires_at: string | null;
  /** To send as X-CSRF-Token; null: there is no session. */
  csrf_token: string | null;
  /** How people can sign in. */
  ways: Array<"key" | "oidc">;
  /** What to open to sign in at the identity provider; null: none is set. */
  oidc_url: string | null;
};

/** One setting as it is in force. */
export type SettingDocument = {
  /** Its place in the tree, as in `scrapeyard.toml`. */
  key: string;
  /** The environment variable that sets it. */
  environment: string;
  /** In force now, as JSON; passwords and tokens are hidden. */
  value: unknown;
  /** What it is if nothing sets it, as JSON. */
  default: unknown;
  /** `command line`, `environment NAME`, `.env NAME`, the file's name, or `default`. */
  source: string;
  /** What it does, with its unit. */
  meaning: string;
};

/** Every setting of one gateway. */
export type SettingsDocument = {
  /** The id of the gateway that answers. */
  gateway: string;
  /** In the order of the documentation. */
  settings: Array<SettingDocument>;
};

/** The shared tier. */
export type SharedDocument = {
  /** Where pages are kept. */
  kind: "disk" | "redis";
  /** Pages that are kept. */
  pages: number;
  /** Size in bytes. */
  bytes: number;
  /** Maximum bytes that are kept. */
  limit_bytes: number;
  /** In Redis of all workers; on disk since the start. */
  hits: number;
  /** Pages that were looked for and not there. */
  misses: number;
  /** Removed to make room. */
  evicted: number;
};

/** How to sign in. */
export type SignInCall = {
  /** The key. */
  key: string;
};

/** A sink that jobs may name. Its address and its keys are the operator's. */
export type SinkDocument = {
  /** Its name. */
  name: string;
  /** Which kind it is. */
  kind: "kafka" | "parquet" | "sql" | "webhook";
  /** Whether jobs that name no sink are delivered to it. */
  default: boolean;
  /** Jobs that are being delivered to it. */
  active: number;
  /** Jobs whose delivery was given up. */
  failed: number;
};

/** How a delivery stands. */
export type SinkState = "active" | "done" | "failed";

/** All sinks, in the order of the settings. */
export type SinksDocument = {
  /** Every sink, in the order of the settings. */
  sinks: Array<SinkDocument>;
};

/** How a site is to be treated. What is left out, or null, is as the settings say for every site. */
export type SiteCall = {
  /** Requests a second of all workers; 0: no limit. */
  rate?: number | null;
  /** Requests that may come at once after a rest. */
  burst?: number | null;
  /** Requests in flight; 0: any number. */
  concurrency?: number | null;
  /** Whether 429, 503 and rising latency slow it down. */
  adapt?: boolean | null;
  /** Slowed down no further than this. */
  min_rate?: number | null;
  /** Failures in a row that make us leave it alone. */
  breaker_failures?: number | null;
  /** Share of failures among the last that does. */
  breaker_ratio?: number | null;
  /** For how long. */
  breaker_seconds?: number | null;
  /** What its robots.txt means unless the call says. */
  robots?: "ignore" | "obey" | null;
  /** Note for other operators. */
  note?: string;
};

/** A site. */
export type SiteDocument = {
  /** Registrable domain. */
  site: string;
  /** What it may use. */
  limits: SiteLimitsDocument;
  /** What operators wrote; null: nothing. */
  rules: SiteRulesDocument | null;
  /** Null: it was not asked for lately. */
  state: SiteStateDocument | null;
  /** What other parts know of it, by part. */
  more: Record<string, unknown>;
};

/** The fields of the results from one site. */
export type SiteHealthDocument = {
  /** Host of the first page that a run fetched; empty if it fetched none. */
  site: string;
  /** Version of the scraper; another one begins anew. */
  version: string;
  /** Results that were looked at. */
  pages: number;
  /** When the last of them was added. */
  seen_at: string;
  /** At most 60. */
  fields: Array<FieldHealthDocument>;
};

/** What is in force for a site. */
export type SiteLimitsDocument = {
  /** 0: no limit. */
  rate: number;
  /** Requests that may come at once after a rest. */
  burst: number;
  /** 0: any number. */
  concurrency: number;
  /** Whether 429, 503 and rising latency slow requests down. */
  adapt: boolean;
  /** Requests a second below which the site is not slowed down. */
  min_rate: number;
  /** Failures in a row after which the site is left alone. */
  breaker_failures: number;
  /** Share of failures among the last requests after which the site is left alone. */
  breaker_ratio: number;
  /** Seconds that the site is left alone. */
  breaker_seconds: number;
  /** Whether robots.txt is obeyed. */
  robots: "ignore" | "obey";
};

/** A crawl of a site under other names: the profile `site`, with these limits. `policy`, `sitemap` and `follow` win. Answers about such a job use the words of the dialect `site`. */
export type SiteOptions = {
  /** As `domain`. */
  domain?: string | null;
  /** As `sitemap.limit`, `follow.limit`. */
  max_urls?: number;
  /** As `policy.concurrency`. */
  max_concurrency?: number;
  /** As `policy.allow_residential`. */
  allow_residential?: boolean;
  /** As `policy.budget.megabytes`. */
  traffic_budget_mb?: number;
  /** As `policy.budget.residential_megabytes`. */
  residential_limit_mb?: number;
  /** Firecrawl is not used. */
  enable_firecrawl?: false;
  /** Firecrawl is not used. */
  firecrawl_api_key?: null;
};

/** One page of the listing, by name. */
export type SitePageDocument = {
  /** Sites on this page. */
  sites: Array<SiteDocument>;
  /** Give it as `cursor` for the next page; null on the last. */
  next_cursor: string | null;
};

/** What operators wrote for a site. */
export type SiteRulesDocument = {
  /** Requests a second of all workers; 0: no limit. */
  rate: number | null;
  /** Requests that may come at once after a rest. */
  burst: number | null;
  /** Requests in flight; 0: any number. */
  concurrency: number | null;
  /** Whether 429, 503 and rising latency slow it down. */
  adapt: boolean | null;
  /** Slowed down no further than this. */
  min_rate: number | null;
  /** Failures in a row that make us leave it alone. */
  breaker_failures: number | null;
  /** Share of failures among the last that does. */
  breaker_ratio: number | null;
  /** For how long. */
  breaker_seconds: number | null;
  /** What its robots.txt means unless the call says. */
  robots: "ignore" | "obey" | null;
  /** Note for other operators. */
  note: string;
  /** When it was last changed. */
  updated_at: string;
};

/** How a site is doing, as all workers know it. */
export type SiteStateDocument = {
  /** In force now, slow-downs and crawl delays included; null: no limit. */
  rate: number | null;
  /** Whether its own answers brought the rate down. */
  slowed: boolean;
  /** Left of what it asked for with Retry-After. */
  closed_seconds: number;
  /** Requests that wait for their turn. */
  waiting: number;
  /** Null: not counted, since it is not limited. */
  in_flight: number | null;
  /** `open`: the site is left alone; `half_open`: one request tries it. */
  breaker: "closed" | "half_open" | "open";
  /** Until one request may try it. */
  breaker_seconds: number;
  /** How many of the last requests `success_share` is of, 40 at most. */
  recent: number;
  /** Share of the last requests that succeeded; null: there were none. */
  success_share: number | null;
  /** Milliseconds that it usually takes to answer. */
  latency_ms: number | null;
  /** Requests a second, lately. */
  requests_a_second: number;
  /** When it was last heard of. */
  seen_at: string | null;
};

/** What is taken of a sitemap. */
export type SitemapChoice = {
  /** One must fit, if any. */
  include?: Array<string>;
  /** None may fit. */
  exclude?: Array<string>;
  /** Pages that say they are older are left out. ISO 8601; UTC when it names no zone. */
  modified_since?: string | null;
  /** Addresses taken at most. */
  limit?: number | null;
};

/** What of the job's pages is remembered, so that the next crawl can tell what changed. */
export type Snapshots = {
  /** Crawls of one scope are compared; empty: by name or scraper. */
  scope?: string;
  /** Fields whose change is no news; `meta.*` for all below. */
  ignore?: Array<string>;
  /** Crawls in a row that must agree before a change is told. */
  confirm?: number;
};

/** What the solver was asked for, and how often it helped. */
export type SolverCount = {
  /** Pages that the solver was asked for. */
  calls: number;
  /** Pages that it brought. */
  successes: number;
  /** Null while it was not asked for anything. */
  flaresolverr_success_rate: number | null;
};

/** How fresh a repository's scrapers are. */
export type SourceDocument = {
  /** Its name. */
  name: string;
  /** folder, git, http, s3 or installed. */
  kind: string;
  /** Commit id, entity tag, or empty. */
  mark: string;
  /** Versions that it offers and that can run. */
  scrapers: number;
  /** When it last answered, also before a restart; null: never. */
  checked_at: string | null;
  /** When what it offers last changed here; null: not since the start. */
  changed_at: string | null;
  /** Why what is served may be out of date; empty when it is fresh. */
  stale: string;
  /** Scrapers of it that do not run: a repository before it has the same id. At most 100. */
  hidden: Array<string>;
};

/** What a scraper keeps between its runs. */
export type StateDocument = {
  /** Its id; all versions share one state. */
  scraper: string;
  /** By key, at most 1,000. */
  entries: Array<StateEntryDocument>;
};

/** One value, without the value itself. */
export type StateEntryDocument = {
  /** As the script names it. */
  key: string;
  /** Size of the value as JSON. */
  bytes: number;
  /** When a run wrote it last. */
  changed_at: string;
};

/** One value of a scraper's state. */
export type StateValueDocument = {
  /** Its id; all versions share one state. */
  scraper: string;
  /** As the script names it. */
  key: string;
  /** Any JSON value. */
  value: unknown;
};

/** How busy the platform is. */
export type StatsDocument = {
  /** Runs that are not final, by status. */
  runs: Record<string, number>;
  /** Jobs that have not ended. */
  jobs: JobsCount;
  /** What waits, by lane and priority. */
  queue: Array<LaneDocument>;
  /** Slots of all workers together. */
  workers: WorkersCount;
};

/** A run without its result, as the listing shows it. */
export type Summary = {
  /** Its id. */
  id: string;
  /** Where it stands. */
  status: RunStatus;
  /** The scraper, as `site/task`. */
  scraper: string;
  /** What ran; before that, what was asked for; null: the newest. */
  version: string | null;
  /** Of the content that ran; null before that, and for a built-in scraper. */
  digest: string | null;
  /** What the scraper is called with. */
  input: Record<string, unknown>;
  /** Why it ended; null while it has not. */
  exit_reason: ExitReason | null;
  /** It failed, and `result` has the records that the script yielded before. */
  partial: boolean;
  /** Why it failed; null: it did not. */
  error: ErrorDocument | null;
  /** What it used; null before the end. */
  usage: UsageDocument | null;
  /** Where the time went; null before the end. */
  timing: TimingDocument | null;
  /** Which attempt this is, from 1. */
  attempt: number;
  /** Null: the row is broken, and its time cannot be told. */
  created_at: string | null;
  /** Of a queued run that was put back, for another attempt or until its site's turn: when it is due. */
  starts_at: string | null;
  /** When it started; null: not yet. */
  started_at: string | null;
  /** When it ended; null while it has not. */
  finished_at: string | null;
  /** How far the script says that it is, about a second old; null if it does not tell. */
  progress: RunProgress | null;
  /** What it waits for now, about a second old; null if it does not wait. */
  waiting: WaitDocument | null;
  /** Files that were kept. */
  artifacts: Array<ArtifactDocument>;
  /** When retention removed its `results`, `artifacts`, `html` or `logs`. */
  swept: Record<string, string>;
  /** Where to go from here. */
  links: Links;
  /** @deprecated Another name of `input.url`. */
  url?: string | null;
  /** @deprecated Another name of `error.message`. */
  error_message?: string | null;
  /** @deprecated Another name of `finished_at, started_at or created_at, the last that is set`. */
  updated_at?: string | null;
};

/** Where the time went, in milliseconds. */
export type TimingDocument = {
  /** Milliseconds in the queue. */
  queue_ms: number;
  /** Milliseconds of finding the scraper. */
  resolve_ms: number;
  /** Milliseconds until the scraper's packages were installed. */
  environment_ms: number;
  /** Milliseconds until a child process had the run; near zero if one was forked ahead. */
  child_start_ms: number;
  /** Whether a child process was waiting for the run. */
  forked_ahead: boolean;
  /** Milliseconds that the script ran. */
  script_ms: number;
  /** Milliseconds of fetching, which are part of `script_ms`. */
  fetch_ms: number;
  /** Milliseconds of storing large results and artifacts. */
  record_ms: number;
};

/** A project that was uploaded. */
export type UploadDocument = {
  /** The site of its scrapers. */
  project: string;
  /** The version of its scrapers. */
  version: string;
  /** Ids of the scrapers made of its spiders. */
  scrapers: Array<string>;
};

/** What the run used. */
export type UsageDocument = {
  /** Milliseconds of real time. */
  wall_ms: number;
  /** CPU milliseconds. */
  cpu_ms: number;
  /** Megabytes of memory. */
  memory_mb: number;
  /** Pages that the script asked for. */
  fetches: number;
  /** What that took of the web: other ways and redirects, but no kept pages. */
  requests: number;
  /** On the wire, of all those requests. */
  bytes_received: number;
  /** The same by what they came through: `direct`, `datacenter`, `residential`, `unlocker`. */
  bytes_by_class: Record<string, number>;
  /** Bytes of the result and records. */
  output_bytes: number;
  /** Bytes of logs. */
  log_bytes: number;
  /** Records that the script yielded. */
  records: number;
  /** Personal data that was masked in what the run left, by kind. */
  masked: Record<string, number>;
  /** Pages that the solver was asked for. */
  solver_calls: number;
  /** Those of them that it brought. */
  solver_successes: number;
  /** Pages that were opened in a browser. */
  browser_pages: number;
  /** About what blocking of images, fonts and the like has saved. */
  browser_saved_bytes: number;
  /** Captchas that were to be solved. */
  captcha_calls: number;
  /** Those of them that were answered. */
  captcha_successes: number;
  /** What the vendor billed for them, in its currency. */
  captcha_cost: number;
  /** Questions that models answered. */
  ai_calls: number;
  /** Tokens that models read and wrote. */
  ai_tokens: number;
  /** What that cost, in the currency of the operator's prices. */
  ai_cost: number;
};

/** Usage by what was asked for, in the order of its columns. */
export type UsageReportDocument = {
  /** The first day. */
  since: string;
  /** The last day. */
  until: string;
  /** What it is grouped by. */
  by: Array<"client" | "day" | "scraper" | "site">;
  /** Whether there are more rows than one answer has; ask for less. */
  truncated: boolean;
  /** Sums, one for each group. */
  rows: Array<UsageRowDocument>;
};

/** What was used. Columns that the answer is not grouped by are null. */
export type UsageRowDocument = {
  /** In UTC, as 2026-01-31. */
  day: string | null;
  /** Empty: nobody was asked. */
  client: string | null;
  /** Empty: the platform itself, as for sitemaps. */
  scraper: string | null;
  /** Empty: runs and browsers, which belong to no single site. */
  site: string | null;
  /** Runs, and items of jobs, that have ended. */
  runs: number;
  /** Requests to the web. */
  fetches: number;
  /** Those of them without an answer. */
  failures: number;
  /** Received, in all. */
  megabytes: number;
  /** Without a proxy. */
  direct_megabytes: number;
  /** Through proxies in data centres. */
  datacenter_megabytes: number;
  /** Through residential proxies. */
  residential_megabytes: number;
  /** Through web unlockers. */
  unlocker_megabytes: number;
  /** How long pages of browsers were open. */
  browser_seconds: number;
  /** Tokens that models read and wrote. */
  ai_tokens: number;
  /** What that cost, in the currency of the operator's prices. */
  ai_cost: number;
};

/** What went through. */
export type UseDocument = {
  /** Requests that were sent. */
  requests: number;
  /** Requests without an answer. */
  failures: number;
  /** Received. */
  bytes: number;
};

/** One version of a scraper. */
export type VersionDocument = {
  /** Its version. */
  version: string;
  /** Of its content; empty when it is invalid or built in. */
  digest: string;
  /** Whether it can run. */
  valid: boolean;
  /** Why it cannot be used; empty: it can. */
  problem: string;
  /** Whether it is chosen only by name. */
  prerelease: boolean;
  /** Channels that point to this version. */
  channels: Array<string>;
  /** The repository it comes from; empty for a built-in. */
  source: string;
  /** Where in its repository: a folder, a tag, a key. */
  place: string;
  /** False: no repository offers it any more; a copy still serves calls. */
  offered: boolean;
};

/** What a run waits for. */
export type WaitDocument = {
  /** `site_turn`: its site's rate; `retry`: a page or the whole run is tried again after a failure. */
  reason: "retry" | "site_turn";
  /** The site or host; null for a run that was put back. */
  site: string | null;
  /** When it goes on. */
  until: string;
  /** The reason in words. */
  message: string;
};

/** Pages to have ready. */
export type WarmCall = {
  /** One run for each. */
  urls: Array<string>;
  /** Whose requests to make; it must take `url`. Default: `builtin/page`. Private pages need it. */
  scraper?: string | null;
  /** A page that is kept and not older than this is left as it is. */
  max_age_seconds?: number;
};

/** Who is told of what happens to a job. */
export type WebhookCall = {
  /** Where to; private addresses are refused unless the operator allows them. */
  url: string;
  /** What is told. */
  events?: Array<"job.completed" | "job.failed" | "job.cancelled" | "job.paused" | "job.resumed" | "job.created" | "job.archived" | "job.restored" | "breaker" | "export.ready" | "sink.done" | "sink.failed" | "item.failed" | "item.ended">;
  /** Signs what is sent; never shown. */
  secret?: string | null;
  /** Whose messages the receiver expects; empty: ours. */
  form?: "" | "firecrawl.crawl" | "firecrawl.batch_scrape";
  /** Sent along by forms that know it. */
  metadata?: Record<string, string>;
};

/** Who is told of what happens. */
export type WebhookDocument = {
  /** The address. */
  url: string;
  /** Which events are sent. */
  events: Array<string>;
  /** Whether messages are signed with a secret. */
  signed: boolean;
};

/** A message, with what was sent. */
export type WholeDeliveryDocument = {
  /** Its id. */
  id: string;
  /** The job, run or alert that it tells of. */
  subject: string;
  /** What happened. */
  event: string;
  /** Without user and query, which may hold secrets; `alert:slack` for alerts. */
  url: string;
  /** Where it stands. */
  state: DeliveryState;
  /** Begun, replays included. */
  attempts: number;
  /** Of the last attempt. */
  status: number | null;
  /** Of the last attempt. */
  error: string | null;
  /** When it was created. */
  created_at: string;
  /** When it is sent again; null unless it waits. */
  next_at: string | null;
  /** When sending is given up. */
  give_up_at: string;
  /** When it ended; null while it has not. */
  finished_at: string | null;
  /** The last 30 attempts, the newest last. */
  log: Array<AttemptDocument>;
  /** As it was signed. */
  body: string;
};

/** An item with what it wrote. */
export type WholeItemDocument = {
  /** Its id. */
  id: string;
  /** Its place in the job, from 0. */
  number: number;
  /** Where it stands. */
  status: ItemStatus;
  /** What the scraper is called with. */
  input: Record<string, unknown>;
  /** Attempts begun. */
  attempt: number;
  /** When it is tried again. */
  not_before: string | null;
  /** Why it ended; null while it has not. */
  exit_reason: ExitReason | null;
  /** Of the last page that it fetched; null if there was none, or no answer. */
  http_status: number | null;
  /** It failed, and `result` has the records that the script yielded before. */
  partial: boolean;
  /** Why it failed; null: it did not. */
  error: ErrorDocument | null;
  /** Registrable domain. */
  site: string | null;
  /** What it used; null before the end. */
  usage: UsageDocument | null;
  /** How its last page was had: `http`, `clearance` (plain HTTP with what the solver had got), `solver` or `cache`; null if it got none. */
  strategy_used: string | null;
  /** Class and exit of the proxy that the page came through, without credentials. */
  proxy_used: string | null;
  /** When it started; null: not yet. */
  started_at: string | null;
  /** When it ended; null while it has not. */
  finished_at: string | null;
  /** Links from a start to it; null unless links are followed. */
  depth: number | null;
  /** The page that linked to it first. */
  referrer: string | null;
  /** Null before the end and where the data is an object: `artifacts` has it. */
  result: PageResult | ProductResult | SelectResult | ListResult | unknown;
  /** Size of the result in bytes. */
  result_bytes: number;
  /** Files that were kept. */
  artifacts: Array<ArtifactDocument>;
  /** What retention has removed of it. */
  swept: Array<string>;
  /** Where to go from here. */
  links: ItemLinks;
  /** The last lines, of items that failed. */
  logs: Array<LogLineDocument>;
};

/** A job, with how its sinks stand. */
export type WholeJobDocument = {
  /** Its id. */
  id: string;
  /** Where it stands. */
  status: JobStatus;
  /** Its name. */
  name: string;
  /** Who the job is for, as the call named it. */
  owner: string;
  /** The scraper, as `site/task`. */
  scraper: string;
  /** Pinned when the job was made; null for a built-in scraper. */
  version: string | null;
  /** The scraper as the call named it. */
  asked_for: string;
  /** The profile whose defaults it was made with. */
  profile: string | null;
  /** Which workers take it. */
  lane: string;
  /** `high` is taken before `normal`, and `normal` before `low`. */
  priority: Priority;
  /** Items by status. */
  counts: CountsDocument;
  /** Items that have ended, by the HTTP status of the last page that each fetched. Items that fetched none, or got no answer, are not counted. */
  http_statuses: Record<string, number>;
  /** Share of the items known so far that have ended. */
  progress: number;
  /** Ended lately; null while none were handed out. */
  items_per_second: number | null;
  /** Until the end, if it goes on like this; null: cannot be told. */
  eta_seconds: number | null;
  /** Whether items are still being added by its source. */
  reading: boolean;
  /** Rows of its list that were not usable, or there twice. */
  skipped_rows: number;
  /** What its reader must know: that all items failed; what of its source was not read, and why: files of a sitemap, pages beyond a limit, links of pages that failed, rows that could not be used. */
  warnings: Array<string>;
  /** Where its items come from. */
  source: Record<string, unknown>;
  /** How pages are fetched, and how often failures are tried again. */
  policy: Record<string, unknown>;
  /** Null: the scraper's version is not here, which has a say. */
  manners: JobManners | null;
  /** Pauses the job when too many items fail. */
  breaker: BreakerDocument;
  /** Why it is paused; empty: it is not, or by a call. */
  pause_reason: string;
  /** Why it failed; null: it did not. */
  error: ErrorDocument | null;
  /** Of all its items together. */
  usage: UsageDocument;
  /** Files that are made of the job. */
  exports: Array<WishDocument>;
  /** Whether manifests and exports are still being written: while the job is `finishing`, and for a while after it was `cancelled`. */
  files_pending: boolean;
  /** When retention removed `results`, `artifacts`, `html` or `logs` of its items. */
  swept: Record<string, string>;
  /** Where its items lie: empty for the database, `archived` for the blob store. */
  archive: ArchiveState;
  /** Names of the sinks that its results are delivered to. */
  sinks: Array<string>;
  /** Who is told what happens; null: nobody. */
  webhook: WebhookDocument | null;
  /** The schedule that started it; null: a call did. */
  schedule_id: string | null;
  /** When it was created. */
  created_at: string;
  /** When it started; null: not yet. */
  started_at: string | null;
  /** When it ended; null while it has not. */
  finished_at: string | null;
  /** When `policy.max_seconds` are over. */
  deadline: string | null;
  /** Where to go from here. */
  links: JobLinks;
  /** The site it is about; empty if neither the call nor an address tells. */
  domain: string;
  /** @deprecated Another name of `counts.total`. */
  total_urls: number;
  /** @deprecated Another name of `counts.success`. */
  success_urls: number;
  /** @deprecated Another name of `counts.error`. */
  failed_urls: number;
  /** @deprecated Another name of `usage.bytes_received / 1048576`. */
  traffic_mb_used: number;
  /** @deprecated Another name of `usage.bytes_by_class / 1048576, of residential and unlocking proxies`. */
  residential_mb_used: number;
  /** @deprecated Another name of `error.message`. */
  error_message: string | null;
  /** @deprecated Another name of `finished_at, started_at or created_at, the last that is set`. */
  updated_at: string;
  /** How the delivery to each of its sinks stands. */
  sink_deliveries: Array<JobSinkDocument>;
};

/** A learned pattern with its rules. */
export type WholePatternDocument = {
  /** Its id. */
  id: string;
  /** Registrable domain. */
  site: string;
  /** Whose pages taught it; others do not use it. */
  client: string;
  /** Names of the wanted fields. */
  fields: Array<string>;
  /** `learning`: it needs more answered pages; `stale`: the site changed, it is learned anew. */
  status: "learning" | "ready" | "stale";
  /** 0: nothing is learned yet. */
  version: number;
  /** Answered pages that it was learned from. */
  examples: number;
  /** How it is doing. */
  health: PatternHealthDocument;
  /** When it was created. */
  created_at: string;
  /** When it was last learned or edited. */
  changed_at: string;
  /** The rules, as JSON to edit; null: none yet. */
  pattern: Record<string, unknown> | null;
  /** Fields that pages may be without. */
  absent: Array<string>;
  /** The last twenty, newest first. */
  versions: Array<PatternVersionDocument>;
};

/** A file to be made of a job. */
export type WishDocument = {
  /** Which columns: `full`, `seo`, `diff`, … */
  type: "diff" | "full" | "links" | "pages" | "records" | "seo";
  /** Format of the file, such as `csv`. */
  format: "csv" | "json" | "jsonl" | "parquet" | "xlsx";
  /** Whether a CSV file begins with a byte order mark, for Excel. */
  bom: boolean;
  /** Of a `diff`: the job it compares with; empty for the crawl before. */
  against: string;
  /** Whether a `diff` is left out if there is no crawl before. */
  skip_first: boolean;
};

/** A worker as its last heartbeat told. */
export type WorkerDocument = {
  /** Its id. */
  id: string;
  /** Name of its machine. */
  host: string;
  /** Its process id. */
  pid: number;
  /** Its version. */
  version: string;
  /** Every lane that it takes from. */
  lanes: Array<string>;
  /** Patterns of scrapers that it takes; empty: all. */
  takes: Array<string>;
  /** Engines that it fetches with. */
  engines: Array<string>;
  /** Walls that it puts around scripts. */
  walls: Array<string>;
  /** How many runs and items run at once. */
  slots: number;
  /** Slots that run something now. */
  busy: number;
  /** Runs and batches of items that it has begun, also those that wait outside its slots. */
  running: number;
  /** Whether it takes no more and finishes what it has. */
  draining: boolean;
  /** What was asked of it. Empty: nothing; `stay`: to drain; `exit`: to drain and end its process then. Its next heartbeat tells it. */
  drain: "" | "exit" | "stay";
  /** Whether its process has no other role. Only such a one can exit. */
  alone: boolean;
  /** Runs and items that it has ended since its start. */
  runs_done: number;
  /** One-minute load average per core. */
  load: number;
  /** Megabytes of memory. */
  memory_mb: number;
  /** What a run takes of a slot, lately; null: none ran. */
  run_seconds: number | null;
  /** What an item of a job takes of a slot, lately; null: none ran. */
  item_seconds: number | null;
  /** When it started; null: not yet. */
  started_at: string;
  /** When it was last heard of. */
  seen_at: string;
  /** Seconds since the last heartbeat. */
  age_seconds: number;
  /** Of scrapers with requirements. */
  environments: Record<string, EnvironmentStateDocument>;
};

/** The same, beside those of other workers. */
export type WorkerEnvironment = {
  /** Where it stands. */
  status: EnvironmentStatus;
  /** Names the environment; empty until its requirements are resolved. */
  key: string;
  /** Why it could not be built. */
  problem: string;
  /** Size in bytes. */
  size_bytes: number;
  /** When it was built; null: not yet. */
  built_at: string | null;
  /** The worker's id. */
  worker: string;
};

/** Workers whose heartbeat is fresh. */
export type WorkersCount = {
  /** How many there are. */
  count: number;
  /** How many runs and items run at once. */
  slots: number;
  /** Slots that run something now. */
  busy: number;
};

/** Workers whose heartbeat is fresh. */
export type WorkersDocument = {
  /** The workers. */
  workers: Array<WorkerDocument>;
};

/** Every operation, by its id. */
export interface Operations {
  /** Scrape. */
  scrape: {
    path: undefined;
    query: undefined;
    body: ScrapeCall;
    answer: RunDocument | RunDocuments | Handle | Handles;
  };
  /** List runs. */
  list_runs: {
    path: undefined;
    query: { status?: Array<RunStatus> | null; exit_reason?: Array<ExitReason> | null; scraper?: string | null; created_after?: string | null; created_before?: string | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: RunPageDocument;
  };
  /** Look a run up. */
  get_run: {
    path: { run_id: string };
    query: { wait?: number };
    body: undefined;
    answer: RunDocument;
  };
  /** Cancel a run. */
  cancel_run: {
    path: { run_id: string };
    query: undefined;
    body: undefined;
    answer: RunDocument;
  };
  /** Read a run's logs. */
  get_logs: {
    path: { run_id: string };
    query: undefined;
    body: undefined;
    answer: LogsDocument;
  };
  /** Explain a run. */
  explain_run: {
    path: { run_id: string };
    query: undefined;
    body: undefined;
    answer: Explanation;
  };
  /** Follow a run. */
  follow_run: {
    path: { run_id: string };
    query: undefined;
    body: undefined;
    answer: Response;
  };
  /** List a run's artifacts. */
  list_artifacts: {
    path: { run_id: string };
    query: undefined;
    body: undefined;
    answer: ArtifactsDocument;
  };
  /** Download an artifact. */
  get_artifact: {
    path: { name: string; run_id: string };
    query: undefined;
    body: undefined;
    answer: Response;
  };
  /** Crawl a site. */
  crawl: {
    path: undefined;
    query: undefined;
    body: CrawlCall;
    answer: JobDocument;
  };
  /** List the URLs of a site. */
  map_site: {
    path: undefined;
    query: undefined;
    body: MapCall;
    answer: RunDocument | Handle;
  };
  /** Extract data to a schema. */
  extract: {
    path: undefined;
    query: undefined;
    body: ExtractCall;
    answer: RunDocument | RunDocuments | Handle | Handles;
  };
  /** List learned patterns. */
  list_patterns: {
    path: undefined;
    query: { site?: string | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: PatternPageDocument;
  };
  /** A learned pattern. */
  get_pattern: {
    path: { pattern_id: string };
    query: undefined;
    body: undefined;
    answer: WholePatternDocument;
  };
  /** Change a learned pattern. */
  put_pattern: {
    path: { pattern_id: string };
    query: undefined;
    body: PatternCall;
    answer: WholePatternDocument;
  };
  /** Delete a learned pattern. */
  delete_pattern: {
    path: { pattern_id: string };
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Create a job. */
  create_job: {
    path: undefined;
    query: { format?: "auto" | "csv" | "jsonl" | "json" | "urls"; delimiter?: "" | "," | ";" | "\t" | "|"; names?: string; columns?: string; input?: string; bad_rows?: "reject" | "skip"; profile?: "site"; scraper?: string; domain?: string; name?: string; owner?: string; priority?: "high" | "normal" | "low"; lane?: string; paused?: boolean; policy?: string; exports?: string; sinks?: string; webhook?: string };
    body: JobCall;
    answer: CreatedJobDocument;
  };
  /** List jobs. */
  list_jobs: {
    path: undefined;
    query: { status?: Array<JobStatus> | null; scraper?: string | null; schedule_id?: string | null; domain?: string | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: JobPageDocument;
  };
  /** Append items. */
  append_items: {
    path: { job_id: string };
    query: { format?: "auto" | "csv" | "jsonl" | "json" | "urls"; delimiter?: "" | "," | ";" | "\t" | "|"; names?: string; columns?: string; input?: string; bad_rows?: "reject" | "skip" };
    body: AppendCall;
    answer: AppendedDocument;
  };
  /** List a job's items. */
  list_items: {
    path: { job_id: string };
    query: { status?: Array<ItemStatus> | null; exit_reason?: Array<ExitReason> | null; site?: Array<string> | null; http_status?: Array<number> | null; key?: Array<string> | null; first?: number; q?: string | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: ItemPageDocument;
  };
  /** Look a job up. */
  get_job: {
    path: { job_id: string };
    query: undefined;
    body: undefined;
    answer: WholeJobDocument;
  };
  /** Change a job. */
  change_job: {
    path: { job_id: string };
    query: undefined;
    body: ChangeCall;
    answer: JobDocument;
  };
  /** Delete a job. */
  delete_job: {
    path: { job_id: string };
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Pause a job. */
  pause_job: {
    path: { job_id: string };
    query: undefined;
    body: undefined;
    answer: JobDocument;
  };
  /** Resume a job. */
  resume_job: {
    path: { job_id: string };
    query: undefined;
    body: undefined;
    answer: JobDocument;
  };
  /** Cancel a job. */
  cancel_job: {
    path: { job_id: string };
    query: { mode?: "drain" | "kill" };
    body: undefined;
    answer: JobDocument;
  };
  /** Archive a job. */
  archive_job: {
    path: { job_id: string };
    query: undefined;
    body: undefined;
    answer: JobDocument;
  };
  /** Restore an archived job. */
  restore_job: {
    path: { job_id: string };
    query: undefined;
    body: undefined;
    answer: JobDocument;
  };
  /** Run items again. */
  redrive_job: {
    path: { job_id: string };
    query: undefined;
    body: RedriveCall;
    answer: RedrivenDocument;
  };
  /** See why items failed. */
  list_errors: {
    path: { job_id: string };
    query: undefined;
    body: undefined;
    answer: FailuresDocument;
  };
  /** Look an item up. */
  get_item: {
    path: { key: string; job_id: string };
    query: undefined;
    body: undefined;
    answer: WholeItemDocument;
  };
  /** Download what an item left. */
  download_artifact: {
    path: { key: string; job_id: string };
    query: { artifact?: string };
    body: undefined;
    answer: Response;
  };
  /** List dead letters. */
  list_dead_letters: {
    path: undefined;
    query: { job_id?: string | null; scraper?: string | null; exit_reason?: Array<ExitReason> | null; site?: Array<string> | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: DeadLetterPageDocument;
  };
  /** Read a job's results. */
  get_results: {
    path: { job_id: string };
    query: { status?: "all" | "success" | "error" | null; part?: number | null };
    body: undefined;
    answer: ResultsDocument | ManifestPartDocument;
  };
  /** See how a job went over time. */
  get_metrics: {
    path: { job_id: string };
    query: { name?: Array<"items" | "items_per_second" | "requests" | "bytes_received" | "bytes" | "bytes_per_second" | "solver_calls" | "solver_successes" | "flaresolverr_success_rate"> | null };
    body: undefined;
    answer: JobMetricsDocument;
  };
  /** Follow a job. */
  follow_job: {
    path: { job_id: string };
    query: { after?: number; lines?: boolean | null; results?: boolean };
    body: undefined;
    answer: Response;
  };
  /** Look an export up. */
  get_export: {
    path: { export_id: string };
    query: undefined;
    body: undefined;
    answer: ExportDocument;
  };
  /** Download an export. */
  download_export: {
    path: { export_id: string };
    query: undefined;
    body: undefined;
    answer: Response;
  };
  /** Wish for an export. */
  create_export: {
    path: { job_id: string };
    query: undefined;
    body: ExportCall;
    answer: ExportDocument;
  };
  /** List a job's exports. */
  list_exports: {
    path: { job_id: string };
    query: undefined;
    body: undefined;
    answer: ExportsDocument;
  };
  /** List sinks. */
  list_sinks: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: SinksDocument;
  };
  /** Deliver a job to a sink. */
  deliver_job: {
    path: { sink: string; job_id: string };
    query: { from_start?: boolean };
    body: undefined;
    answer: JobSinkDocument;
  };
  /** Make a schedule. */
  create_schedule: {
    path: undefined;
    query: undefined;
    body: ScheduleCall;
    answer: ScheduleDocument;
  };
  /** List schedules. */
  list_schedules: {
    path: undefined;
    query: { cursor?: string | null; limit?: number };
    body: undefined;
    answer: SchedulePageDocument;
  };
  /** A schedule. */
  get_schedule: {
    path: { schedule_id: string };
    query: undefined;
    body: undefined;
    answer: ScheduleDocument;
  };
  /** Change a schedule. */
  change_schedule: {
    path: { schedule_id: string };
    query: undefined;
    body: ScheduleChange;
    answer: ScheduleDocument;
  };
  /** Delete a schedule. */
  delete_schedule: {
    path: { schedule_id: string };
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Run it now. */
  run_schedule: {
    path: { schedule_id: string };
    query: undefined;
    body: undefined;
    answer: FiringDocument;
  };
  /** Pause a schedule. */
  pause_schedule: {
    path: { schedule_id: string };
    query: undefined;
    body: undefined;
    answer: ScheduleDocument;
  };
  /** Resume a schedule. */
  resume_schedule: {
    path: { schedule_id: string };
    query: undefined;
    body: undefined;
    answer: ScheduleDocument;
  };
  /** What became of its times. */
  get_schedule_history: {
    path: { schedule_id: string };
    query: undefined;
    body: undefined;
    answer: HistoryDocument;
  };
  /** List deliveries. */
  list_deliveries: {
    path: undefined;
    query: { subject?: string | null; state?: DeliveryState | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: DeliveryPageDocument;
  };
  /** A delivery. */
  get_delivery: {
    path: { delivery_id: string };
    query: undefined;
    body: undefined;
    answer: WholeDeliveryDocument;
  };
  /** Send a delivery again. */
  replay_delivery: {
    path: { delivery_id: string };
    query: undefined;
    body: undefined;
    answer: WholeDeliveryDocument;
  };
  /** List scrapers. */
  list_scrapers: {
    path: undefined;
    query: { site?: string | null; q?: string | null };
    body: undefined;
    answer: ScrapersDocument;
  };
  /** Look for new scrapers now. */
  refresh_scrapers: {
    path: undefined;
    query: undefined;
    body: Response;
    answer: ScrapersDocument | HookDocument | HookDocument;
  };
  /** Describe a scraper. */
  get_scraper: {
    path: { site: string; task: string };
    query: { version?: string | null };
    body: undefined;
    answer: ScraperDocument;
  };
  /** Channels of a scraper. */
  get_channels: {
    path: { site: string; task: string };
    query: undefined;
    body: undefined;
    answer: ChannelsDocument;
  };
  /** Move a channel. */
  move_channel: {
    path: { site: string; task: string; channel: string };
    query: undefined;
    body: MoveCall;
    answer: ChannelsDocument;
  };
  /** Take a move back. */
  unmove_channel: {
    path: { site: string; task: string; channel: string };
    query: undefined;
    body: undefined;
    answer: ChannelsDocument;
  };
  /** Read a scraper's files. */
  get_source: {
    path: { site: string; task: string };
    query: { version?: string | null };
    body: undefined;
    answer: ScraperSourceDocument;
  };
  /** Upload a Scrapy project. */
  put_project: {
    path: { project: string; version: string };
    query: undefined;
    body: Response;
    answer: UploadDocument;
  };
  /** Delete an upload. */
  delete_version: {
    path: { project: string; version: string };
    query: undefined;
    body: undefined;
    answer: ProjectDocument;
  };
  /** List the uploads of a project. */
  get_project: {
    path: { project: string };
    query: undefined;
    body: undefined;
    answer: ProjectDocument;
  };
  /** Delete a project. */
  delete_project: {
    path: { project: string };
    query: undefined;
    body: undefined;
    answer: ProjectDocument;
  };
  /** Drift of a scraper. */
  get_drift: {
    path: { site: string; task: string };
    query: undefined;
    body: undefined;
    answer: DriftDocument;
  };
  /** Accept the drift of a scraper. */
  accept_drift: {
    path: { site: string; task: string };
    query: undefined;
    body: undefined;
    answer: DriftDocument;
  };
  /** State of a scraper. */
  get_state: {
    path: { site: string; task: string };
    query: undefined;
    body: undefined;
    answer: StateDocument;
  };
  /** Remove the state of a scraper. */
  clear_state: {
    path: { site: string; task: string };
    query: undefined;
    body: undefined;
    answer: StateDocument;
  };
  /** A value of a scraper's state. */
  get_state_value: {
    path: { site: string; task: string; key: string };
    query: undefined;
    body: undefined;
    answer: StateValueDocument;
  };
  /** Remove a value of a scraper's state. */
  remove_state_value: {
    path: { site: string; task: string; key: string };
    query: undefined;
    body: undefined;
    answer: StateDocument;
  };
  /** List sites. */
  list_sites: {
    path: undefined;
    query: { cursor?: string | null; limit?: number };
    body: undefined;
    answer: SitePageDocument;
  };
  /** A site. */
  get_site: {
    path: { site: string };
    query: undefined;
    body: undefined;
    answer: SiteDocument;
  };
  /** Write a site's rules. */
  put_site: {
    path: { site: string };
    query: undefined;
    body: SiteCall;
    answer: SiteDocument;
  };
  /** Delete a site's rules. */
  delete_site: {
    path: { site: string };
    query: undefined;
    body: undefined;
    answer: SiteDocument;
  };
  /** Make a site well again. */
  reset_site: {
    path: { site: string };
    query: undefined;
    body: undefined;
    answer: SiteDocument;
  };
  /** Pools of proxies. */
  list_proxies: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: PoolsDocument;
  };
  /** Keep a pool. */
  put_proxies: {
    path: { name: string };
    query: undefined;
    body: PoolCall;
    answer: PoolDocument;
  };
  /** Remove a pool. */
  remove_proxies: {
    path: { name: string };
    query: undefined;
    body: undefined;
    answer: PoolsDocument;
  };
  /** Kept pages. */
  get_cache: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: CacheDocument;
  };
  /** Forget kept pages. */
  invalidate_cache: {
    path: undefined;
    query: undefined;
    body: InvalidateCall;
    answer: InvalidatedDocument;
  };
  /** Have pages ready. */
  warm_cache: {
    path: undefined;
    query: undefined;
    body: WarmCall;
    answer: Handles;
  };
  /** List secrets. */
  list_secrets: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: SecretsDocument;
  };
  /** Set a secret. */
  put_secret: {
    path: { site: string; task: string; name: string };
    query: undefined;
    body: SecretCall;
    answer: SecretDocument;
  };
  /** Remove a secret. */
  delete_secret: {
    path: { site: string; task: string; name: string };
    query: undefined;
    body: undefined;
    answer: SecretsDocument;
  };
  /** Forget a URL, a site or a client. */
  forget: {
    path: undefined;
    query: undefined;
    body: ForgetCall;
    answer: ForgottenDocument;
  };
  /** See how busy it is. */
  get_stats: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: StatsDocument;
  };
  /** See how busy it was. */
  get_history: {
    path: undefined;
    query: { hours?: number };
    body: undefined;
    answer: LoadHistoryDocument;
  };
  /** Tell how many workers are needed. */
  get_scale: {
    path: undefined;
    query: { target_seconds?: number; lane?: Array<string> };
    body: undefined;
    answer: ScaleDocument;
  };
  /** List workers. */
  list_workers: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: WorkersDocument;
  };
  /** See the settings in force. */
  get_settings: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: SettingsDocument;
  };
  /** Drain a worker. */
  drain_worker: {
    path: { worker_id: string };
    query: { exit?: boolean };
    body: undefined;
    answer: WorkerDocument;
  };
  /** Let a worker take work again. */
  undrain_worker: {
    path: { worker_id: string };
    query: undefined;
    body: undefined;
    answer: WorkerDocument;
  };
  /** Tell the state of every dependency. */
  health: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: HealthDocument;
  };
  /** Tell whether calls can be taken. */
  ready: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: ReadyDocument;
  };
  /** Tell what answers here. */
  root: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: RootDocument;
  };
  /** Tell that the process answers. */
  live: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: LiveDocument;
  };
  /** Metrics of this process. */
  metrics: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: Response;
  };
  /** List alerts. */
  list_alerts: {
    path: undefined;
    query: { state?: "firing" | "resolved" | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: AlertPageDocument;
  };
  /** Try the receivers of alerts. */
  try_alerts: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: AlertTestDocument;
  };
  /** List keys. */
  list_keys: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: KeysDocument;
  };
  /** Make a key. */
  create_key: {
    path: undefined;
    query: undefined;
    body: KeyCall;
    answer: NewKeyDocument;
  };
  /** A key. */
  get_key: {
    path: { key_id: string };
    query: undefined;
    body: undefined;
    answer: KeyDocument;
  };
  /** Revoke a key. */
  revoke_key: {
    path: { key_id: string };
    query: undefined;
    body: undefined;
    answer: KeyDocument;
  };
  /** Replace a key. */
  rotate_key: {
    path: { key_id: string };
    query: undefined;
    body: RotateCall;
    answer: NewKeyDocument;
  };
  /** Who calls. */
  get_identity: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: IdentityDocument;
  };
  /** Make a link. */
  create_link: {
    path: undefined;
    query: undefined;
    body: LinkCall;
    answer: LinkDocument;
  };
  /** Who has signed in. */
  get_session: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: SessionDocument;
  };
  /** Sign in with a key. */
  create_session: {
    path: undefined;
    query: undefined;
    body: SignInCall | null;
    answer: SessionDocument;
  };
  /** Sign out. */
  delete_session: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Sign in at the identity provider. */
  start_oidc: {
    path: undefined;
    query: { next?: string };
    body: undefined;
    answer: undefined;
  };
  /** Usage. */
  get_usage: {
    path: undefined;
    query: { by?: Array<"day" | "client" | "scraper" | "site"> | null; since?: string | null; until?: string | null; client?: string | null; scraper?: string | null; site?: string | null; format?: "json" | "csv" | null };
    body: undefined;
    answer: UsageReportDocument;
  };
  /** The audit. */
  list_audit: {
    path: undefined;
    query: { client?: string | null; action?: string | null; resource?: string | null; refused?: boolean | null; since?: string | null; until?: string | null; cursor?: string | null; limit?: number };
    body: undefined;
    answer: AuditPageDocument;
  };
  /** Query with GraphQL. */
  query_graphql: {
    path: undefined;
    query: undefined;
    body: GraphqlCall;
    answer: {
  /** What the query selects. */
  data?: Record<string, unknown> | null;
  /** What could not be answered; `extensions` has `code`, `status` and `remedy`. */
  errors?: Array<Record<string, unknown>>;
};
  };
  /** Query with GraphQL by GET. */
  get_graphql: {
    path: undefined;
    query: { query: string; variables?: string | null; operationName?: string | null };
    body: undefined;
    answer: {
  /** What the query selects. */
  data?: Record<string, unknown> | null;
  /** What could not be answered; `extensions` has `code`, `status` and `remedy`. */
  errors?: Array<Record<string, unknown>>;
};
  };
  /** Read the GraphQL schema. */
  get_graphql_schema: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: Response;
  };
}

/** Method and path of every operation. */
export const routes = {
  scrape: ["POST", "/api/scrape"],
  list_runs: ["GET", "/api/scrape"],
  get_run: ["GET", "/api/scrape/{run_id}"],
  cancel_run: ["DELETE", "/api/scrape/{run_id}"],
  get_logs: ["GET", "/api/scrape/{run_id}/logs"],
  explain_run: ["GET", "/api/scrape/{run_id}/explain"],
  follow_run: ["GET", "/api/scrape/{run_id}/events"],
  list_artifacts: ["GET", "/api/scrape/{run_id}/artifacts"],
  get_artifact: ["GET", "/api/scrape/{run_id}/artifacts/{name}"],
  crawl: ["POST", "/api/crawl"],
  map_site: ["POST", "/api/map"],
  extract: ["POST", "/api/extract"],
  list_patterns: ["GET", "/api/patterns"],
  get_pattern: ["GET", "/api/patterns/{pattern_id}"],
  put_pattern: ["PUT", "/api/patterns/{pattern_id}"],
  delete_pattern: ["DELETE", "/api/patterns/{pattern_id}"],
  create_job: ["POST", "/api/jobs"],
  list_jobs: ["GET", "/api/jobs"],
  append_items: ["POST", "/api/jobs/{job_id}/items"],
  list_items: ["GET", "/api/jobs/{job_id}/items"],
  get_job: ["GET", "/api/jobs/{job_id}"],
  change_job: ["PATCH", "/api/jobs/{job_id}"],
  delete_job: ["DELETE", "/api/jobs/{job_id}"],
  pause_job: ["POST", "/api/jobs/{job_id}/pause"],
  resume_job: ["POST", "/api/jobs/{job_id}/resume"],
  cancel_job: ["POST", "/api/jobs/{job_id}/cancel"],
  archive_job: ["POST", "/api/jobs/{job_id}/archive"],
  restore_job: ["POST", "/api/jobs/{job_id}/restore"],
  redrive_job: ["POST", "/api/jobs/{job_id}/redrive"],
  list_errors: ["GET", "/api/jobs/{job_id}/errors"],
  get_item: ["GET", "/api/jobs/{job_id}/items/{key}"],
  download_artifact: ["GET", "/api/jobs/{job_id}/items/{key}/download"],
  list_dead_letters: ["GET", "/api/dead-letters"],
  get_results: ["GET", "/api/jobs/{job_id}/results"],
  get_metrics: ["GET", "/api/jobs/{job_id}/metrics"],
  follow_job: ["GET", "/api/jobs/{job_id}/stream"],
  get_export: ["GET", "/api/exports/{export_id}"],
  download_export: ["GET", "/api/exports/{export_id}/download"],
  create_export: ["POST", "/api/jobs/{job_id}/exports"],
  list_exports: ["GET", "/api/jobs/{job_id}/exports"],
  list_sinks: ["GET", "/api/sinks"],
  deliver_job: ["POST", "/api/jobs/{job_id}/sinks/{sink}"],
  create_schedule: ["POST", "/api/schedule"],
  list_schedules: ["GET", "/api/schedule"],
  get_schedule: ["GET", "/api/schedule/{schedule_id}"],
  change_schedule: ["PATCH", "/api/schedule/{schedule_id}"],
  delete_schedule: ["DELETE", "/api/schedule/{schedule_id}"],
  run_schedule: ["POST", "/api/schedule/{schedule_id}/run"],
  pause_schedule: ["POST", "/api/schedule/{schedule_id}/pause"],
  resume_schedule: ["POST", "/api/schedule/{schedule_id}/resume"],
  get_schedule_history: ["GET", "/api/schedule/{schedule_id}/history"],
  list_deliveries: ["GET", "/api/webhooks/deliveries"],
  get_delivery: ["GET", "/api/webhooks/deliveries/{delivery_id}"],
  replay_delivery: ["POST", "/api/webhooks/deliveries/{delivery_id}/replay"],
  list_scrapers: ["GET", "/api/scrapers"],
  refresh_scrapers: ["POST", "/api/scrapers/refresh"],
  get_scraper: ["GET", "/api/scrapers/{site}/{task}"],
  get_channels: ["GET", "/api/scrapers/{site}/{task}/channels"],
  move_channel: ["PUT", "/api/scrapers/{site}/{task}/channels/{channel}"],
  unmove_channel: ["DELETE", "/api/scrapers/{site}/{task}/channels/{channel}"],
  get_source: ["GET", "/api/scrapers/{site}/{task}/source"],
  put_project: ["PUT", "/api/projects/{project}/versions/{version}"],
  delete_version: ["DELETE", "/api/projects/{project}/versions/{version}"],
  get_project: ["GET", "/api/projects/{project}"],
  delete_project: ["DELETE", "/api/projects/{project}"],
  get_drift: ["GET", "/api/scrapers/{site}/{task}/drift"],
  accept_drift: ["DELETE", "/api/scrapers/{site}/{task}/drift"],
  get_state: ["GET", "/api/scrapers/{site}/{task}/state"],
  clear_state: ["DELETE", "/api/scrapers/{site}/{task}/state"],
  get_state_value: ["GET", "/api/scrapers/{site}/{task}/state/{key}"],
  remove_state_value: ["DELETE", "/api/scrapers/{site}/{task}/state/{key}"],
  list_sites: ["GET", "/api/sites"],
  get_site: ["GET", "/api/sites/{site}"],
  put_site: ["PUT", "/api/sites/{site}"],
  delete_site: ["DELETE", "/api/sites/{site}"],
  reset_site: ["POST", "/api/sites/{site}/reset"],
  list_proxies: ["GET", "/api/proxies"],
  put_proxies: ["PUT", "/api/proxies/{name}"],
  remove_proxies: ["DELETE", "/api/proxies/{name}"],
  get_cache: ["GET", "/api/cache"],
  invalidate_cache: ["POST", "/api/cache/invalidate"],
  warm_cache: ["POST", "/api/cache/warm"],
  list_secrets: ["GET", "/api/secrets"],
  put_secret: ["PUT", "/api/secrets/{site}/{task}/{name}"],
  delete_secret: ["DELETE", "/api/secrets/{site}/{task}/{name}"],
  forget: ["POST", "/api/forget"],
  get_stats: ["GET", "/api/stats"],
  get_history: ["GET", "/api/stats/history"],
  get_scale: ["GET", "/api/stats/scale"],
  list_workers: ["GET", "/api/workers"],
  get_settings: ["GET", "/api/settings"],
  drain_worker: ["POST", "/api/workers/{worker_id}/drain"],
  undrain_worker: ["DELETE", "/api/workers/{worker_id}/drain"],
  health: ["GET", "/api/health"],
  ready: ["GET", "/api/ready"],
  root: ["GET", "/"],
  live: ["GET", "/api/live"],
  metrics: ["GET", "/metrics"],
  list_alerts: ["GET", "/api/alerts"],
  try_alerts: ["POST", "/api/alerts/test"],
  list_keys: ["GET", "/api/keys"],
  create_key: ["POST", "/api/keys"],
  get_key: ["GET", "/api/keys/{key_id}"],
  revoke_key: ["DELETE", "/api/keys/{key_id}"],
  rotate_key: ["POST", "/api/keys/{key_id}/rotate"],
  get_identity: ["GET", "/api/identity"],
  create_link: ["POST", "/api/links"],
  get_session: ["GET", "/api/session"],
  create_session: ["POST", "/api/session"],
  delete_session: ["DELETE", "/api/session"],
  start_oidc: ["GET", "/api/session/oidc/start"],
  get_usage: ["GET", "/api/usage"],
  list_audit: ["GET", "/api/audit"],
  query_graphql: ["POST", "/api/graphql"],
  get_graphql: ["GET", "/api/graphql"],
  get_graphql_schema: ["GET", "/api/graphql/schema"],
} as const;

/** Operations that take an `Idempotency-Key`. */
export const keyed: readonly string[] = ["scrape", "crawl", "map_site", "extract", "create_job", "append_items"];
