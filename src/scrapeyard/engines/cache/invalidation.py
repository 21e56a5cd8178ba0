"""Invalidation: every worker forgets what a signal names, in its memory and in the shared tier."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from scrapeyard.engines.cache.port import PageStore
from scrapeyard.errors import ScrapeyardError
from scrapeyard.model import Invalidate
from scrapeyard.queues import messages as channels
from scrapeyard.queues.port import Queue
from scrapeyard.telemetry.events import get_log

log = get_log("cache")
_PAUSE_SECONDS = 0.5
_PATIENCE_SECONDS = 2.0


async def forget(store: PageStore, signal: Invalidate) -> int:
    """How many pages went. Raises Unavailable."""
    if signal.url:
        return await store.drop(signal.url)
    if signal.site:
        return await store.drop_site(signal.site)
    return await store.drop_all()


class Invalidations:
    """Hears on the queue what is invalidated and has it forgotten here.

    A signal that is sent while this process is cut off from the queue is missed; `RedisPages.on_return` is for that.
    """

    def __init__(self, queue: Queue, obey: Callable[[Invalidate], Awaitable[None]]) -> None:
        self._queue = queue
        self._obey = obey
        self._ear: asyncio.Task[None] | None = None
        self._heard = asyncio.Event()

    async def start(self) -> None:
        """Begin to hear. Returns when that is so, or after two seconds without a broker."""
        if self._ear is not None:
            return
        self._ear = asyncio.create_task(self._receive_forever(), name="cache-invalidations")
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._heard.wait()

    async def stop(self) -> None:
        """Hear no more. May be called twice."""
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.cancel()
            await asyncio.gather(ear, return_exceptions=True)

    async def _receive_forever(self) -> None:
        while True:
            try:
                await self._receive()
            except ScrapeyardError as error:
                log.warning("cache.not_heard", error=error.message)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _receive(self) -> None:
        async with self._queue.listen(channels.SIGNALS) as messages:
            self._heard.set()
            async for message in messages:
                try:
                    signal = channels.decode_signal(message)
                except msgspec.MsgspecError:
                    continue  # who takes runs hears the same channel and has logged it
                if isinstance(signal, Invalidate):
                    await self._try(signal)

    async def _try(self, signal: Invalidate) -> None:
        try:
            await self._obey(signal)
        except ScrapeyardError as error:
            log.warning("cache.not_dropped", error=error.message)
