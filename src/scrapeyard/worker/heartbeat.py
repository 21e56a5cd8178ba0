"""Reports this worker as alive to the store, renews its leases, and detects when this process was suspended."""

import asyncio
import os
import resource
import time
from collections.abc import Awaitable, Callable, Mapping

from scrapeyard.background import Background
from scrapeyard.errors import Unavailable
from scrapeyard.model import WorkerInfo
from scrapeyard.model.worker import DrainWish
from scrapeyard.store.ports.store import Store
from scrapeyard.store.recorder import Recorder
from scrapeyard.telemetry.events import get_log

log = get_log("worker")


class StallDetector:
    """After a pause as long as a lease, runs held before may belong to another worker until the store confirms them.

    Call `look` more often than every `lease_seconds`. A clock that stops with the process hides the pause.
    """

    def __init__(self, lease_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._lease = lease_seconds
        self._clock = clock
        self._looked_at = clock()
        self._stops = 0
        self._asked = 0

    @property
    def is_over(self) -> bool:
        """Whether there was no such pause since the store was last asked about the held runs."""
        return self.look() == self._asked

    def look(self) -> int:
        """Check the clock. Returns the number of pauses so far."""
        now = self._clock()
        gone, self._looked_at = now - self._looked_at, now
        if gone > self._lease:
            self._stops += 1
            log.warning("worker.stood_still", seconds=round(gone, 1))
        return self._stops

    def asked(self, stops: int) -> None:
        """The store was asked about the held runs; `stops` is what `look` returned before that."""
        self._asked = stops


class Heartbeat:
    """Beats until stopped. If the store is away, it tries again at the next beat."""

    def __init__(
        self,
        *,
        store: Store,
        recorder: Recorder,
        every_seconds: float,
        lease_seconds: float,
        describe: Callable[[], WorkerInfo],
        running: Callable[[], Mapping[str, asyncio.Task[None]]],
        stop_run: Callable[[str, asyncio.Task[None]], None],
        renew_more: Callable[[float], Awaitable[None]],
        heed: Callable[[DrainWish], Awaitable[None]],
    ) -> None:
        """`renew_more` renews the leases held beside runs until the given time. Raises StoreUnavailable. `heed` is
        told at each beat whether the worker was asked to drain. `running` returns the runs whose leases this worker
        holds; `stop_run` is called with those that the store says to stop."""
        self._store = store
        self._recorder = recorder
        self._every = every_seconds
        self._lease = lease_seconds
        self._describe = describe
        self._running = running
        self._stop_run = stop_run
        self._renew_more = renew_more
        self._heed = heed
        self._standstill = StallDetector(lease_seconds)
        self._background = Background()

    @property
    def certain(self) -> bool:
        """Whether this worker surely holds its runs: False from a lease-long pause until the store was asked."""
        return self._standstill.is_over

    async def start(self) -> None:
        """Send the first heartbeat now, so that the worker is listed at once."""
        await self._beat()
        self._background.start(self._work, self._watch_clock, name="heartbeat")

    async def stop(self) -> None:
        """Stop beating and remove this worker from the list. May be called twice."""
        if not await self._background.stop():
            return
        try:
            await self._store.workers.forget(self._describe().id)
        except Unavailable as error:
            log.warning("worker.beat_lost", error=error.message)

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            await self._beat()

    async def _watch_clock(self) -> None:
        """Runs separately from the beats, because a hanging database blocks those."""
        while True:
            self._standstill.look()
            await asyncio.sleep(self._every)

    async def _beat(self) -> None:
        stops = self._standstill.look()
        try:
            wish = await self._store.workers.beat(self._describe())
            await self._renew_more(time.time() + self._lease)
            await self._renew()
            await self._heed(wish)
        except Unavailable as error:
            log.warning("worker.beat_lost", error=error.message)
        except Exception as error:  # a worker that no longer beats would lose every run it takes
            log.error("worker.beat_broken", error=repr(error), exc_info=error)
        else:
            self._standstill.asked(stops)

    async def _renew(self) -> None:
        """Renew the leases of runs. Flushes the recorder first: a run's row must exist before the store is asked."""
        running = self._running()
        if not running:
            return
        await self._recorder.flush()
        worker_id = self._describe().id
        for run_id in await self._store.runs.renew(worker_id, list(running), time.time() + self._lease):
            self._stop_run(run_id, running[run_id])


def load_per_core() -> float:
    """The one-minute load average for each core."""
    return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)


def own_memory_mb() -> float:
    """The peak memory of this process."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
