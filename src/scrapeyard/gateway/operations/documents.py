"""Workers, load and health as the API shows them."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from scrapeyard.gateway.operations.health import DependencyState
from scrapeyard.gateway.scrapers.documents import EnvironmentStateDocument, environment_state
from scrapeyard.model import Priority, RunStatus, Usage, WorkerInfo
from scrapeyard.model.instants import instant
from scrapeyard.model.job import FINAL_JOB, Counts, Job, JobStatus
from scrapeyard.model.run import WorkerFacts

GOING = tuple(status for status in JobStatus if status not in FINAL_JOB)
_TRUE = Meta(extra_json_schema={"const": True})


class WorkerDocument(WorkerFacts, frozen=True, kw_only=True):
    """A worker as its last heartbeat told."""

    started_at: str
    seen_at: str
    age_seconds: float
    environments: Annotated[dict[str, EnvironmentStateDocument], Meta(description="Of scrapers with requirements.")]

    @classmethod
    def of(cls, worker: WorkerInfo, now: float) -> "WorkerDocument":
        """A worker, with the age of its heartbeat."""
        shown = asdict(worker) | {
            "started_at": instant(worker.started_at),
            "seen_at": instant(worker.seen_at),
            "environments": {name: environment_state(state) for name, state in worker.environments.items()},
        }
        return cls(**shown, age_seconds=round(max(0.0, now - worker.seen_at), 3))


class WorkersDocument(Struct, frozen=True, kw_only=True):
    """Workers whose heartbeat is fresh."""

    workers: list[WorkerDocument]


class WorkersCount(Struct, frozen=True, kw_only=True):
    """Workers whose heartbeat is fresh."""

    count: int
    slots: int
    busy: int

    @classmethod
    def of(cls, workers: Sequence[WorkerInfo]) -> "WorkersCount":
        """Their slots together."""
        slots, busy = sum(worker.slots for worker in workers), sum(worker.busy for worker in workers)
        return cls(count=len(workers), slots=slots, busy=busy)


class LaneDocument(Struct, frozen=True, kw_only=True):
    """What waits in one lane of the queue."""

    lane: str
    priority: Priority
    waiting: int


class SolverCount(Struct, frozen=True, kw_only=True):
    """What the solver was asked for, and how often it helped."""

    calls: int
    successes: int
    flaresolverr_success_rate: Annotated[float | None, Meta(description="Null while it was not asked for anything.")]


class JobsCount(Struct, frozen=True, kw_only=True):
    """Jobs that are not final."""

    by_status: dict[str, int]
    items: Annotated[Counts, Meta(description="Of all of them together.")]
    solver: Annotated[SolverCount, Meta(description="By all of them together.")]
    more: Annotated[bool, Meta(description="Whether there are more than were counted.")]

    @classmethod
    def of(cls, jobs: Sequence[Job], more: bool) -> "JobsCount":
        """Their number by status, and the sums of their items."""
        by_status = dict.fromkeys((status.value for status in GOING), 0)
        for job in jobs:
            by_status[job.status.value] += 1
        items = {name: sum(getattr(job.counts, name) for job in jobs) for name in Counts.__struct_fields__}
        return cls(by_status=by_status, items=Counts(**items), solver=_solver(jobs), more=more)


def _solver(jobs: Sequence[Job]) -> SolverCount:
    used = Usage(
        solver_calls=sum(job.use.solver_calls for job in jobs),
        solver_successes=sum(job.use.solver_successes for job in jobs),
    )
    rate = used.solver_success_rate
    return SolverCount(calls=used.solver_calls, successes=used.solver_successes, flaresolverr_success_rate=rate)


class StatsDocument(Struct, frozen=True, kw_only=True):
    """How busy the platform is."""

    runs: Annotated[dict[RunStatus, int], Meta(description="Runs that are not final, by status.")]
    jobs: JobsCount
    queue: list[LaneDocument]
    workers: WorkersCount


class DependencyDocument(Struct, frozen=True, kw_only=True):
    """The state of one thing we depend on."""

    state: Literal["ok", "away"]
    latency_ms: Annotated[float | None, Meta(description="Null when it did not answer or there is nothing to measure.")]
    age_seconds: Annotated[
        float, Meta(description="How old this finding is; for workers, since the last heartbeat seen.")
    ]
    detail: str

    @classmethod
    def of(cls, finding: DependencyState) -> "DependencyDocument":
        """What was found, with its age."""
        return cls(
            state="ok" if finding.up else "away",
            latency_ms=finding.latency_ms,
            age_seconds=round(max(0.0, time.monotonic() - finding.at), 3),
            detail=finding.detail,
        )


class HealthDocument(Struct, frozen=True, kw_only=True):
    """The whole, and each dependency: queue, store, blobs, workers."""

    status: Literal["ok", "degraded", "down"]
    version: str
    gateway: str
    database: Annotated[str, Meta(description="`ok`, or `error: ` and why; the same as `dependencies.store`.")]
    dependencies: Mapping[str, DependencyDocument]


class RootDocument(Struct, frozen=True, kw_only=True):
    """What answers here."""

    status: Annotated[Literal["ok"], Meta(description="The process answers; `/api/health` tells more.")] = "ok"
    service: str = "scrapeyard"
    version: str
    docs: Annotated[str, Meta(description="The reference of the API, for a browser.")] = "/docs"
    api: Annotated[str, Meta(description="The OpenAPI document.")] = "/api/openapi.json"
    health: Annotated[str, Meta(description="The state of every dependency.")] = "/api/health"


class ReadyDocument(Struct, frozen=True, kw_only=True):
    """Whether calls can be taken now."""

    ready: Annotated[bool, _TRUE]


class LiveDocument(Struct, frozen=True, kw_only=True):
    """The process answers."""

    alive: Annotated[bool, _TRUE]
