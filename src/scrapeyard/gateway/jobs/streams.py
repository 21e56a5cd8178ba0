"""A job's life as it happens, for any number of watchers.

One task looks at each watched job twice a second. A watcher is never sent anything: it is woken, and takes what it has
not had yet from the store. So one that is slow is late, and nothing is kept for it.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from msgspec import Raw, Struct

from scrapeyard.errors import NotFound, ScrapeyardError
from scrapeyard.gateway.http.problems import Refusal
from scrapeyard.gateway.jobs.documents import JobRates
from scrapeyard.gateway.runs.documents import encode, instant
from scrapeyard.model.job import Job
from scrapeyard.store.ports.jobs import ItemStore, JobStore
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")
LOOK_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15.0
PAGE = 500
"""Events read at once."""
SETTLED_SECONDS = 5.0
"""Events of a job that ended longer ago are all written."""


class WatchStore(JobStore, ItemStore, Protocol):
    """What is needed of the store."""


class JobUpdate(Struct, frozen=True, kw_only=True):
    """One event for a watcher."""

    kind: str
    data: bytes
    """JSON."""
    number: int | None = None
    """By which a watcher that comes again says what it had; None: it is not told twice."""


class WatchedJob:
    """One job as it was seen last, shared by its watchers."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.progress: dict[str, Any] = {}
        self.tail = 0
        """Number of the newest event."""
        self.ended = False
        """Nothing more comes: the job is final, or gone, or the gateway stops."""
        self._changed = asyncio.Event()

    def tell(self) -> None:
        """Wake every watcher."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def news(self, seconds: float) -> bool:
        """Wait for the next look that brought something. False: none did in time."""
        if self.ended:
            return True
        with suppress(TimeoutError):
            return await asyncio.wait_for(self._changed.wait(), seconds)
        return False


class JobStreams:
    """All watchers of this gateway, at most `most` at once. `close` ends every stream."""

    def __init__(self, store: WatchStore, rates: JobRates, clock: Callable[[], float], most: int) -> None:
        self._store = store
        self._rates = rates
        self._clock = clock
        self._most = most
        self._count = 0
        self._watches: dict[str, tuple[WatchedJob, asyncio.Task[None], int]] = {}

    def close(self) -> None:
        """Whoever watches is sent away, to come again elsewhere. May be called twice."""
        for watch, task, _ in self._watches.values():
            task.cancel()
            watch.ended = True
            watch.tell()

    async def follow(self, job_id: str, after: int) -> AsyncGenerator[JobUpdate | None]:
        """Events numbered higher than `after`, with `progress` in between, then one `end`; None: still here.

        Raises NotFound, or Refusal (429) when too many watch, before the first.
        """
        if self._count >= self._most:
            raise Refusal("too_many_waiting", 429, f"{self._most} streams are open already", retry_after=5)
        job = await self._store.job(job_id)
        if job is None:
            raise NotFound(f"no job {job_id}")
        self._count += 1
        try:
            async with self._watched(job) as watch:
                async for told in self._told(watch, after):
                    yield told
        finally:
            self._count -= 1

    async def _told(self, watch: WatchedJob, after: int) -> AsyncIterator[JobUpdate | None]:
        shown: dict[str, Any] | None = None
        while True:
            ended = watch.ended
            while after < watch.tail and (page := await self._store.events(watch.job.id, after, PAGE)):
                for event in page:
                    yield JobUpdate(kind=event.kind, data=_data(event.data, event.at), number=event.number)
                    after = event.number
            if watch.progress and watch.progress != shown:
                shown = watch.progress
                yield JobUpdate(kind="progress", data=encode(shown))
            if ended:
                if watch.job.status.is_final:
                    yield JobUpdate(kind="end", data=encode({"id": watch.job.id, "status": watch.job.status}))
                return
            if not await watch.news(KEEP_ALIVE_SECONDS):
                yield None

    @asynccontextmanager
    async def _watched(self, job: Job) -> AsyncIterator[WatchedJob]:
        if job.id not in self._watches:
            watch = WatchedJob(job)
            self._watches[job.id] = watch, asyncio.create_task(self._poll(watch), name=f"watching {job.id}"), 0
        watch, task, watchers = self._watches[job.id]
        self._watches[job.id] = watch, task, watchers + 1
        try:
            yield watch
        finally:
            watch, task, watchers = self._watches[job.id]
            self._watches[job.id] = watch, task, watchers - 1
            if watchers == 1:
                del self._watches[job.id]
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _poll(self, watch: WatchedJob) -> None:
        while not watch.ended:
            try:
                await self._look_once(watch)
            except ScrapeyardError as error:
                log.warning("gateway.watch_failed", job=watch.job.id, error=error.message)
            except Exception as error:
                log.error("gateway.watch_broken", job=watch.job.id, error=repr(error), exc_info=error)
            watch.tell()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look_once(self, watch: WatchedJob) -> None:
        """A final job is looked at twice: its last event is written a moment after its last state."""
        was_final = watch.job.status.is_final
        job = await self._store.job(watch.job.id)
        while page := await self._store.events(watch.job.id, watch.tail, PAGE):
            watch.tail = page[-1].number
        if job is None:
            watch.ended = True
            return
        watch.job = job
        watch.progress = self._progress(job)
        old = job.finished_at is not None and self._clock() - job.finished_at > SETTLED_SECONDS
        watch.ended = job.status.is_final and (was_final or old)

    def _progress(self, job: Job) -> dict[str, Any]:
        pace = self._rates.pace(job)
        return {
            "status": job.status,
            "counts": job.counts,
            "reading": job.reading,
            "items_per_second": pace.items_per_second,
            "eta_seconds": pace.eta_seconds,
            "breaker": job.breaker.state,
        }


def as_sse(told: JobUpdate | None) -> bytes:
    """An event of an event stream; a comment keeps it alive."""
    if told is None:
        return b": still here\n\n"
    number = b"" if told.number is None else b"id: %d\n" % told.number
    return b"%bevent: %b\ndata: %b\n\n" % (number, told.kind.encode(), told.data)


def as_message(told: JobUpdate) -> str:
    """The same as a message of a WebSocket."""
    return encode({"id": told.number, "event": told.kind, "data": Raw(told.data)}).decode()


def _data(data: Raw, at: float) -> bytes:
    """When it was, then the event's own fields; data that are no object stand under `value`."""
    raw = bytes(data)
    head = encode({"at": instant(at)})[:-1]
    if not raw.startswith(b"{"):
        return head + b',"value":' + raw + b"}"
    rest = raw[1:].lstrip()
    return head + (b"}" if rest.startswith(b"}") else b"," + rest)
