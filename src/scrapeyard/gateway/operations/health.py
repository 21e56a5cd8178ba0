"""The state of everything the gateway depends on."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from msgspec import Struct

from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import QueueUnavailable, ScrapeyardError
from scrapeyard.model import WorkerInfo
from scrapeyard.model.lanes import ScraperLanes
from scrapeyard.queues.port import Queue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import Store
from scrapeyard.store.recorder import Recorder

PATIENCE_SECONDS = 2.0
MAX_DETAIL = 500
FRESH_SECONDS = 1.0
FRESH_BLOBS_SECONDS = 10.0
"""Longer, since checking the blob store writes and removes an object."""


class DependencyState(Struct, frozen=True, kw_only=True):
    """Last known state of one dependency."""

    up: bool
    at: float
    """On the monotonic clock."""
    latency_ms: float | None = None
    detail: str = ""


class Health:
    """Checks each dependency at most once a second, however often it is asked."""

    def __init__(self, queue: Queue, store: Store, blobs: Blobs, recorder: Recorder, settings: Settings) -> None:
        self._queue = queue
        self._store = store
        self._scrapers = ScraperLanes(settings.lanes.patterns)
        self._recorder = recorder
        self._lease_seconds = settings.worker.lease_seconds
        self._checks: dict[str, tuple[Callable[[], Awaitable[DependencyState]], float]] = {
            "queue": (lambda: _ping(queue.ping), FRESH_SECONDS),
            "store": (lambda: _ping(store.ping), FRESH_SECONDS),
            "blobs": (lambda: _ping(blobs.ping), FRESH_BLOBS_SECONDS),
            "workers": (self._workers, FRESH_SECONDS),
        }
        self._found: dict[str, DependencyState] = {}
        self._looked_at: dict[str, float] = {}
        self._locks = {name: asyncio.Lock() for name in self._checks}

    async def look(self, *names: str) -> dict[str, DependencyState]:
        """States no older than each dependency's freshness; of all dependencies if none is named."""
        wanted = names or tuple(self._checks)
        findings = await asyncio.gather(*(self._poll(name) for name in wanted))
        return dict(zip(wanted, findings, strict=True))

    def overall(self, findings: dict[str, DependencyState]) -> Literal["ok", "degraded", "down"]:
        """`down` if calls cannot be accepted, `degraded` if they can but something is wrong."""
        if not (findings["queue"].up and findings["store"].up):
            return "down"
        well = all(finding.up for finding in findings.values()) and not self._recorder.away
        return "ok" if well else "degraded"

    async def _poll(self, name: str) -> DependencyState:
        check, fresh = self._checks[name]
        async with self._locks[name]:
            found = self._found.get(name)
            if found is None or time.monotonic() - self._looked_at[name] > fresh:
                found = self._found[name] = await check()
                self._looked_at[name] = time.monotonic()
        return found

    async def _workers(self) -> DependencyState:
        at, now = time.monotonic(), time.time()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                workers = await self._store.workers.alive(now - self._lease_seconds)
                untaken = await self._untaken(workers)
        except (ScrapeyardError, TimeoutError) as error:
            return DependencyState(up=False, at=at, detail=str(error) or "the store did not tell in time")
        if not workers:
            return DependencyState(up=False, at=at, detail="no worker has been seen lately")
        if all(worker.draining for worker in workers):
            return DependencyState(up=False, at=at, detail="every worker drains, and takes nothing")
        if untaken:
            told = ", ".join(f"{self._scrapers.words(lane)} ({waiting} wait)" for lane, waiting in untaken.items())
            return DependencyState(up=False, at=at, detail=f"no worker takes {told}"[:MAX_DETAIL])
        slots, busy = sum(worker.slots for worker in workers), sum(worker.busy for worker in workers)
        seen = max(worker.seen_at for worker in workers)
        return DependencyState(
            up=True, at=at - max(0.0, now - seen), detail=f"{len(workers)} workers, {busy}/{slots} slots busy"
        )

    async def _untaken(self, workers: Sequence[WorkerInfo]) -> dict[str, int]:
        """How much waits in lanes that none of these workers takes."""
        taken = {lane for worker in workers if not worker.draining for lane in worker.lanes}
        waiting: Counter[str] = Counter()
        try:
            depth = await self._queue.depth()
        except QueueUnavailable:  # told as the state of the queue
            return {}
        for (lane, _), count in depth.items():
            waiting[lane] += count
        return {lane: count for lane, count in sorted(waiting.items()) if lane not in taken}


async def _ping(ping: Callable[[], Awaitable[float]]) -> DependencyState:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            latency = await ping()
    except (ScrapeyardError, TimeoutError) as error:
        words = str(error) or f"no answer within {PATIENCE_SECONDS:g} s"
        return DependencyState(up=False, at=time.monotonic(), detail=words)
    return DependencyState(up=True, at=time.monotonic(), latency_ms=round(latency, 3))
