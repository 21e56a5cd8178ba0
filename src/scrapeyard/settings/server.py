"""Settings of the roles: gateway, worker, dispatcher; and of logs and traces."""

import os
import re
from ipaddress import ip_network
from pathlib import Path
from typing import Literal, Self
from urllib.parse import unquote

from pydantic import Field, SecretStr, field_validator, model_validator

from scrapeyard.model import Limits
from scrapeyard.model.lanes import ScraperLanes
from scrapeyard.settings.section import Section


class GatewaySettings(Section):
    """The HTTP API."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    allow_public: bool = Field(
        False,
        description="Listen on an address that other machines reach even if nobody is asked for a key "
        "(`--insecure`): only behind a firewall, or a proxy that authenticates.",
    )
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    tls_cert_file: Path | None = Field(
        None, description="PEM file of its certificate and those between it and the authority; empty: plain HTTP."
    )
    tls_key_file: Path | None = Field(
        None, description="PEM file of the certificate's private key. Both are read again when they change."
    )
    wait_seconds: float = Field(30, gt=0, le=300, description="Seconds a call waits for its answer by default.")
    max_wait_seconds: float = Field(300, gt=0, le=3600, description="Maximum seconds a call may wait.")
    max_body_mb: float = Field(
        10, gt=0, le=1024, description="Maximum size of a request body; larger ones are refused before they are read."
    )
    max_upload_mb: float = Field(2048, gt=0, le=20_480, description="Maximum size of an uploaded list of items.")
    max_urls: int = Field(1000, ge=1, le=100_000, description="Maximum URLs in one call.")
    max_backlog: int = Field(10_000, ge=1, description="Maximum runs queued in one lane; further calls get 503.")
    max_waiting: int = Field(
        2000, ge=1, description="Maximum calls that wait for an answer at once; further calls get 429."
    )
    max_streams: int = Field(500, ge=1, description="Maximum jobs watched live at once; further watchers get 429.")
    hosts: tuple[str, ...] = Field(
        (),
        description="Names under which clients call the gateway, e.g. `scrape.example.com`, `*.example.com`; `*` for "
        "any. IP addresses, `localhost` and names without a dot need not be listed.",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="Addresses or networks (CIDR) of proxies whose X-Forwarded-For tells where a call comes from.",
    )
    dialect: Literal["own", "tasks", "site"] = Field(
        "own", description="Words of answers to clients that do not ask for a dialect by `Prefer: dialect=…`."
    )
    doors: tuple[Literal["firecrawl", "flaresolverr", "scrapyd", "scrapyrt"], ...] = Field(
        ("firecrawl", "flaresolverr", "scrapyd", "scrapyrt"),
        description="APIs of other tools that are spoken as well: `firecrawl` under `/v1/` and `/v2/`, `flaresolverr` "
        "at `/v1`, `scrapyd` (`/schedule.json` and others), `scrapyrt` (`/crawl.json`). Empty: none.",
    )
    cors_origins: tuple[str, ...] = Field((), description="Web origins that may call from a browser; `*` for any.")

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("set both tls_cert_file and tls_key_file, or neither")
        return self

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for each in given:
            ip_network(each, strict=False)
        return given


class AuthSettings(Section):
    """Who may call."""

    mode: Literal["auto", "on", "off"] = Field(
        "auto",
        description="on: every call needs credentials, and a first start without keys makes an admin key and prints "
        "it; auto: as soon as there is a key; off: nobody is asked.",
    )
    pepper: SecretStr = Field(
        SecretStr(""),
        description="Secret under which keys are hashed, at least 32 characters, the same on every gateway; empty: "
        "the file `pepper` in the data directory, made at the first need.",
    )
    session_hours: float = Field(
        12, gt=0, le=720, description="Hours after which people who signed in with a browser must do so again."
    )

    @field_validator("pepper")
    @classmethod
    def _is_long(cls, pepper: SecretStr) -> SecretStr:
        if 0 < len(pepper.get_secret_value()) < 32:
            raise ValueError("shorter than 32 characters; take a longer one, such as `openssl rand -hex 32` prints")
        return pepper


class WorkerSettings(Section):
    """Taking and running."""

    slots: int = Field(0, ge=0, le=1024, description="Runs at once; 0: four per core.")
    reserved_slots: int = Field(-1, ge=-1, description="Slots reserved for priority high; -1: a quarter, at least one.")
    lanes: tuple[str, ...] = Field(("default",), min_length=1, description="Lanes this worker takes from.")
    takes: tuple[str, ...] = Field(
        (),
        description="Scrapers whose work this worker takes, as patterns of lanes.patterns: `shop/*`; `!shop/*` for all "
        "but these; empty: the work of every scraper.",
    )
    heartbeat_seconds: float = Field(2, gt=0, le=60, description="Seconds between heartbeats.")
    lease_seconds: float = Field(
        15,
        gt=1,
        le=600,
        description="Seconds without a heartbeat after which a worker's runs are given to another worker.",
    )
    drain_seconds: float = Field(
        20, ge=0, le=600, description="Seconds that running work may take to finish after SIGTERM."
    )
    ahead: int = Field(2, ge=0, le=64, description="Idle children kept ready for each busy scraper.")
    page_readers: int = Field(
        0, ge=0, le=64, description="Processes that read pages for built-in scrapers; 0: one per core, at least two."
    )
    warm_runs: int = Field(
        1000, ge=1, le=1_000_000, description='Runs after which a child of a scraper with isolation = "warm" is ended.'
    )
    warm_idle_seconds: float = Field(
        300, gt=0, le=86_400, description="Seconds after which such a child is ended if it has no run."
    )
    idle_scraper_seconds: float = Field(120, gt=0, description="Seconds after which an unused scraper is unloaded.")
    max_scrapers: int = Field(
        32, ge=1, description="Maximum loaded scrapers; the least recently used is unloaded first."
    )

    @property
    def page_readers_here(self) -> int:
        """The processes that read pages on this machine."""
        return self.page_readers or max(2, os.cpu_count() or 1)

    @property
    def slots_here(self) -> int:
        """The slots of a worker on this machine."""
        return self.slots or 4 * (os.cpu_count() or 1)


class LaneSettings(Section):
    """Work of some scrapers in lanes of its own."""

    patterns: tuple[str, ...] = Field(
        (),
        max_length=100,
        description="Scrapers whose work waits in a lane of its own, by site and task: `shop/*`, `*/product`. The "
        "first that matches counts; the same on every gateway, dispatcher and worker.",
    )

    @field_validator("patterns")
    @classmethod
    def _fit(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if fault := ScraperLanes(patterns).pattern_fault():
            raise ValueError(fault)
        return patterns


class SandboxSettings(Section):
    """Walls around children."""

    mode: Literal["auto", "strict", "off"] = Field(
        "auto", description="auto: every wall the kernel offers; strict: do not start unless all are there; off: none."
    )
    without: tuple[str, ...] = Field((), description="Walls to leave out, by the names that `doctor` prints.")
    uid_base: int = Field(
        2_000_000, ge=1000, description="First of the user ids that scrapers run under when the worker is root."
    )
    direct_network: tuple[str, ...] = Field((), description='Ids of scrapers that may use network = "direct".')
    load_seconds: float = Field(20, gt=0, le=600, description="Maximum seconds a script may take to load.")
    unread_mb: float = Field(
        64,
        gt=0,
        description="Size of the pages that wait until a script reads them, above which its further fetches wait.",
    )
    unread_max_mb: float = Field(
        400, gt=0, description="Maximum size of the pages that wait for one script; more ends its run as memory_limit."
    )
    unread_worker_mb: float = Field(
        1024,
        gt=0,
        description="Maximum size of the pages that wait for all scripts of a worker; more ends the run with the most.",
    )


class LimitSettings(Section):
    """The ceiling for every scraper's own limits."""

    wall_seconds: float = Field(300, gt=0, description="Maximum seconds of one run.")
    cpu_seconds: float = Field(300, gt=0, description="Maximum processor seconds of one run.")
    memory_mb: int = Field(2048, ge=16, description="Maximum memory of one run, beyond the bare interpreter's.")
    disk_mb: int = Field(1024, ge=1, description="Maximum size of the files in the run's own folder.")
    output_mb: float = Field(100, gt=0, description="Maximum size of the result as JSON.")
    log_kb: int = Field(4096, ge=1, description="Maximum size of stdout, stderr and logs together.")
    artifact_mb: float = Field(500, gt=0, description="Maximum size of all artifacts together.")
    threads: int = Field(256, ge=1, description="Maximum threads.")
    fetches: int = Field(100_000, ge=1, description="Maximum requests to the web.")

    def as_limits(self) -> Limits:
        """Convert to the model's Limits."""
        return Limits(**self.model_dump())


class JobSettings(Section):
    """How the items of jobs reach workers."""

    tick_seconds: float = Field(0.05, ge=0.01, le=1, description="Seconds between two rounds of handing out items.")
    batch_seconds: float = Field(1, gt=0, le=60, description="Target duration of one batch on one slot, in seconds.")
    batch_items: int = Field(1000, ge=1, le=1000, description="Maximum items in one batch.")
    window: float = Field(0.5, gt=0, le=100, description="Batches queued in a lane for each slot of its workers.")
    early_files_from: int = Field(
        20_000,
        ge=0,
        description="Ended items from which on the files of a quick job are begun in a process of their own while it "
        "runs; 0, or a single core: when it has ended.",
    )
    round_seconds: float = Field(
        1,
        ge=0.05,
        le=5,
        description="Seconds between rounds of reading sources, following links, finishing jobs and exports.",
    )

    kafka_url: SecretStr = Field(
        SecretStr(""),
        description="kafka://user:password@host:port, or kafka+ssl://…: cluster whose topics jobs may read items from, "
        "with the options of `queue.url`; empty: none.",
    )
    kafka_topics: tuple[str, ...] = Field(
        (), max_length=1000, description="Topics that jobs may read, or patterns such as crawl.*; empty: none."
    )

    @property
    def early_files_from_here(self) -> int:
        """The same on this machine."""
        return self.early_files_from if (os.cpu_count() or 1) > 1 else 0


class WebhookSettings(Section):
    """Telling receivers what happened to jobs and runs."""

    secret: SecretStr = Field(
        SecretStr(""), description="Default secret that signs webhooks; empty: every call must bring its own."
    )
    timeout_seconds: float = Field(
        10, gt=0, le=120, description="Maximum seconds for one attempt, from connecting to the answer."
    )
    first_seconds: float = Field(10, gt=0, le=3600, description="Seconds before the second attempt; doubles with each.")
    cap_seconds: float = Field(3600, gt=0, le=86_400, description="Maximum seconds between two attempts.")
    give_up_hours: float = Field(24, ge=0, le=720, description="Hours after which a message is given up.")
    concurrency: int = Field(16, ge=1, le=256, description="Maximum messages being sent at once.")
    allow_hosts: tuple[str, ...] = Field(
        (), description="Private hosts or networks (CIDR) that may receive webhooks, besides http.allow_hosts."
    )

    @field_validator("secret")
    @classmethod
    def _is_long(cls, secret: SecretStr) -> SecretStr:
        if 0 < len(secret.get_secret_value()) < 16:
            raise ValueError("shorter than 16 characters can be guessed; take a longer one")
        return secret


class RetentionSettings(Section):
    """How long things are kept."""

    runs_days: float = Field(7, gt=0, description="Days to keep finished runs with their logs, results and artifacts.")
    keys_hours: float = Field(24, gt=0, description="Hours to keep idempotency keys.")
    jobs_days: float = Field(
        30, gt=0, description="Days to keep finished jobs with their items, results, artifacts and exports."
    )
    archive_days: float | None = Field(
        None, gt=0, description="Days after which a finished job's items move to the blob store; empty: never."
    )
    failed_days: float | None = Field(
        None,
        gt=0,
        description="Days to keep runs and jobs that failed, and jobs whose items all failed; empty: as the others.",
    )
    results_days: float | None = Field(
        None,
        gt=0,
        description="Days to keep results, and manifests, changes and exports of jobs; empty: as long as the run or "
        "job. Like the next three, a scraper or a call may set its own (`policy.retention`).",
    )
    artifacts_days: float | None = Field(
        None, gt=0, description="Days to keep artifacts that are not HTML; empty: as long as the run or job."
    )
    html_days: float | None = Field(
        None, gt=0, description="Days to keep artifacts that are HTML; empty: as long as the run or job."
    )
    logs_days: float | None = Field(
        None, gt=0, description="Days to keep what scripts wrote; empty: as long as the run or job."
    )
    snapshots_days: float | None = Field(
        None,
        gt=0,
        description="Days to keep the pages of a scope that nobody crawls any more; empty: always.",
    )
    webhooks_days: float = Field(7, gt=0, description="Days to keep delivered or given-up webhook messages.")
    audit_days: float = Field(365, ge=1, description="Days to keep the audit of changes and refused calls.")
    usage_days: float = Field(
        90, ge=31, description="Days to keep the daily usage of clients, scrapers, sites and proxies."
    )


class LogSettings(Section):
    """Logs, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Lowest level to log.")
    format: Literal["auto", "human", "json"] = Field("auto", description="auto: human on a terminal, JSON otherwise.")
    lang: Literal["en", "ko"] = Field("en", description="Language of log messages.")


class TelemetrySettings(Section):
    """Metrics and traces."""

    metrics_host: str = Field("127.0.0.1", description="Address on which a worker or dispatcher serves `/metrics`.")
    metrics_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="Port on which a process without a gateway serves `/metrics`; 0 takes a free one; empty: none. A "
        "gateway, and `up`, serve it on their own port.",
    )
    site_classes: tuple[str, ...] = Field(
        (),
        max_length=100,
        description="Classes of sites in metrics of fetches, as `class=site`: `shops=shop.example`, "
        "`shops=*.store.example`. Other sites are of the class `other`.",
    )
    otlp_endpoint: str = Field(
        "", description="Where traces go, e.g. http://127.0.0.1:4318, or :4317 for gRPC; empty: no traces."
    )
    otlp_protocol: Literal["http/json", "http/protobuf", "grpc"] = Field(
        "http/json", description="How traces are sent; the last two need the extra `otlp`."
    )
    otlp_headers: SecretStr = Field(
        SecretStr(""),
        description="Headers sent with traces, as OpenTelemetry writes them: `name=value,name=value`, values "
        "percent-encoded: `authorization=Bearer%20…`.",
    )
    trace_share: float = Field(
        1, ge=0, le=1, description="Share of calls without a `traceparent` that are traced; the others' callers decide."
    )
    item_trace_share: float = Field(
        0.01, ge=0, le=1, description="Share of the items of a traced job that are traced, besides its first ten."
    )

    def headers_of_otlp(self) -> dict[str, str]:
        """Name in small letters and value of each. Raises ValueError."""
        found = {}
        for part in filter(None, (part.strip() for part in self.otlp_headers.get_secret_value().split(","))):
            name, sign, value = (text.strip() for text in part.partition("="))
            value = unquote(value)
            if (
                not sign
                or not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", name)
                or not value.isascii()
                or not value.isprintable()
            ):
                raise ValueError("write name=value,name=value, with values percent-encoded")
            found[name.lower()] = value
        return found

    @model_validator(mode="after")
    def _are_headers(self) -> Self:
        self.headers_of_otlp()
        return self

    @field_validator("site_classes")
    @classmethod
    def _are_classes(cls, classes: tuple[str, ...]) -> tuple[str, ...]:
        for one in classes:
            name, sign, site = one.partition("=")
            if not sign or not site or not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", name):
                raise ValueError(f"{one[:80]!r}: write class=site, the class in small letters, e.g. shops=shop.example")
        return classes
