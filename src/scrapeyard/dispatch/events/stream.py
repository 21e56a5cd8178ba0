"""The stream of lifecycle events: the leader reads what happened from the store and sends it to a Kafka topic.

Nothing waits in memory: what cannot be sent is read again later, and the position in the store moves only after the
cluster has confirmed. So a cluster that is away slows no run, and a kill at any step repeats some events with the same
ids.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.dispatch.events.news import LifecycleEvent, Steps
from scrapeyard.kafka.link import KafkaLink
from scrapeyard.kafka.records import KafkaLost, KafkaRecord, KafkaRefused, Topic
from scrapeyard.model import Run
from scrapeyard.model.job import FINAL_JOB, Job
from scrapeyard.settings.events import EventSettings
from scrapeyard.store.ports.jobs import JobEvent, JobStore
from scrapeyard.store.ports.lifecycle import LifecycleStore
from scrapeyard.store.ports.operations import StateStore
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import Metrics

log = get_log("events")
OWNER: Final = "@events"
"""Whose state the position is, beside that of scrapers, none of which can have this id."""
ROWS: Final = 500
ROUND_SECONDS: Final = 1.0
OVERLAP_SECONDS: Final = 120.0
"""A row may be written this long after the moment that it tells of."""
SWEEP_SECONDS: Final = 15.0
"""How often the last minutes are looked at again."""
SEND_SECONDS: Final = 10.0
PARTITIONS: Final = 8


class _Place(Struct, frozen=True):
    """Time and id of the last row read."""

    at: float
    id: str = ""


class _Position(Struct, frozen=True, kw_only=True):
    created: _Place
    ended: _Place
    jobs: float
    job: str = ""


class EventStream:
    """A MaintenanceTask of the leader."""

    name = "events"
    waits_after_outage = False

    def __init__(
        self,
        settings: EventSettings,
        link: KafkaLink,
        *,
        lifecycle: LifecycleStore,
        jobs: JobStore,
        state: StateStore,
        clock: Callable[[], float] = time.time,
        metrics: Metrics | None = None,
    ) -> None:
        self._topic = Topic(name=settings.topic, partitions=PARTITIONS)
        self._runs = settings.runs
        self._lifecycle = lifecycle
        self._jobs = jobs
        self._state = state
        self._link = link
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._steps = Steps()
        self._position: _Position | None = None
        self._unstarted: dict[str, None] = {}
        self._swept = float("-inf")
        self._refused = ""

    async def start(self) -> None:
        """Connects in the background."""
        self._link.start()

    async def stop(self) -> None:
        """May be called twice."""
        await self._link.stop()

    async def run_once(self) -> None:
        """One round. A position that another leader moved meanwhile is read anew in the next."""
        until = time.monotonic() + ROUND_SECONDS
        position = before = self._position or await self._load()
        try:
            if self._clock() - self._swept >= SWEEP_SECONDS:
                await self._sweep(position)
                self._swept = self._clock()
            while True:
                after = await self._read(position)
                is_end, position = after == position, after
                if is_end or time.monotonic() >= until:
                    break
        except (KafkaLost, KafkaRefused) as error:
            self._metrics.events_failed()
            if isinstance(error, KafkaRefused) and str(error) != self._refused:
                self._refused = str(error)
                log.warning("events.refused", topic=self._topic.name, error=str(error)[:300])
        if position != before:
            await self._save(position)

    async def _read(self, position: _Position) -> _Position:
        """The position after the next rows."""
        for job in await self._lifecycle.jobs_created(position.job, ROWS):
            await self._send_job(job)
            position = replace(position, job=job.id)
        for job_id in list(self._unstarted)[:ROWS]:
            if (found := await self._jobs.get(job_id)) is None or found.started_at is not None:
                del self._unstarted[job_id]
            if found is not None:
                await self._send_job(found)
        changes = await self._lifecycle.jobs_changed(position.jobs, ROWS)
        for job, event in changes:
            await self._send_job(job, event)
        times = [event.at for _, event in changes if event is not None]
        if len(times) < ROWS:
            times += [job.finished_at or 0.0 for job, _ in changes]
        position = replace(position, jobs=max([position.jobs, *times]))
        if not self._runs:
            return position
        created = await self._lifecycle.runs_created(position.created.at, position.created.id, ROWS)
        await self._send_runs(created)
        await self._send_runs(await self._lifecycle.runs_running(ROWS))
        ended = await self._lifecycle.runs_ended(position.ended.at, position.ended.id, ROWS)
        await self._send_runs(ended)
        if created:
            position = replace(position, created=_Place(created[-1].created_at, created[-1].id))
        if ended:
            position = replace(position, ended=_Place(ended[-1].finished_at or 0.0, ended[-1].id))
        return position

    async def _sweep(self, position: _Position) -> None:
        """What was written late. What was told is skipped."""
        for job in await self._lifecycle.jobs_created(_job_id_at(position.jobs - OVERLAP_SECONDS), 4 * ROWS):
            await self._send_job(job)
        for job, event in await self._lifecycle.jobs_changed(position.jobs - OVERLAP_SECONDS, 4 * ROWS):
            await self._send_job(job, event)
        place = _Place(position.ended.at - OVERLAP_SECONDS)
        while self._runs and (ended := await self._lifecycle.runs_ended(place.at, place.id, ROWS)):
            await self._send_runs(ended)
            place = _Place(ended[-1].finished_at or 0.0, ended[-1].id)
            if place.at >= position.ended.at:
                return

    async def _send_job(self, job: Job, event: JobEvent | None = None) -> None:
        await self._send(self._steps.of_job(job, event))
        if job.started_at is None and job.status not in FINAL_JOB:
            self._unstarted[job.id] = None

    async def _send_runs(self, runs: Sequence[Run]) -> None:
        await self._send([event for run in runs for event in self._steps.of_run(run)])

    async def _send(self, events: list[LifecycleEvent]) -> None:
        """Raises KafkaLost and KafkaRefused."""
        if not events:
            return
        until = asyncio.get_running_loop().time() + SEND_SECONDS
        records = [KafkaRecord(self._topic.name, event.body, event.subject.encode()) for event in events]
        try:
            await self._link.ensure([self._topic], until)
            await self._link.send(records, until)
        except BaseException:
            self._steps.forget(events)
            raise
        self._refused = ""
        self._metrics.events_sent(len(events))

    async def _load(self) -> _Position:
        """A stream that begins tells nothing of the past."""
        stored = await self._state.read(OWNER, self._topic.name)
        if stored is not None:
            self._position = msgspec.json.decode(stored, type=_Position)
        else:
            now = self._clock()
            self._position = _Position(created=_Place(now), ended=_Place(now), jobs=now, job=_job_id_at(now))
            await self._save(self._position)
        return self._position

    async def _save(self, position: _Position) -> None:
        self._position = position
        await self._state.change(OWNER, self._topic.name, msgspec.json.encode(position), self._clock())


def _job_id_at(now: float) -> str:
    """Below the id of every job that is created later: ids begin with the time."""
    return f"job_{int(now * 1000):012x}"
