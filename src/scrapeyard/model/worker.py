"""Workers as their heartbeats tell, and the environments that they have for scrapers with requirements."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, field


class EnvironmentStatus(StrEnum):
    """How far a scraper's environment has come on one machine.

        waiting ──► building ──► ready
                        │
                        └──────► failed ──► waiting   (tried again later)

    `none`: the scraper requires nothing and shares the base. A ready environment that made room for others waits again.
    """

    NONE = "none"
    WAITING = "waiting"
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"


class EnvironmentState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of a scraper's environment."""

    status: EnvironmentStatus
    key: str = ""
    """Names the environment; empty until its requirements are resolved."""
    problem: str = ""
    """Why it could not be built."""
    size_bytes: int = 0
    built_at: float | None = None
    """Unix seconds."""


class Environment(Struct, frozen=True, kw_only=True):
    """A built environment. Its files never change, and stay while `marker` is locked (shared)."""

    key: str
    packages: Path
    """Added to a script's `sys.path`, inside its sandbox."""
    marker: Path
    """Written last: if it exists, the environment is complete."""


DrainWish = Literal["", "stay", "exit"]


class WorkerFacts(Struct, frozen=True, kw_only=True):
    """What a worker's heartbeat tells that is also shown as it is."""

    id: str
    host: str
    pid: int
    version: str
    lanes: tuple[str, ...]
    """Every lane that it takes from."""
    takes: tuple[str, ...] = ()
    """The patterns of scrapers that it is set to take; empty for all."""
    engines: tuple[str, ...]
    walls: tuple[str, ...]
    slots: int
    busy: int
    running: Annotated[
        int, Meta(description="Runs and batches of items that it has begun, also those that wait outside its slots.")
    ] = 0
    draining: Annotated[bool, Meta(description="Whether it takes no more and finishes what it has.")] = False
    drain: Annotated[
        DrainWish,
        Meta(
            description="What was asked of it. Empty: nothing; `stay`: to drain; `exit`: to drain and end its process "
            "then. Its next heartbeat tells it."
        ),
    ] = ""
    alone: Annotated[bool, Meta(description="Whether its process has no other role. Only such a one can exit.")] = False
    runs_done: int = 0
    load: float = 0.0
    """One-minute load average per core."""
    memory_mb: float = 0.0
    run_seconds: Annotated[float | None, Meta(description="What a run takes of a slot, lately; null: none ran.")] = None
    item_seconds: Annotated[
        float | None, Meta(description="What an item of a job takes of a slot, lately; null: none ran.")
    ] = None


class WorkerInfo(WorkerFacts, frozen=True, kw_only=True):
    """A worker as of its last heartbeat."""

    started_at: float
    seen_at: float
    environments: dict[str, EnvironmentState] = field(default_factory=dict)
    """By scraper (`site/task@1.4.2`) with requirements that this worker knows, at most some hundreds."""
