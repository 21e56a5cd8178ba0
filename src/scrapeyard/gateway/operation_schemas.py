"""What the API answers about workers, scrapers and its own state: models behind the OpenAPI document."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class WorkerDocument(BaseModel):
    """A worker as its last heartbeat told."""

    id: str
    host: str
    pid: int
    version: str
    lanes: list[str]
    engines: list[str]
    walls: list[str]
    slots: int
    busy: int
    draining: bool
    started_at: str
    seen_at: str
    age_seconds: float
    runs_done: int
    load: float
    memory_mb: float


class WorkersDocument(BaseModel):
    """Workers whose heartbeat is fresh."""

    workers: list[WorkerDocument]


class ScraperSummary(BaseModel):
    """A scraper in the listing."""

    id: str
    version: str
    name: str
    description: str
    builtin: bool
    valid: bool
    problem: str = Field(description="Why it cannot run; empty when it can.")


class ScrapersDocument(BaseModel):
    """Every scraper there is."""

    scrapers: list[ScraperSummary]


class LimitsDocument(BaseModel):
    """What one run may use, the platform's ceiling applied."""

    wall_seconds: float
    cpu_seconds: float
    memory_mb: float
    disk_mb: float
    output_mb: float
    log_kb: float
    artifact_mb: float
    threads: int
    fetches: int


class ScraperDocument(ScraperSummary):
    """A scraper with how it is called. The schemas and limits are null when it is invalid."""

    entry: str | None
    lane: str | None
    network: str | None
    allowed_hosts: list[str] | None
    requirements: list[str] | None
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    limits: LimitsDocument | None


class DependencyDocument(BaseModel):
    """The state of one thing we depend on."""

    state: Literal["ok", "away"]
    latency_ms: float | None = Field(description="Null when it did not answer or there is nothing to measure.")
    age_seconds: float = Field(description="How old this finding is; for workers, since the last heartbeat seen.")
    detail: str


class HealthDocument(BaseModel):
    """The whole, and each dependency: queue, store, blobs, workers."""

    status: Literal["ok", "degraded", "down"]
    version: str
    gateway: str
    dependencies: dict[str, DependencyDocument]


class ReadyDocument(BaseModel):
    """Whether calls can be taken now."""

    ready: Literal[True]


class LiveDocument(BaseModel):
    """The process answers."""

    alive: Literal[True]
