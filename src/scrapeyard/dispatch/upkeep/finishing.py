"""Completes jobs whose items have all ended: writes manifests and exports first. A cancelled job is final at once, and
its files follow."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from scrapeyard.background import Background
from scrapeyard.errors import Unavailable
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.store.ports.jobs import JobFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("jobs")
BATCH = 100
AT_ONCE = 2
"""Jobs whose files are written concurrently; each may take minutes and reads the store all the time."""
MOST_TRIES = 5
"""Internal errors after which a job ends without its files, as its last event then says. There is no limit while the
store is away."""
_REST_SECONDS = 60.0

Finish = Callable[[Job], Awaitable[None]]
"""Writes the files of a finished job. It is called again after an interruption, and then writes the same files."""


class _Tries(Struct):
    """Failed tries for one job."""

    faults: int = 0
    pauses: int = 0
    not_before: float = 0.0


class Finishing:
    """Moves settled jobs on. `finish` runs in the background, since it may take longer than a leader may be silent.
    `stop` aborts it; the next leader starts again with jobs that are still FINISHING, then with cancelled ones whose
    files are pending."""

    name = "finishing"
    waits_after_outage = False

    def __init__(self, store: Store, finish: Finish | None, clock: Callable[[], float]) -> None:
        self._store = store
        self._finish = finish
        self._clock = clock
        self._tasks = Background()
        self._tries: dict[str, _Tries] = {}

    async def run_once(self) -> None:
        """One round."""
        for job in await self._store.jobs.settled(BATCH):
            await self._settle(job)
        waiting = [*await self._found(statuses=(JobStatus.FINISHING,)), *await self._found(files_pending=True)]
        for job in waiting:
            self._begin(job)
        still = {job.id for job in waiting}
        self._tries = {job_id: tries for job_id, tries in self._tries.items() if job_id in still}

    async def stop(self) -> None:
        """Abort what is under way: this process no longer leads. May be called twice."""
        await self._tasks.stop()

    async def idle(self) -> None:
        """Wait until nothing is being written."""
        await self._tasks.idle()

    async def _found(self, **where: Any) -> Iterable[Job]:
        """Matching jobs, the oldest first."""
        return reversed((await self._store.jobs.page(JobFilter(**where), None, BATCH)).jobs)

    async def _settle(self, job: Job) -> None:
        if job.status is JobStatus.CANCELLING:
            await self._move(job, JobStatus.CANCELLING, JobStatus.CANCELLED)
            return
        if job.status is JobStatus.PAUSED:  # paused by the breaker while its last items were out
            await self._store.jobs.set_breaker(job.id, job.breaker, JobStatus.RUNNING, "")
        await self._move(job, JobStatus.RUNNING, JobStatus.FINISHING)

    def _begin(self, job: Job) -> None:
        tries = self._tries.get(job.id)
        if job.id in self._tasks or len(self._tasks) >= AT_ONCE or (tries and self._clock() < tries.not_before):
            return
        self._tasks.spawn(self._complete(job), name=f"finishing {job.id}", key=job.id)

    async def _complete(self, job: Job) -> None:
        try:
            if self._finish is not None:
                await self._finish(job)
            await self._end(job)
        except Unavailable as error:
            self._rest(job).pauses += 1
            log.warning("jobs.finishing_waits", job=job.id, error=error.message)
        except Exception as error:  # noqa: BLE001  one job's error must not stop the others
            await self._failed(job, error)

    async def _failed(self, job: Job, error: Exception) -> None:
        tries = self._rest(job)
        tries.faults += 1
        log.error("jobs.finishing_failed", job=job.id, tries=tries.faults, error=repr(error), exc_info=error)
        if tries.faults >= MOST_TRIES:
            try:
                problem = f"its manifests or exports could not be written: {type(error).__name__}; the log has the rest"
                await self._end(job, problem)
            except Unavailable as away:
                log.warning("jobs.finishing_waits", job=job.id, error=away.message)

    async def _end(self, job: Job, problem: str = "") -> None:
        if job.status is JobStatus.FINISHING:
            await self._move(job, JobStatus.FINISHING, JobStatus.COMPLETED, problem)
        elif await self._store.jobs.files_written(job):
            log.info("jobs.files_written", job=job.id, status=job.status.value)
            if problem:
                await self._report(job, job.status, problem)

    def _rest(self, job: Job) -> _Tries:
        tries = self._tries.setdefault(job.id, _Tries())
        tries.not_before = self._clock() + min(_REST_SECONDS, 2.0 ** (tries.faults + tries.pauses))
        return tries

    async def _move(self, job: Job, leave: JobStatus, to: JobStatus, problem: str = "") -> None:
        if await self._store.jobs.move(job.id, leave, to, self._clock()):
            log.info("jobs.moved", job=job.id, status=to.value)
            await self._report(job, to, problem)

    async def _report(self, job: Job, status: JobStatus, problem: str) -> None:
        told = msgspec.json.encode({"status": status.value} | ({"problem": problem} if problem else {}))
        await self._store.events.add(job.id, JobEventKind.STATUS, Raw(told), self._clock())
