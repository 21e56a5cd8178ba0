"""Settings of the roles: gateway, worker, dispatcher; and of logs and traces."""

from typing import Literal

from pydantic import Field, SecretStr, field_validator

from scrapeyard.model import Limits
from scrapeyard.settings.section import Section


class GatewaySettings(Section):
    """The HTTP API."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    wait_seconds: float = Field(30, gt=0, le=300, description="How long a call waits when it does not say.")
    max_wait_seconds: float = Field(300, gt=0, le=3600, description="The longest a call may wait.")
    max_body_mb: float = Field(10, gt=0, le=1024, description="Larger request bodies are refused before they are read.")
    max_upload_mb: float = Field(2048, gt=0, le=20_480, description="The same for lists of items that are uploaded.")
    max_urls: int = Field(1000, ge=1, le=100_000, description="URLs in one call.")
    max_backlog: int = Field(10_000, ge=1, description="Runs that may wait in one lane; beyond it calls get 503.")
    max_waiting: int = Field(2000, ge=1, description="Calls that may wait for an answer at once; beyond it 429.")
    max_streams: int = Field(500, ge=1, description="Jobs that may be watched live at once; beyond it 429.")
    cors_origins: tuple[str, ...] = Field((), description="Origins that browsers may call from; `*` for any.")


class WorkerSettings(Section):
    """Taking and running."""

    slots: int = Field(0, ge=0, le=1024, description="Runs at once; 0 means four per core.")
    reserved_slots: int = Field(-1, ge=-1, description="Slots kept for priority high; -1: a quarter, at least one.")
    lanes: tuple[str, ...] = Field(("default",), min_length=1, description="Lanes this worker takes from.")
    heartbeat_seconds: float = Field(2, gt=0, le=60, description="Between heartbeats.")
    lease_seconds: float = Field(15, gt=1, le=600, description="A run is another's when its worker was silent so long.")
    drain_seconds: float = Field(20, ge=0, le=600, description="On SIGTERM, how long running work may finish.")
    ahead: int = Field(2, ge=0, le=64, description="Children forked ahead of need for each busy scraper.")
    idle_scraper_seconds: float = Field(120, gt=0, description="A loaded scraper unused so long is let go.")
    max_scrapers: int = Field(32, ge=1, description="Loaded scrapers kept at once; the least recently used goes.")


class SandboxSettings(Section):
    """Walls around children."""

    mode: Literal["auto", "strict", "off"] = Field(
        "auto", description="auto: every wall the kernel has; strict: refuse to start without all; off: none."
    )
    without: tuple[str, ...] = Field((), description="Walls to leave out, by the names that `doctor` prints.")
    uid_base: int = Field(2_000_000, ge=1000, description="As root, each scraper runs under a user id from here on.")
    direct_network: tuple[str, ...] = Field(
        (), description='Scrapers (by id) that are granted the network = "direct" they ask for.'
    )
    load_seconds: float = Field(20, gt=0, le=600, description="How long a script may take to load.")


class LimitSettings(Section):
    """The ceiling for every scraper's own limits."""

    wall_seconds: float = Field(300, gt=0, description="Wall clock.")
    cpu_seconds: float = Field(300, gt=0, description="Processor time.")
    memory_mb: int = Field(2048, ge=16, description="Memory beyond the bare interpreter's.")
    disk_mb: int = Field(1024, ge=1, description="Files in the run's own folder.")
    output_mb: float = Field(100, gt=0, description="Result as JSON.")
    log_kb: int = Field(4096, ge=1, description="stdout, stderr and logs together.")
    artifact_mb: float = Field(500, gt=0, description="Artifacts together.")
    threads: int = Field(256, ge=1, description="Threads.")
    fetches: int = Field(100_000, ge=1, description="Requests to the web.")

    def as_limits(self) -> Limits:
        """The same as the model's noun."""
        return Limits(**self.model_dump())


class JobSettings(Section):
    """How the items of jobs reach workers."""

    tick_seconds: float = Field(0.05, ge=0.01, le=1, description="Between looks at what may be handed out.")
    batch_seconds: float = Field(1, gt=0, le=60, description="Of one slot's time that items handed out together take.")
    batch_items: int = Field(1000, ge=1, le=1000, description="Items handed out together at most.")
    window: float = Field(0.5, gt=0, le=100, description="Batches that wait in a lane for each slot of its workers.")


class WebhookSettings(Section):
    """Telling receivers what happened to jobs and runs."""

    secret: SecretStr = Field(
        SecretStr(""), description="Signs what is sent for calls that bring no secret of their own; empty: they must."
    )
    timeout_seconds: float = Field(10, gt=0, le=120, description="For one attempt, from connecting to the answer.")
    first_seconds: float = Field(10, gt=0, le=3600, description="Before the second attempt; doubles with each.")
    cap_seconds: float = Field(3600, gt=0, le=86_400, description="No wait between attempts is longer.")
    give_up_hours: float = Field(24, ge=0, le=720, description="How long a message is tried.")
    concurrency: int = Field(16, ge=1, le=256, description="Messages on their way at once, to all receivers.")
    allow_hosts: tuple[str, ...] = Field(
        (), description="Hosts or networks (CIDR) that may be told though private, beside http.allow_hosts."
    )

    @field_validator("secret")
    @classmethod
    def _is_long(cls, secret: SecretStr) -> SecretStr:
        if 0 < len(secret.get_secret_value()) < 16:
            raise ValueError("shorter than 16 characters can be guessed; take a longer one")
        return secret


class RetentionSettings(Section):
    """How long things are kept."""

    runs_days: float = Field(7, gt=0, description="Final runs with their logs, results and artifacts.")
    keys_hours: float = Field(24, gt=0, description="Idempotency keys.")
    jobs_days: float = Field(30, gt=0, description="Final jobs with their items, results, artifacts and exports.")
    webhooks_days: float = Field(7, gt=0, description="Messages to receivers of webhooks, once taken or given up.")
    usage_days: float = Field(90, ge=31, description="What was received from sites and through proxies, by day.")


class LogSettings(Section):
    """Logs, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level shown.")
    format: Literal["auto", "human", "json"] = Field("auto", description="auto: human on a terminal, JSON otherwise.")
    lang: Literal["en", "ko"] = Field("en", description="Language of the messages.")


class TelemetrySettings(Section):
    """Traces."""

    otlp_endpoint: str = Field("", description="OTLP over HTTP, e.g. http://127.0.0.1:4318; empty: no traces.")
