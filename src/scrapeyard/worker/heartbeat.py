"""Tells the store that this worker lives and prolongs the leases of what it runs."""

import asyncio
import os
import resource
import time
from collections.abc import Callable

from scrapeyard.errors import Unavailable
from scrapeyard.model import WorkerInfo
from scrapeyard.store.port import Store
from scrapeyard.store.recorder import Recorder
from scrapeyard.telemetry.events import get_log

log = get_log("worker")


class Heartbeat:
    """Beats until stopped. A store that is away is tried again at the next beat."""

    def __init__(
        self,
        *,
        store: Store,
        recorder: Recorder,
        every_seconds: float,
        lease_seconds: float,
        describe: Callable[[], WorkerInfo],
        running: Callable[[], list[str]],
        stop_run: Callable[[str], None],
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._every = every_seconds
        self._lease = lease_seconds
        self._describe = describe
        self._running = running
        self._stop_run = stop_run
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """First beat now, so that the worker is listed at once."""
        await self._beat()
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Say goodbye. May be called twice."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait((task,))
        try:
            await self._store.forget(self._describe().id)
        except Unavailable as error:
            log.warning("worker.beat_lost", error=error.message)

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            await self._beat()

    async def _beat(self) -> None:
        try:
            await self._store.beat(self._describe())
            await self._renew()
        except Unavailable as error:
            log.warning("worker.beat_lost", error=error.message)

    async def _renew(self) -> None:
        """A run's row may still be in the recorder; it must be written before the store is asked about it."""
        run_ids = self._running()
        if not run_ids:
            return
        await self._recorder.flush()
        worker_id = self._describe().id
        for run_id in await self._store.renew(worker_id, run_ids, time.time() + self._lease):
            self._stop_run(run_id)


def load_per_core() -> float:
    """The one-minute load average for each core."""
    return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)


def own_memory_mb() -> float:
    """The peak memory of this process."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
