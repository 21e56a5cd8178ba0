"""Scrapeyard: a self-hosted Lambda for scrapers.

The packages, in the order in which a call meets them (docs/architecture.md has the same table):

cli             The `scrapeyard` command: starts the roles, calls a server, runs scrapers locally, checks a machine.
scrapeyard_client  A client of a server, sync and async, for programs that import nothing of the platform.
authoring       Creates, records, replays, validates and certifies scrapers.
demo            The practice shop: a small site to scrape without a network.
wiring          The composition root: turns settings into adapters and services, and starts the roles.
gateway         The HTTP API: checks calls, publishes runs, waits for outcomes, creates and controls jobs.
dispatch        The dispatcher: feeds jobs, finishes them, recovers lost work, starts schedules, sends webhooks.
inputs          Turns lists, sitemaps and followed links into the items of a job.
worker          Takes runs and batches from the queue, executes them and reports their outcomes.
sandbox         Runs scripts in walled child processes and enforces their limits.
scrapeyard_sdk  What a script imports, and the child's end of the connection to its worker.
builtin         The scrapers that come with the platform; they run in the worker, without a child.
engines         Fetches pages: cache, budgets, robots.txt, rates, proxies, blocks, the solver, the HTTP client.
repository      Finds, checks and caches scrapers and their versions, and installs the packages that they require.
results         Writes what a job leaves: artifacts, manifests, changes, exports; delivers to sinks.
child_process   Starts a program, talks with it through pipes, and ends it for certain.
framed_process  Starts a helper process and talks with it in frames over stdin and stdout.
libc            The few C library calls that Python does not offer.
store           The database: runs, jobs, items, schedules and webhooks, on SQLite or PostgreSQL.
queues          Carries runs and batches to workers, and messages between processes, in memory or on a broker.
aws             Reads URLs that name a service of Amazon, or a server that speaks as it.
background      Runs the background tasks of long-lived parts, stops them and logs their faults.
kafka           The addresses, producers and consumers that Kafka adapters share.
redis           The connections and key names that Redis adapters share.
sealing         Encrypts secrets before they are stored: data keys seal values, and a master key wraps the data keys.
blobs           Stores large results, artifacts, manifests and exports, in a folder or a bucket.
extras          The optional packages: what each is for, and what to run if one is missing.
zstd            Compresses and decompresses zstd, with the standard library or its backport.
telemetry       Log events with their words in English and Korean, metrics and traces.
settings        All settings: unit, default and meaning of each, read and checked once at the start.
errors          The tree of errors, each with a stable code and a sentence that tells the remedy.
model           The nouns and their states: scraper, run, job, item, batch, export, schedule, webhook.
"""

__version__ = "0.1.0"
