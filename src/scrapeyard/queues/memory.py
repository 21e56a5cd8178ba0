"""The queue of one process: deques and futures. Nothing outlives the process, and nothing polls."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count as counter

from msgspec import Struct

from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.listeners import Listener, Listeners
from scrapeyard.queues.messages import check_lanes, check_size, encode_delivery
from scrapeyard.queues.port import Capabilities
from scrapeyard.telemetry.events import get_log


class _Taker(Struct, eq=False):
    """Someone who waits in `take`."""

    lanes: Sequence[str]
    count: int
    priorities: Sequence[Priority]
    given: asyncio.Future[list[Delivery]]


class MemoryQueue:
    """Deliveries within one process.

    Priorities are exact, deliveries of equal priority leave in the order they came whatever their lane, and takers who
    wait are served in the order they came. Must be used from one event loop.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, Priority], deque[tuple[int, Delivery]]] = {}
        self._tail = counter()
        self._head = counter(-1, -1)
        self._takers: dict[_Taker, None] = {}
        self._listeners = Listeners()
        self._log = get_log("queue")
        self._stopped = False

    @property
    def capabilities(self) -> Capabilities:
        """Everything, within one process."""
        return Capabilities(is_shared=False)

    async def start(self) -> None:
        """Nothing to connect to."""
        self._stopped = False

    async def stop(self) -> None:
        """End every listener and every waiting `take`. What waits in the queue stays."""
        self._stopped = True
        self._listeners.close()
        for taker in self._takers:
            if not taker.given.done():
                taker.given.set_result([])

    async def publish(self, deliveries: Sequence[Delivery]) -> int:
        """Takers who wait get theirs at once; the number returned does not count those."""
        for delivery in deliveries:
            encode_delivery(delivery)
        for delivery in deliveries:
            self._line(delivery).append((next(self._tail), delivery))
        self._serve()
        return max((self._in_lane(lane) for lane in {delivery.lane for delivery in deliveries}), default=0)

    async def take(
        self, lanes: Sequence[str], count: int, priorities: Sequence[Priority], timeout: float
    ) -> list[Delivery]:
        """Returns as soon as there is anything; it does not wait for `count`."""
        check_lanes(lanes)
        taker = _Taker(lanes, count, priorities, asyncio.get_running_loop().create_future())
        found = self._pick(taker)
        if found or timeout <= 0 or self._stopped:
            return found
        return await self._wait(taker, timeout)

    async def depth(self) -> dict[tuple[str, Priority], int]:
        """Exact."""
        return {key: len(line) for key, line in self._waiting.items() if line}

    async def oldest(self, lane: str, priority: Priority) -> float | None:
        """The `queued_at` of the delivery that is next in this line."""
        check_lanes((lane,))
        line = self._waiting.get((lane, priority))
        return line[0][1].queued_at if line else None

    async def send(self, channel: str, message: bytes) -> None:
        """Reaches every listener before it returns."""
        self._listeners.give(channel, check_size(message))

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """A listener that falls behind loses the oldest messages."""
        listener = Listener(channel, self._log)
        self._listeners.add(channel, listener)
        if self._stopped:
            listener.close()
        try:
            yield listener
        finally:
            self._listeners.remove(channel, listener)
            listener.close()

    async def ping(self) -> float:
        """Nothing to wait for."""
        return 0.0

    async def _wait(self, taker: _Taker, timeout: float) -> list[Delivery]:
        self._takers[taker] = None
        try:
            await asyncio.wait((taker.given,), timeout=timeout)
        except asyncio.CancelledError:
            del self._takers[taker]
            if taker.given.done():
                self._give_back(taker.given.result())
            raise
        del self._takers[taker]
        return taker.given.result() if taker.given.done() else []

    def _give_back(self, deliveries: list[Delivery]) -> None:
        for delivery in reversed(deliveries):
            self._line(delivery).appendleft((next(self._head), delivery))
        self._serve()

    def _serve(self) -> None:
        for taker in self._takers:
            if not taker.given.done() and (found := self._pick(taker)):
                taker.given.set_result(found)

    def _pick(self, taker: _Taker) -> list[Delivery]:
        found: list[Delivery] = []
        for priority in taker.priorities:
            lines = [line for lane in taker.lanes if (line := self._waiting.get((lane, priority)))]
            while lines and len(found) < taker.count:
                line = min(lines, key=lambda line: line[0][0])
                found.append(line.popleft()[1])
                lines = [line for line in lines if line]
        return found

    def _line(self, delivery: Delivery) -> deque[tuple[int, Delivery]]:
        return self._waiting.setdefault((delivery.lane, delivery.priority), deque())

    def _in_lane(self, lane: str) -> int:
        return sum(len(self._waiting.get((lane, priority), ())) for priority in Priority)
