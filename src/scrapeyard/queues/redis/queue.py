"""The queue on Redis 7 or Valkey: a list for each lane and priority, and pub/sub for small messages.

Taking is popping, so what a list holds is what waits. One server, or a primary with replicas behind one address; Redis
Cluster is not supported, as a taker pops from several lists in one command.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from itertools import count as counter
from time import perf_counter
from typing import Any

from redis.exceptions import ResponseError

from scrapeyard.errors import QueueUnavailable, QueueUncertain
from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.messages import (
    LANE,
    LaneTurns,
    Unreadable,
    check_lanes,
    check_size,
    decode_delivery,
    encode_delivery,
)
from scrapeyard.queues.port import Capabilities
from scrapeyard.queues.redis.pubsub import RedisSubscriber
from scrapeyard.queues.redis.take import Takers
from scrapeyard.redis.connection import Command, CommandLink, Dialer, LinkLost
from scrapeyard.redis.keys import Keys
from scrapeyard.redis.outage import Outage
from scrapeyard.telemetry.events import get_log

BATCH = 500
BATCH_BYTES = 4 * 1024 * 1024
_ORDER = list(Priority)
_FRESH_SECONDS = 0.05
"""A busy publisher asks for the lengths of a lane's lists, and names the lane, no more often than this."""


class RedisQueue:
    """Deliveries and messages between processes.

    `patience_seconds` is how long a method tries before it raises QueueUnavailable. A push that is cut off by an outage
    is sent again within the patience, so a delivery may come twice. A pop that is cut off may lose what it popped; the
    dispatcher publishes it again.
    """

    def __init__(self, url: str, *, prefix: str = "scrapeyard", patience_seconds: float = 2.0) -> None:
        self._keys = Keys(prefix)
        self._patience = patience_seconds
        self._log = get_log("queue")
        self._turns = LaneTurns()
        self._known: dict[str | bytes | int, int] = {}
        self._fresh_until: dict[str, float] = {}
        dial = Dialer(url)
        outage = Outage(
            away=lambda error, seconds: self._log.warning("queue.away", error=error, retry_seconds=seconds),
            back=lambda seconds: self._log.info("queue.back", away_seconds=seconds),
            ends_on_stop=True,
        )
        self._commands = CommandLink(dial, outage)
        self._ear = RedisSubscriber(dial, outage, self._keys, self._log)
        self._takers = Takers(
            new_link=lambda: CommandLink(dial, outage),
            commands=self._commands,
            put_back=self._put_back,
            patience=patience_seconds,
            log=self._log,
        )

    @property
    def capabilities(self) -> Capabilities:
        """Everything."""
        return Capabilities()

    async def start(self) -> None:
        """Begins to connect and waits for it, but no longer than the patience."""
        self._commands.start()
        self._ear.start()
        self._takers.start()
        try:
            await self._commands.ready(asyncio.get_running_loop().time() + self._patience)
        except LinkLost:
            return

    async def stop(self) -> None:
        """Takes that are under way return what they have."""
        await self._takers.stop()
        await self._ear.stop()
        await self._commands.stop()

    async def publish(self, deliveries: Sequence[Delivery]) -> int:
        """One round trip for each 500 deliveries. The number returned counts those on their way to a taker too, and of
        the priorities not published to what waited up to 50 ms ago."""
        lanes = sorted({delivery.lane for delivery in deliveries})
        now = perf_counter()
        stale = [lane for lane in lanes if self._fresh_until.get(lane, 0.0) <= now]
        sized = [*self._pushes("RPUSH", deliveries), *self._lengths(stale)]
        named: list[Command] = [("SADD", self._keys.lanes, *stale)] if stale else []
        for (_, key, *_), length in zip(sized, await self._ask(*sized, *named), strict=False):
            self._known[key] = length
        self._fresh_until.update(dict.fromkeys(stale, now + _FRESH_SECONDS))
        return max((sum(self._known[key] for _, key in self._lengths([lane])) for lane in lanes), default=0)

    async def take(
        self, lanes: Sequence[str], count: int, priorities: Sequence[Priority], timeout: float
    ) -> list[Delivery]:
        """At most 1000 at once. Lanes of equal priority take turns at being asked first.

        With a timeout, all deliveries of one take are of the same lane and priority: the first that has any.
        """
        lists = [self._keys.waiting(lane, priority) for lane, priority in self._turns.order(lanes, priorities)]
        if not lists or count <= 0:
            return []
        return await self._takers.take(lists, count, timeout)

    async def depth(self) -> dict[tuple[str, Priority], int]:
        """Exact."""
        lanes = await self._lanes()
        lines = [(lane, priority) for lane in lanes for priority in _ORDER]
        lengths = await self._ask(*self._lengths(lanes))
        return {line: length for line, length in zip(lines, lengths, strict=True) if length}

    async def oldest(self, lane: str, priority: Priority) -> float | None:
        """The `queued_at` of the first in the list that can be read."""
        check_lanes((lane,))
        for place in counter():
            (message,) = await self._ask(("LINDEX", self._keys.waiting(lane, priority), place))
            if message is None:
                break
            with suppress(Unreadable):
                return decode_delivery(message).queued_at
        return None

    async def send(self, channel: str, message: bytes) -> None:
        """Returns when the server has it."""
        await self._ask(("PUBLISH", self._keys.channel(channel), check_size(message)))

    def listen(self, channel: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Entering waits until the server has confirmed, however long it is away. Start the queue first."""
        return self._ear.listen(channel)

    async def ping(self) -> float:
        """On the connection that `publish` uses. Writes a little: a server that is full answers, but takes nothing."""
        began = perf_counter()
        await self._ask(("SET", self._keys.probe, "1", "EX", "60"))
        return (perf_counter() - began) * 1000

    async def _ask(self, *commands: Command) -> list[Any]:
        """Replies to all, in order. Raises QueueUnavailable when one is refused or nothing could be sent, and
        QueueUncertain when no reply comes to what was sent."""
        replies: list[Any] = []
        until = asyncio.get_running_loop().time() + self._patience
        for batch in _batches(commands):
            replies += await self._ask_until(until, batch)
        refusals = [reply for reply in replies if isinstance(reply, ResponseError)]
        if refusals:
            raise QueueUnavailable(f"the queue refused: {str(refusals[0])[:200]}")
        return replies

    async def _ask_until(self, until: float, commands: Sequence[Command]) -> list[Any]:
        loop = asyncio.get_running_loop()
        kind = QueueUnavailable
        while True:
            try:
                await self._commands.ready(until)
                within, kind = max(0.0, until - loop.time()), QueueUncertain
                return await self._commands.ask(*commands, within=within)
            except LinkLost as error:
                if loop.time() >= until:
                    raise kind(f"the queue does not answer: {error}") from None

    async def _put_back(self, deliveries: Sequence[Delivery]) -> None:
        """At the head, in the order in which they were popped."""
        await self._ask(*self._pushes("LPUSH", deliveries[::-1]))

    async def _lanes(self) -> list[str]:
        (names,) = await self._ask(("SMEMBERS", self._keys.lanes))
        return sorted(name for raw in names if LANE.fullmatch(name := raw.decode(errors="replace")))

    def _pushes(self, verb: str, deliveries: Sequence[Delivery]) -> list[Command]:
        # a waiting taker is woken by the first push: let that be the most urgent
        ordered = sorted(deliveries, key=lambda delivery: _ORDER.index(delivery.priority))
        return [(verb, self._keys.waiting(each.lane, each.priority), encode_delivery(each)) for each in ordered]

    def _lengths(self, lanes: Sequence[str]) -> list[Command]:
        return [("LLEN", self._keys.waiting(lane, priority)) for lane in lanes for priority in _ORDER]


def _batches(commands: Sequence[Command]) -> Iterator[list[Command]]:
    """Cut so that neither side must hold more than some megabytes of unread bytes."""
    batch: list[Command] = []
    size = 0
    for command in commands:
        batch.append(command)
        size += len(command[-1]) if isinstance(command[-1], bytes) else 0
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
