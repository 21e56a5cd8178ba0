/** A client of a Scrapeyard server. It needs `fetch`, and nothing else. */

import { keyed, routes } from "./types.js";
import type { Handle, Handles, ItemDocument, JobDocument, Operations, PageResult, Problem } from "./types.js";
import type { RunDocument, RunDocuments, ScrapeCall } from "./types.js";

export * from "./types.js";

type Name = keyof Operations;
type Given<T> = T extends undefined ? { body?: undefined } : { body: T };
type Parts<N extends Name> = (Operations[N]["path"] extends undefined ? { path?: undefined } : { path: Operations[N]["path"] }) & {
  query?: Operations[N]["query"];
  headers?: Record<string, string>;
  signal?: AbortSignal;
} & Given<Operations[N]["body"]>;

/** A run whose result is known to be of one type. */
export type TypedRun<T> = Omit<RunDocument, "result"> & { result: T };
/** One live event; `id` is undefined for events that are not sent again. */
export interface LiveEvent {
  name: string;
  data: unknown;
  id?: number;
}

/** How calls are repeated. */
export interface Retries {
  attempts: number;
  firstSeconds: number;
  maxSeconds: number;
}

/** The server refused a call, or a run ended badly. `code` is stable; `remedy` tells what to do. */
export class ApiError extends Error {
  readonly status: number;
  readonly problem: Partial<Problem> & { exit_reason?: string; id?: string };

  constructor(status: number, problem: Partial<Problem>) {
    super(`${status} ${problem.code ?? "no problem document"}: ${problem.detail ?? ""} ${problem.remedy ?? ""}`.trim());
    this.name = "ApiError";
    this.status = status;
    this.problem = problem;
  }

  get code(): string {
    return this.problem.code ?? "";
  }
}

const ENDED_RUN = ["succeeded", "failed", "cancelled"];
const ENDED_JOB = ["completed", "failed", "cancelled"];
const SAFE = ["GET", "HEAD", "PUT", "DELETE"];

export class Scrapeyard {
  readonly url: string;
  readonly retries: Retries;
  private readonly fetch: typeof globalThis.fetch;
  private readonly key?: string;

  /** `key` is what the server knows the caller by; leave it out where nobody is asked for one. */
  constructor(url = "http://127.0.0.1:8000", options: { key?: string; retries?: Partial<Retries>; fetch?: typeof globalThis.fetch } = {}) {
    this.key = options.key;
    this.url = url.replace(/\/+$/, "");
    this.retries = { attempts: 4, firstSeconds: 0.5, maxSeconds: 30, ...options.retries };
    this.fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  /** Any operation of the API, by its id. Calls that make runs and jobs carry an Idempotency-Key: a retry does no harm. */
  async call<N extends Name>(name: N, parts: Parts<N>): Promise<Operations[N]["answer"]> {
    const response = await this.send(name, parts);
    if (response.status === 204) return undefined as Operations[N]["answer"];
    const isJson = (response.headers.get("content-type") ?? "").startsWith("application/json");
    return (isJson ? await response.json() : response) as Operations[N]["answer"];
  }

  /** Read one page, by `builtin/page`, and wait for its end. */
  async scrape(url: string, more: Partial<ScrapeCall> = {}): Promise<TypedRun<PageResult>> {
    return (await this.started({ ...more, url })) as TypedRun<PageResult>;
  }

  /** Run a scraper on an input, and wait for its end. */
  async run<T = unknown>(scraper: string, input: Record<string, unknown> = {}, more: Partial<ScrapeCall> = {}): Promise<TypedRun<T>> {
    return (await this.started({ ...more, scraper, input })) as TypedRun<T>;
  }

  /** A job when it has ended and its files are written. */
  async waitForJob(jobId: string, signal?: AbortSignal): Promise<JobDocument> {
    for (let pause = 0.2; ; pause = Math.min(2, pause * 1.5)) {
      const job = await this.call("get_job", { path: { job_id: jobId }, signal });
      if (ENDED_JOB.includes(job.status) && !job.files_pending) return job;
      await sleep(pause, signal);
    }
  }

  /** The items of a job, page after page. */
  async *items(jobId: string, query: Operations["list_items"]["query"] = {}): AsyncGenerator<ItemDocument> {
    let cursor: string | null | undefined;
    do {
      const page = await this.call("list_items", { path: { job_id: jobId }, query: { limit: 200, ...query, cursor } });
      yield* page.items;
      cursor = page.next_cursor;
    } while (cursor);
  }

  /** Live events of a job until its `end`. A stream that breaks is taken up where it was. */
  async *events(jobId: string, signal?: AbortSignal): AsyncGenerator<LiveEvent> {
    let last: number | undefined;
    for (let failures = 0; ; ) {
      const headers: Record<string, string> = last === undefined ? {} : { "Last-Event-ID": String(last) };
      try {
        const response = await this.send("follow_job", { path: { job_id: jobId }, headers, signal });
        for await (const event of eventsOf(response)) {
          failures = 0;
          last = event.id ?? last;
          yield event;
          if (event.name === "end") return;
        }
      } catch (error) {
        if (error instanceof ApiError || signal?.aborted) throw error;
      }
      failures += 1;
      if (failures >= this.retries.attempts) throw new Error("the event stream ended before its end");
      await sleep(this.backoff(failures), signal);
    }
  }

  private async started(body: Partial<ScrapeCall>): Promise<RunDocument> {
    const answer: RunDocument | RunDocuments | Handle | Handles = await this.call("scrape", { body: body as ScrapeCall });
    let run = answer as RunDocument;
    if (body.wait === 0) return run;
    while (!ENDED_RUN.includes(run.status)) {
      run = await this.call("get_run", { path: { run_id: run.id }, query: { wait: 30 } });
    }
    if (run.status !== "succeeded") throw new ApiError(200, { code: run.exit_reason ?? "", detail: run.error?.message ?? "" });
    return run;
  }

  private async send<N extends Name>(name: N, parts: Parts<N>): Promise<Response> {
    const [method, template] = routes[name];
    const path = template.replace(/\{(\w+)\}/g, (_, key: string) =>
      encodeURIComponent(String((parts.path as Record<string, unknown>)[key])),
    );
    const request = this.request(name, method, parts);
    const safe = SAFE.includes(method) || "Idempotency-Key" in (request.headers as Record<string, string>);
    for (let attempt = 1; ; attempt += 1) {
      const last = attempt >= this.retries.attempts;
      let response: Response;
      try {
        response = await this.fetch(this.url + path + queryOf(parts.query ?? {}), request);
      } catch (error) {
        if (last || !safe || parts.signal?.aborted) throw error;
        await sleep(this.backoff(attempt), parts.signal);
        continue;
      }
      if (response.ok) return response;
      if (last || ![429, 503].includes(response.status)) throw new ApiError(response.status, await problemOf(response));
      const asked = Number(response.headers.get("retry-after")) || this.backoff(attempt);
      await sleep(Math.min(asked, this.retries.maxSeconds), parts.signal);
    }
  }

  private request(name: Name, method: string, parts: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal }): RequestInit {
    const headers: Record<string, string> = { Prefer: "dialect=own" };
    if (this.key !== undefined) headers["Authorization"] = `Bearer ${this.key}`;
    if (parts.body !== undefined) headers["Content-Type"] = "application/json";
    if (keyed.includes(name)) headers["Idempotency-Key"] = crypto.randomUUID();
    const body = parts.body === undefined ? undefined : JSON.stringify(parts.body);
    return { method, headers: { ...headers, ...parts.headers }, body, signal: parts.signal };
  }

  private backoff(attempt: number): number {
    const most = Math.min(this.retries.firstSeconds * 2 ** (attempt - 1), this.retries.maxSeconds);
    return most * (0.5 + Math.random() / 2);
  }
}

/** The events of a response, wherever its pieces are cut. */
async function* eventsOf(response: Response): AsyncGenerator<LiveEvent> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let name = "";
  let id: number | undefined;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const at = line.indexOf(": ");
        const [field, text] = [line.slice(0, Math.max(at, 0)), line.slice(at + 2).replace(/\r$/, "")];
        if (field === "event") name = text;
        else if (field === "id") id = Number(text);
        else if (field === "data") {
          yield { name, data: JSON.parse(text), id };
          id = undefined;
        }
      }
    }
  } finally {
    await reader.cancel();
  }
}

function queryOf(query: object): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null) found.append(name, String(each));
    }
  }
  return found.size ? `?${found}` : "";
}

async function problemOf(response: Response): Promise<Partial<Problem>> {
  try {
    return (await response.json()) as Partial<Problem>;
  } catch {
    return {};
  }
}

function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => (clearTimeout(timer), reject(signal?.reason));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", stop), resolve()), seconds * 1000);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
