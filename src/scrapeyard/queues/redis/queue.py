"""The queue on Redis 7 or Valkey: a stream for each lane and priority, and pub/sub for small messages.

A taken entry is removed from its stream at once, so what a stream holds is what waits. One server, or a primary with
replicas behind one address; Redis Cluster is not supported, as a taker reads several streams in one step.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from time import perf_counter
from typing import Any

import msgspec
from redis.exceptions import ResponseError

from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.messages import LANE, Unreadable, check_lanes, check_size, decode_delivery, encode_delivery
from scrapeyard.queues.redis.pubsub import RedisSubscriber
from scrapeyard.queues.redis.take import Entry, Takers, read_entries, removals
from scrapeyard.redis.connection import Command, CommandLink, Dialer, LinkLost
from scrapeyard.redis.keys import CONSUMER, FIELD, GROUP, Keys
from scrapeyard.redis.outage import Outage
from scrapeyard.telemetry.events import get_log

BATCH = 500
BATCH_BYTES = 4 * 1024 * 1024
_RECOVER_BATCH = 100
_LEVEL_SECONDS = 0.05
_ORDER = list(Priority)


class RedisQueue:
    """Deliveries and messages between processes.

    `patience_seconds` is how long a method tries before it raises QueueUnavailable. A delivery whose taker died between
    reading and removing it is put back by `recover` when it has lain there for `stranded_seconds`, marked redelivered.
    A command that was cut off by an outage is sent again within the patience, so a delivery may come twice.
    """

    def __init__(
        self, url: str, *, prefix: str = "scrapeyard", patience_seconds: float = 2.0, stranded_seconds: float = 10.0
    ) -> None:
        self._keys = Keys(prefix)
        self._patience = patience_seconds
        self._stranded_ms = int(stranded_seconds * 1000)
        self._log = get_log("queue")
        self._turn = 0
        self._levels = _Levels()
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
            put_back=self.publish,
            patience=patience_seconds,
            log=self._log,
        )

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
        """One round trip for each 500 deliveries. The number returned counts those on their way to a taker too, and
        what was taken within the last 50 ms may still be in it."""
        # a waiting taker is woken by the first entry that comes: let that be the most urgent
        ordered = sorted(deliveries, key=lambda delivery: _ORDER.index(delivery.priority))
        additions = [self._addition(delivery) for delivery in ordered]
        lanes = Counter(delivery.lane for delivery in deliveries)
        if not lanes:
            return 0
        stale = self._levels.stale(lanes, self._commands.client_id)
        if not stale:
            await self._ask(*additions)
            return self._levels.raised(lanes)
        lengths = self._lengths(stale)
        replies = await self._ask(("SADD", self._keys.lanes, *stale), *additions, *lengths)
        self._levels.note(stale, _sums(replies[-len(lengths) :], len(_ORDER)))
        return self._levels.raised({lane: 0 if lane in stale else count for lane, count in lanes.items()})

    async def take(
        self, lanes: Sequence[str], count: int, priorities: Sequence[Priority], timeout: float
    ) -> list[Delivery]:
        """At most 1000 at once. Lanes of equal priority take turns at being asked first."""
        check_lanes(lanes)
        if not lanes or not priorities or count <= 0:
            return []
        self._turn = (self._turn + 1) % len(lanes)
        turned = [*lanes[self._turn :], *lanes[: self._turn]]
        return await self._takers.take(self._keys.streams(turned, priorities), count, timeout)

    async def depth(self) -> dict[tuple[str, Priority], int]:
        """Counts what is on its way to a taker, or stranded there, too."""
        lanes = await self._lanes()
        lines = [(lane, priority) for lane in lanes for priority in _ORDER]
        lengths = await self._ask(*self._lengths(lanes))
        return {line: length for line, length in zip(lines, lengths, strict=True) if length}

    async def oldest(self, lane: str, priority: Priority) -> float | None:
        """The `queued_at` of the stream's first entry. One that cannot be read counts from when it was added."""
        check_lanes((lane,))
        stream = self._keys.stream(lane, priority)
        (found,) = await self._ask(("XRANGE", stream, "-", "+", "COUNT", 1))
        if not found:
            return None
        entry = Entry(stream.encode(), *found[0])
        try:
            return decode_delivery(entry.message).queued_at
        except Unreadable:
            return int(entry.id.partition(b"-")[0]) / 1000

    async def recover(self) -> int:
        """What lay pending for `stranded_seconds` goes to the tail of its stream, marked redelivered."""
        count = 0
        for stream in self._keys.streams(await self._lanes(), _ORDER):
            count += await self._recover(stream)
        if count:
            self._log.warning("queue.recovered", count=count)
        return count

    async def send(self, channel: str, message: bytes) -> None:
        """Returns when the server has it."""
        await self._ask(("PUBLISH", self._keys.channel(channel), check_size(message)))

    def listen(self, channel: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Entering waits until the server has confirmed, however long it is away. Start the queue first."""
        return self._ear.listen(channel)

    async def ping(self) -> float:
        """On the connection that `publish` uses."""
        began = perf_counter()
        await self._ask(("PING",))
        return (perf_counter() - began) * 1000

    async def _ask(self, *commands: Command) -> list[Any]:
        """Replies to all, in order. Raises QueueUnavailable when they do not come or one is refused."""
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
        while True:
            try:
                await self._commands.ready(until)
                within = max(0.0, until - loop.time())
                return await self._commands.ask(*commands, within=within, unheard=self._takers.leavings())
            except LinkLost as error:
                if loop.time() >= until:
                    raise QueueUnavailable(f"the queue does not answer: {error}") from None

    async def _recover(self, stream: str) -> int:
        count, cursor = 0, b"0-0"
        while True:
            claim: Command = ("XAUTOCLAIM", stream, GROUP, CONSUMER, self._stranded_ms, cursor, "COUNT", _RECOVER_BATCH)
            (reply,) = await self._ask_until(asyncio.get_running_loop().time() + self._patience, [claim])
            if isinstance(reply, ResponseError):
                # NOGROUP: nobody has taken from this lane yet
                return count
            cursor, found = reply[0], [Entry(stream.encode(), *entry) for entry in reply[1]]
            count += await self._put_back(found)
            if cursor == b"0-0":
                return count

    async def _put_back(self, entries: Sequence[Entry]) -> int:
        deliveries = read_entries(entries, self._log)
        additions = [self._addition(msgspec.structs.replace(delivery, redelivered=True)) for delivery in deliveries]
        # added before the old ones are removed: dying in between leaves them twice rather than not at all
        await self._ask(*additions, *removals(entries))
        return len(deliveries)

    async def _lanes(self) -> list[str]:
        (names,) = await self._ask(("SMEMBERS", self._keys.lanes))
        return sorted(name for raw in names if LANE.fullmatch(name := raw.decode(errors="replace")))

    def _addition(self, delivery: Delivery) -> Command:
        return ("XADD", self._keys.stream(delivery.lane, delivery.priority), "*", FIELD, encode_delivery(delivery))

    def _lengths(self, lanes: Sequence[str]) -> list[Command]:
        return [("XLEN", self._keys.stream(lane, priority)) for lane in lanes for priority in _ORDER]


class _Levels:
    """How many wait in each lane, as last asked and counted on since: a busy publisher need not ask each time."""

    def __init__(self) -> None:
        self._levels: dict[str, tuple[float, int]] = {}
        self._connection = 0

    def stale(self, lanes: Iterable[str], connection: int) -> list[str]:
        """Which of them must be asked for: not asked lately, or not on this connection."""
        if connection != self._connection:
            self._levels.clear()
            self._connection = connection
        now = perf_counter()
        return sorted(lane for lane in lanes if self._levels.get(lane, (0.0, 0))[0] <= now)

    def note(self, lanes: Sequence[str], levels: Iterable[int]) -> None:
        """What the server said."""
        until = perf_counter() + _LEVEL_SECONDS
        self._levels.update({lane: (until, level) for lane, level in zip(lanes, levels, strict=True)})

    def raised(self, lanes: Mapping[str, int]) -> int:
        """Add what was published to these lanes; the fullest of them."""
        for lane, count in lanes.items():
            until, level = self._levels[lane]
            self._levels[lane] = (until, level + count)
        return max(self._levels[lane][1] for lane in lanes)


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


def _sums(numbers: Sequence[int], width: int) -> Iterator[int]:
    for at in range(0, len(numbers), width):
        yield sum(numbers[at : at + width])
