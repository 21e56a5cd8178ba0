"""Feeding again and again while this process leads."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from scrapeyard.dispatch.feeding.feeder import Feeder
from scrapeyard.errors import ScrapeyardError
from scrapeyard.queues import messages as channels
from scrapeyard.queues.port import Queue
from scrapeyard.telemetry.events import get_log

log = get_log("dispatch")
IDLE_SECONDS = 0.5
"""Between rounds while no job has anything to hand out, unless somebody says that one has."""
FAILED_SECONDS = 1.0
_REST = 0.5
"""A round is followed by a rest of at least this part of its length, so that many jobs do not take all of a core; but
never longer than a tick: a round that is long since the store is busy must not be followed by empty slots."""


class FeedLoop:
    """Feeds every `tick_seconds`, and sooner when it was idle and a job came. `leads` says whether we still may."""

    def __init__(self, feeder: Feeder, queue: Queue, tick_seconds: float, leads: Callable[[], bool]) -> None:
        self._feeder = feeder
        self._queue = queue
        self._tick = tick_seconds
        self._leads = leads
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin in the background. May be called twice."""
        if not self._tasks:
            self._stopping.clear()
            self._tasks = [asyncio.create_task(work(), name="feeder") for work in (self._run, self._hear)]

    async def stop(self) -> None:
        """End after the round at hand, so that nothing is cut and not published. May be called twice."""
        tasks, self._tasks = self._tasks, []
        if not tasks:
            return
        self._stopping.set()
        self._woken.set()
        feeding, hearing = tasks
        hearing.cancel()
        await asyncio.gather(feeding, hearing, return_exceptions=True)

    def wake(self) -> None:
        """There may be something to hand out."""
        self._woken.set()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            began = time.perf_counter()
            rest = await self._round() if self._leads() else IDLE_SECONDS
            took = time.perf_counter() - began
            least = max(self._tick - took, min(_REST * took, self._tick))
            await _pass(self._stopping, least)
            if rest > self._tick:
                await _pass(self._woken, rest - least)

    async def _round(self) -> float:
        """How long to rest afterwards."""
        try:
            return self._tick if await self._feeder.feed() else IDLE_SECONDS
        except ScrapeyardError as error:
            log.warning("dispatch.duty_failed", duty="feeder", error=error.message)
        except Exception as error:  # jobs must not stand still for one fault
            log.error("dispatch.duty_broken", duty="feeder", error=repr(error), exc_info=error)
        return FAILED_SECONDS

    async def _hear(self) -> None:
        async with self._queue.listen(channels.FEED) as messages:
            async for _ in messages:
                self.wake()


async def _pass(unless: asyncio.Event, seconds: float) -> None:
    """So long, unless that happens before."""
    with suppress(TimeoutError):
        await asyncio.wait_for(unless.wait(), seconds)
