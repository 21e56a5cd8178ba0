"""What the API answers about workers, scrapers and its own state: models behind the OpenAPI document."""

from typing import Literal

from pydantic import BaseModel, Field

from scrapeyard.gateway.scrapers.schemas import EnvironmentStateDocument


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
    environments: dict[str, EnvironmentStateDocument] = Field(description="Of scrapers with requirements.")


class WorkersDocument(BaseModel):
    """Workers whose heartbeat is fresh."""

    workers: list[WorkerDocument]


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
