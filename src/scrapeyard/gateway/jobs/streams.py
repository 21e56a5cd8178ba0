"""Live events of jobs, for any number of watchers.

One task polls each watched job twice a second. It sends watchers nothing: it wakes them, and each reads the events it
has not seen from the store. So a slow watcher is only late, and nothing is buffered for it. Only the items that ended
last are kept, for those who want a line for each. Here also stands what tells other processes of a job.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
from msgspec import Raw, Struct

from scrapeyard.errors import NotFound, QueueUnavailable, Refusal, ScrapeyardError
from scrapeyard.gateway.jobs.rates import JobRates
from scrapeyard.gateway.runs.documents import encode
from scrapeyard.model import CancelJob
from scrapeyard.model.instants import instant
from scrapeyard.model.job import Item, Job, JobStatus
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.jobs import EventStore, Frontier
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")
LOOK_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15.0
LINES_BY_DEFAULT = frozenset({"site"})
"""Profiles whose jobs are watched line by line unless the watcher says otherwise."""
PAGE = 500
"""Events read at once."""
LINES = 100
"""Ended items that are told of one look, and kept for watchers that come later. More are counted."""
SETTLED_SECONDS = 5.0
"""All events of a job that ended longer ago than this have been written."""


class JobUpdate(Struct, frozen=True, kw_only=True):
    """One event for a watcher."""

    kind: str
    data: bytes
    """JSON."""
    number: int | None = None
    """Lets a reconnecting watcher say what it received; None for updates that are not sent again."""


class StreamOptions(Struct, frozen=True, kw_only=True):
    """What a watcher wants beside the events."""

    after: int = 0
    """Number of the last event that it had."""
    lines: bool | None = None
    """One line for each item that ends; None for the default of the job's profile."""
    results: bool = False
    """With its result, if that is small."""


class EndedLines:
    """The items of one job that ended last. They are numbered from 1, and so are those that are left out."""

    def __init__(self) -> None:
        self.wanted = 0
        """Watchers that want them."""
        self._frontier = Frontier()
        self._kept: deque[tuple[int, Item]] = deque(maxlen=LINES)
        self._count = 0

    async def look(self, store: Store, job_id: str) -> None:
        """Read what ended since the last look, if somebody wants it."""
        if not self.wanted:
            return
        found = await store.items.ended_since(job_id, self._frontier, LINES)
        self._frontier = found.frontier
        self._count += found.left_out
        for item in found.items:
            self._count += 1
            self._kept.append((self._count, item))

    def after(self, told: int) -> tuple[list[Item], int]:
        """Items after number `told`, and the number of the last one that ended."""
        return [item for number, item in self._kept if number > told], self._count


class WatchedJob:
    """The last known state of one job, shared by its watchers."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.progress: dict[str, Any] = {}
        self.lines = EndedLines()
        self.tail = 0
        """Number of the newest event."""
        self.ended = False
        """No more events: the job is final or deleted, or the gateway is stopping."""
        self._changed = asyncio.Event()

    def tell(self) -> None:
        """Wake every watcher."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def news(self, seconds: float) -> bool:
        """Wait for the next poll that brought something. False if none did in time."""
        if self.ended:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._changed.wait()
        return False


class JobStreams:
    """All watchers of this gateway, at most `most` at once. `close` ends every stream."""

    def __init__(self, store: Store, rates: JobRates, clock: Callable[[], float], most: int) -> None:
        self._store = store
        self._rates = rates
        self._clock = clock
        self._most = most
        self._count = 0
        self._closed = False
        self._none_open = asyncio.Event()
        self._none_open.set()
        self._watches: dict[str, tuple[WatchedJob, asyncio.Task[None], int]] = {}

    def close(self) -> None:
        """End every stream, and begin no other; watchers reconnect elsewhere. May be called twice."""
        self._closed = True
        for watch, task, _ in self._watches.values():
            task.cancel()
            watch.ended = True
            watch.tell()

    async def wait_closed(self) -> None:
        """After `close`, until every stream has ended."""
        await self._none_open.wait()

    async def follow(self, job_id: str, options: StreamOptions) -> AsyncGenerator[JobUpdate | None]:
        """Yield events numbered higher than `options.after`, `progress` and lines in between, then one `end`; None as
        keep-alive.

        Raises NotFound, or Refusal if there are too many watchers (429) or the gateway is stopping (503), before the
        first.
        """
        if self._closed:
            raise Refusal("not_ready", 503, "the gateway is stopping", retry_after=1)
        if self._count >= self._most:
            raise Refusal("too_many_waiting", 429, f"{self._most} streams are open already", retry_after=5)
        job = await self._store.jobs.get(job_id)
        if job is None:
            raise NotFound(f"no job {job_id}")
        self._count += 1
        self._none_open.clear()
        try:
            async with self._watched(job) as watch:
                async for told in self._told(watch, options):
                    yield told
        finally:
            self._count -= 1
            if not self._count:
                self._none_open.set()

    async def _told(self, watch: WatchedJob, options: StreamOptions) -> AsyncIterator[JobUpdate | None]:
        lines = _Lines(watch, options)
        watch.lines.wanted += lines.wanted
        try:
            if watch.ended:  # nobody polls it any more
                await watch.lines.look(self._store, watch.job.id)
            async for told in self._updates(watch, options.after, lines):
                yield told
        finally:
            watch.lines.wanted -= lines.wanted

    async def _updates(self, watch: WatchedJob, after: int, lines: "_Lines") -> AsyncIterator[JobUpdate | None]:
        shown: dict[str, Any] | None = None
        while True:
            ended = watch.ended
            while after < watch.tail and (page := await self._store.events.after(watch.job.id, after, PAGE)):
                for event in page:
                    yield JobUpdate(kind=event.kind, data=_data(event.data, event.at), number=event.number)
                    after = event.number
            for update in lines.new():
                yield update
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
        """Poll a final job twice: its last event is written a moment after its final state."""
        was_final = watch.job.status.is_final
        job = await self._store.jobs.get(watch.job.id)
        while page := await self._store.events.after(watch.job.id, watch.tail, PAGE):
            watch.tail = page[-1].number
        if job is None:
            watch.ended = True
            return
        await watch.lines.look(self._store, job.id)
        watch.job = job
        watch.progress = self._progress(job)
        old = job.finished_at is not None and self._clock() - job.finished_at > SETTLED_SECONDS
        watch.ended = job.status.is_final and (was_final or old)

    def _progress(self, job: Job) -> dict[str, Any]:
        pace = self._rates.pace(job)
        return {
            "status": job.status,
            "message": _message(job),
            "percent": round(100 * job.counts.done / job.counts.total, 1) if job.counts.total else 0.0,
            "counts": job.counts,
            "reading": job.reading,
            "items_per_second": pace.items_per_second,
            "eta_seconds": pace.eta_seconds,
            "breaker": job.breaker.state,
        }


class _Lines:
    """The lines of one watcher."""

    def __init__(self, watch: WatchedJob, options: StreamOptions) -> None:
        by_profile = watch.job.profile in LINES_BY_DEFAULT
        self.wanted = options.results or (by_profile if options.lines is None else options.lines)
        self._results = options.results
        self._watch = watch
        self._told = 0

    def new(self) -> Iterator[JobUpdate]:
        """Lines that it has not had, and how many were left out."""
        if not self.wanted:
            return
        items, last = self._watch.lines.after(self._told)
        left_out, self._told = last - self._told - len(items), last
        if left_out:
            yield JobUpdate(kind="items_left_out", data=encode({"count": left_out}))
        for item in items:
            yield JobUpdate(kind="item", data=encode(_line(self._watch.job.id, item, results=self._results)))


class _Url(Struct, frozen=True):
    url: str | None = None


_URL = msgspec.json.Decoder(_Url).decode


def _line(job_id: str, item: Item, *, results: bool) -> dict[str, Any]:
    usage = item.usage
    told = {
        "key": item.key,
        "number": item.seq,
        "url": _url_of(item),
        "status": item.status,
        "exit_reason": item.exit_reason,
        "attempt": item.attempt,
        "bytes": usage.bytes_received if usage else 0,
        "ms": round(1000 * ((item.finished_at or 0.0) - (item.started_at or 0.0)), 1),
        "strategy_used": item.strategy or None,
        "proxy_used": item.proxy or None,
        "error": item.error.message[:500] if item.error else None,
        "finished_at": instant(item.finished_at),
        "href": f"/api/jobs/{job_id}/items/{item.key}",
    }
    return told | ({"result": item.result, "result_bytes": item.result_bytes} if results else {})


def _url_of(item: Item) -> str | None:
    try:
        return _URL(item.input).url
    except msgspec.MsgspecError:
        return None


def _message(job: Job) -> str:
    done, total = job.counts.done, job.counts.total
    if job.status not in (JobStatus.CREATING, JobStatus.RUNNING):
        failed = f", {job.counts.error} failed" if job.counts.error else ""
        return f"{job.status.capitalize()}: {done}/{total}{failed}"
    if not total:
        return "Reading the source"
    return f"Processing URL {min(done + 1, total)}/{total}"


def as_sse(told: JobUpdate | None) -> bytes:
    """Encode an update as a server-sent event; None becomes a keep-alive comment."""
    if told is None:
        return b": still here\n\n"
    number = b"" if told.number is None else b"id: %d\n" % told.number
    return b"%bevent: %b\ndata: %b\n\n" % (number, told.kind.encode(), told.data)


def as_message(told: JobUpdate) -> str:
    """Encode an update as a WebSocket message."""
    return encode({"id": told.number, "event": told.kind, "data": Raw(told.data)}).decode()


def _data(data: Raw, at: float) -> bytes:
    """The event's time, then its own fields. Data that is not an object goes under `value`."""
    raw = bytes(data)
    head = encode({"at": instant(at)})[:-1]
    if not raw.startswith(b"{"):
        return head + b',"value":' + raw + b"}"
    rest = raw[1:].lstrip()
    return head + (b"}" if rest.startswith(b"}") else b"," + rest)


class JobNotifier:
    """Notifies other processes. A lost message only causes delay: dispatchers and workers also poll the store."""

    def __init__(self, queue: Queue, events: EventStore, clock: Callable[[], float]) -> None:
        self._queue = queue
        self._events = events
        self._clock = clock

    async def wake(self) -> None:
        """Notify dispatchers that a job may have items to hand out."""
        await self._send(messages.FEED, b"job")

    async def kill(self, job_id: str) -> None:
        """Notify workers that they must stop what they run of this job."""
        await self._send(messages.SIGNALS, messages.encode(CancelJob(job_id=job_id)))

    async def status(self, job: Job, **more: Any) -> None:
        """Write an event with the job's new status, for watchers."""
        told = {"status": job.status.value, **({"reason": job.pause_reason} if job.pause_reason else {}), **more}
        await self._events.add(job.id, JobEventKind.STATUS, Raw(msgspec.json.encode(told)), self._clock())

    async def _send(self, channel: str, message: bytes) -> None:
        try:
            await self._queue.send(channel, message)
        except QueueUnavailable as error:
            log.warning("jobs.not_told", channel=channel, error=error.message)
