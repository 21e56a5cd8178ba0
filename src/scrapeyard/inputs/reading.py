"""The task that reads the sources of new jobs, and those left unread by a process that died."""

from collections.abc import Callable

from msgspec import Struct

from scrapeyard.background import Background
from scrapeyard.errors import ScrapeyardError
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.inputs.source import FOLLOWED, READ_IN
from scrapeyard.model.job import Job
from scrapeyard.store.ports.jobs import JobFilter, JobStore
from scrapeyard.telemetry.events import get_log

log = get_log("intake")
AT_ONCE = 4
"""Sources read concurrently by one process."""
PAGE = 200
PAGES = 10
FIRST_WAIT = 2.0
LONGEST_WAIT = 60.0
FAULTS = 5
"""Internal errors after which a job fails, instead of being tried for ever."""


class _Trouble(Struct, frozen=True, kw_only=True):
    """A source that could not be read for a reason that may be temporary."""

    until: float
    """Earliest time of the next try."""
    wait: float
    faults: int = 0


class ReadSources:
    """A MaintenanceTask. Reads in the background, so that others continue. After `stop`, another process continues."""

    name = "reading"
    waits_after_outage = False

    def __init__(self, jobs: JobStore, intake: ItemImporter, clock: Callable[[], float]) -> None:
        self._jobs = jobs
        self._intake = intake
        self._clock = clock
        self._tasks = Background()
        self._troubles: dict[str, _Trouble] = {}

    async def start(self) -> None:
        """Nothing to do: the first round starts reading."""

    async def stop(self) -> None:
        """Abort what is under way. May be called twice."""
        await self._tasks.stop()

    async def run_once(self) -> None:
        """Run one round: start with the oldest jobs that nobody reads."""
        jobs = await self._unread()
        self._troubles = {job.id: self._troubles[job.id] for job in jobs if job.id in self._troubles}
        for job in reversed(jobs):
            if len(self._tasks) >= AT_ONCE:
                return
            trouble = self._troubles.get(job.id)
            if job.id not in self._tasks and (trouble is None or trouble.until <= self._clock()):
                self._tasks.spawn(self._read(job), name=f"reading-{job.id}", key=job.id)

    async def idle(self) -> None:
        """Wait until nothing is being read here."""
        await self._tasks.idle()

    async def _unread(self) -> list[Job]:
        """Jobs whose source is not read, newest first."""
        found: list[Job] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await self._jobs.page(JobFilter(statuses=READ_IN, reading=True), cursor, PAGE)
            found += [job for job in page.jobs if job.source.get("kind") != FOLLOWED]
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def _read(self, job: Job) -> None:
        try:
            await self._intake.fill(job)
        except ScrapeyardError as error:
            log.warning("intake.later", job=job.id, error=error.message)
            self._note(job, faults=0)
        except Exception as error:
            # one source's error must not stop the others
            log.error("intake.broken", job=job.id, error=repr(error), exc_info=error)
            await self._broken(job)
        else:
            self._troubles.pop(job.id, None)

    def _note(self, job: Job, *, faults: int) -> None:
        before = self._troubles.get(job.id)
        wait = FIRST_WAIT if before is None else min(2 * before.wait, LONGEST_WAIT)
        self._troubles[job.id] = _Trouble(until=self._clock() + wait, wait=wait, faults=faults)

    async def _broken(self, job: Job) -> None:
        before = self._troubles.get(job.id)
        faults = 1 + (before.faults if before else 0)
        self._note(job, faults=faults)
        if faults >= FAULTS:
            message = "reading its source met a fault of ours again and again; the log has it"
            try:
                await self._jobs.end_reading(job.id, 0, message, self._clock())
            except ScrapeyardError as error:
                log.warning("intake.later", job=job.id, error=error.message)
