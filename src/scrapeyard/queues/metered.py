"""A queue around another that tells how long its operations take and which fail."""

import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.port import Capabilities, Queue
from scrapeyard.telemetry.metrics import Metrics

T = TypeVar("T")


class MeteredQueue(Queue):
    """As the queue inside. `take` and `listen` wait for work and are not timed."""

    def __init__(self, inner: Queue, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics

    @property
    def capabilities(self) -> Capabilities:
        """As `Queue`."""
        return self._inner.capabilities

    async def start(self) -> None:
        """Start the queue inside."""
        await self._inner.start()

    async def stop(self) -> None:
        """Stop the queue inside."""
        await self._inner.stop()

    async def publish(self, deliveries: Sequence[Delivery]) -> int:
        """As `Queue`."""
        return await self._timed("publish", self._inner.publish(deliveries))

    async def take(
        self, lanes: Sequence[str], count: int, priorities: Sequence[Priority], timeout: float
    ) -> list[Delivery]:
        """As `Queue`."""
        return await self._inner.take(lanes, count, priorities, timeout)

    async def depth(self) -> dict[tuple[str, Priority], int]:
        """As `Queue`."""
        return await self._timed("depth", self._inner.depth())

    async def oldest(self, lane: str, priority: Priority) -> float | None:
        """As `Queue`."""
        return await self._timed("oldest", self._inner.oldest(lane, priority))

    async def send(self, channel: str, message: bytes) -> None:
        """As `Queue`."""
        await self._timed("send", self._inner.send(channel, message))

    def listen(self, channel: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """As `Queue`."""
        return self._inner.listen(channel)

    async def ping(self) -> float:
        """As `Queue`."""
        return await self._timed("ping", self._inner.ping())

    async def _timed(self, operation: str, work: Awaitable[T]) -> T:
        began, well = time.perf_counter(), True
        try:
            return await work
        except QueueUnavailable:
            well = False
            raise
        finally:
            self._metrics.queued(operation, time.perf_counter() - began, well=well)
