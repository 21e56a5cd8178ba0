"""Begins the files of a large job while its items still come in, in a process of its own.

Reading a million items takes as long as a third of running them, and both would share the one core that Python uses.
So another process follows the items that have ended: it writes parts of the manifests and gathers what exports need.
When the last item has ended, only the rest is left to do.

That process is never needed. If it ended, was killed, or has items that a redrive changed meanwhile, the job's files
are written from the start here, as those of any other job. It ends with this process.
"""

import asyncio
import contextlib
import math
import os
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from scrapeyard.framed_process import FramedProcess, Framing, start_process
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.results.finishing import Finisher
from scrapeyard.store.ports.jobs import JobFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("results")
MODULE: Final = "scrapeyard.wiring.files_process"
FRAMING: Final = Framing(16 * 1024 * 1024)
BEGIN: Final = b"B"
"""To the process: a FilesPlan."""
FINISH: Final = b"F"
"""To the process: every item has ended. From it: all files are written."""
VOID: Final = b"V"
"""From the process: why it did not write them."""
LOOK_SECONDS: Final = 1.0
LEAST_RATE: Final = 200.0
"""Items a second. The files of a slower job are written quickly compared with its items."""
SLOW_SECONDS: Final = 60.0
"""A job that was slower than that for so long is not followed any more: the process takes memory."""
_JOBS: Final = 20
_GOING: Final = (JobStatus.CREATING, JobStatus.RUNNING)
"""Items of a long list run while the rest of it is still read."""


class FilesPlan(Struct, frozen=True, kw_only=True):
    """What the process is told."""

    settings: bytes
    job_id: str


class EarlyFiles:
    """A duty of the dispatcher, and its `finish`. Follows one job at a time."""

    name = "early files"
    waits_after_outage = False

    def __init__(
        self, store: Store, finisher: Finisher, settings: bytes, from_items: int, clock: Callable[[], float]
    ) -> None:
        """`settings` are those of the process; it follows a job from `from_items` ended items on, or never if 0."""
        self._store = store
        self._finisher = finisher
        self._settings = settings
        self._from_items = from_items or math.inf
        self._clock = clock
        self._looked_at = -math.inf
        self._done: dict[str, int] = {}
        """Ended items of each job at the last look."""
        self._followed: _Followed | None = None

    @property
    def followed(self) -> str:
        """The id of the job whose files are begun; empty if there is none."""
        return self._followed.job_id if self._followed is not None else ""

    @property
    def process_id(self) -> int:
        """Of the process that begins them; 0 if there is none."""
        return self._followed.process.pid if self._followed is not None else 0

    async def start(self) -> None:
        """Nothing to do: `run_once` starts the process."""

    async def stop(self) -> None:
        """End the process. May be called twice."""
        await self._drop()

    async def run_once(self) -> None:
        """One round: begin to follow a large, quick job, or leave one that has become slow."""
        now = self._clock()
        passed = now - self._looked_at
        if passed < LOOK_SECONDS or math.isinf(self._from_items):
            return
        self._looked_at = now
        jobs = (await self._store.jobs.page(JobFilter(statuses=_GOING), None, _JOBS)).jobs
        quick = [job for job in jobs if job.counts.done - self._done.get(job.id, math.inf) >= LEAST_RATE * passed]
        self._done = {job.id: job.counts.done for job in jobs}
        await self._look_after_followed([job.id for job in quick], now)
        for job in quick:
            if self._followed is None and self._may_begin(job):
                self._followed = _Followed(job.id, now, await self._begin(job))
                log.info("results.early_files", job=job.id, items=job.counts.done)

    async def finish(self, job: Job) -> None:
        """Write the files of a job whose items have all ended, as `Finisher.finish`."""
        if job.id == self.followed and await self._finish_followed(job):
            return
        await self._finisher.finish(job)

    def _may_begin(self, job: Job) -> bool:
        """Not where parts exist already: those of an earlier end, which a redrive has opened again, or those that a job
        with objects has while it runs."""
        return job.counts.done >= self._from_items and job.redrives == 0 and job.policy.results != "objects"

    async def _begin(self, job: Job) -> FramedProcess:
        process = await start_process(MODULE, framing=FRAMING, variables=os.environ)
        plan = FilesPlan(settings=self._settings, job_id=job.id)
        try:
            await process.send(FRAMING.pack(BEGIN, msgspec.msgpack.encode(plan)))
        except ConnectionError:
            pass  # it is found out when the job has ended
        except BaseException:
            await process.end()
            raise
        return process

    async def _look_after_followed(self, quick: list[str], now: float) -> None:
        followed = self._followed
        if followed is None or followed.finishing:
            return
        if followed.job_id in quick:
            followed.quick_at = now
            return
        job = await self._store.jobs.get(followed.job_id)
        is_open = job is not None and job.status in (*_GOING, JobStatus.PAUSED, JobStatus.FINISHING)
        if not is_open or now - followed.quick_at > SLOW_SECONDS:
            await self._drop()
            await self._finisher.leave_nothing_of_a_deleted(followed.job_id)

    async def _finish_followed(self, job: Job) -> bool:
        """False if the process did not write the files."""
        followed = self._followed
        assert followed is not None  # noqa: S101 - its id was compared
        followed.finishing = True
        try:
            await followed.process.send(FRAMING.pack(FINISH))
            letter, body = await followed.process.receive()
        except (EOFError, OSError, ValueError) as error:
            letter, body = VOID, repr(error).encode()
        finally:
            await asyncio.shield(self._drop())
        if letter != FINISH:
            log.warning("results.early_files_void", job=job.id, why=body.decode(errors="replace")[:500])
        return letter == FINISH

    async def _drop(self) -> None:
        followed, self._followed = self._followed, None
        if followed is not None:
            with contextlib.suppress(ProcessLookupError):
                await followed.process.end()


class _Followed:
    """A job with its process."""

    def __init__(self, job_id: str, quick_at: float, process: FramedProcess) -> None:
        self.job_id = job_id
        self.quick_at = quick_at
        self.process = process
        self.finishing = False
