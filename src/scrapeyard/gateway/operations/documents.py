"""Workers, load and health as the API shows them."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from scrapeyard.gateway.operations.health import DependencyState
from scrapeyard.gateway.scrapers.documents import EnvironmentStateDocument, environment_state
from scrapeyard.model import Priority, RunStatus, Usage, WorkerInfo
from scrapeyard.model.instants import instant
from scrapeyard.model.job import FINAL_JOB, Counts, Job, JobStatus
from scrapeyard.model.worker import WorkerFacts
from scrapeyard.queues.load import UNKNOWN_SECONDS, LaneLoad, WorkersWanted
from scrapeyard.settings import Settings, effective
from scrapeyard.store.ports.operations import LoadSample

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


class LoadSampleDocument(Struct, frozen=True, kw_only=True):
    """How busy the cluster was in one minute."""

    at: Annotated[str, Meta(description="When the minute began.")]
    busy: int
    slots: int
    workers: Annotated[int, Meta(description="Workers that were alive.")]
    waiting: int
    lanes: Annotated[dict[str, float], Meta(description="Seconds that the oldest of what waited had waited, by lane.")]
    runs: Annotated[int, Meta(description="Runs that were not final.")]
    items: Annotated[int, Meta(description="Items of jobs that were queued or ran.")]
    ended: Annotated[
        int | None, Meta(description="Runs and items that ended in the minute before; null: nobody counted them.")
    ]


class LoadHistoryDocument(Struct, frozen=True, kw_only=True):
    """How busy the cluster was. Minutes in which no dispatcher led are missing."""

    samples: Annotated[list[LoadSampleDocument], Meta(description="One for each minute, the oldest first.")]

    @classmethod
    def of(cls, samples: Sequence[LoadSample]) -> "LoadHistoryDocument":
        """Samples as they are shown."""
        return cls(samples=[LoadSampleDocument(**asdict(each) | {"at": instant(each.at)}) for each in samples])


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


_PER = f"lately; {UNKNOWN_SECONDS:g} is assumed where none has been measured."
_MEASURED = (
    "False if something waits of which no worker has measured yet how long it takes: the numbers are then a guess, "
    "and right themselves as soon as some of it has ended."
)


class LaneScaleDocument(Struct, frozen=True, kw_only=True):
    """What waits in one lane, and who takes it."""

    lane: str
    queued_seconds: Annotated[float, Meta(description="Seconds that the workers of the lane need for what waits.")]
    slot_seconds: Annotated[float, Meta(description="Seconds that a single slot would need for it.")]
    runs: Annotated[int, Meta(description="Runs that wait in the queue.")]
    items: Annotated[int, Meta(description="Items of jobs that wait and may run now.")]
    seconds_per_run: Annotated[float, Meta(description=f"What a run takes of a slot, {_PER}")]
    seconds_per_item: Annotated[float, Meta(description=f"What an item takes of a slot, {_PER}")]
    measured: Annotated[bool, Meta(description=_MEASURED)]
    workers: Annotated[int, Meta(description="Workers that take from this lane and do not drain.")]
    slots: Annotated[int, Meta(description="Slots of those workers.")]

    @classmethod
    def of(cls, load: LaneLoad) -> "LaneScaleDocument":
        """The load of a lane."""
        shown = asdict(load)
        return cls(queued_seconds=shown.pop("seconds"), **shown)


class ScaleDocument(Struct, frozen=True, kw_only=True):
    """How many workers the waiting work needs, for programs that start and stop workers."""

    target_seconds: Annotated[float, Meta(description="As it was asked.")]
    wanted_workers: Annotated[
        int,
        Meta(
            description="Workers needed for what waits to begin within `target_seconds`, and for what runs now. "
            "0 only if nothing waits and nothing runs."
        ),
    ]
    workers: Annotated[int, Meta(description="Workers that take from one of the lanes and do not drain.")]
    slots: Annotated[int, Meta(description="Slots of those workers.")]
    busy: Annotated[int, Meta(description="Of them, slots that run something now.")]
    slots_per_worker: Annotated[
        float, Meta(description="On average. While no worker is alive: `worker.slots` of the gateway's settings.")
    ]
    queued_seconds: Annotated[float, Meta(description="Of the lane where work waits longest.")]
    measured: Annotated[bool, Meta(description="Whether it is for every lane.")]
    lanes: Annotated[list[LaneScaleDocument], Meta(description="Every lane that was asked for, by name.")]

    @classmethod
    def of(cls, loads: Sequence[LaneLoad], wanted: WorkersWanted, target_seconds: float) -> "ScaleDocument":
        """The lanes, and what they need together."""
        return cls(
            target_seconds=target_seconds,
            wanted_workers=wanted.wanted,
            workers=wanted.workers,
            slots=wanted.slots,
            busy=wanted.busy,
            slots_per_worker=wanted.slots_per_worker,
            queued_seconds=max((load.seconds for load in loads), default=0.0),
            measured=all(load.measured for load in loads),
            lanes=[LaneScaleDocument.of(load) for load in loads],
        )


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


class SettingDocument(Struct, frozen=True, kw_only=True):
    """One setting as it is in force."""

    key: Annotated[str, Meta(description="Its place in the tree, as in `scrapeyard.toml`.")]
    environment: Annotated[str, Meta(description="The environment variable that sets it.")]
    value: Annotated[Any, Meta(description="In force now, as JSON; passwords and tokens are hidden.")]
    default: Annotated[Any, Meta(description="What it is if nothing sets it, as JSON.")]
    source: Annotated[
        str,
        Meta(description="`command line`, `environment NAME`, `.env NAME`, the file's name, or `default`."),
    ]
    meaning: Annotated[str, Meta(description="What it does, with its unit.")]


class SettingsDocument(Struct, frozen=True, kw_only=True):
    """Every setting of one gateway."""

    gateway: str
    settings: Annotated[list[SettingDocument], Meta(description="In the order of the documentation.")]

    @classmethod
    def of(cls, gateway_id: str, settings: Settings) -> "SettingsDocument":
        """All of them, with passwords hidden."""
        shown = [SettingDocument(**each._asdict()) for each in effective(settings)]
        return cls(gateway=gateway_id, settings=shown)
