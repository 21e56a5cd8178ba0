"""Taking from Kafka: from this process's partitions, or from another process that has more than it can run.

A partition belongs to one process of the group. While all its slots are busy, what comes in its partitions would wait
though others are idle. So a process that waits for work says so, and one that has deliveries which nobody there waits
for hands them over.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.background import Background
from scrapeyard.errors import QueueUnavailable
from scrapeyard.kafka.records import KafkaLost, KafkaRefused, Topic
from scrapeyard.model import Delivery
from scrapeyard.queues.kafka.partitions import KafkaPartitions
from scrapeyard.queues.messages import Unreadable, decode_delivery, encode_delivery
from scrapeyard.redis.outage import pauses
from scrapeyard.telemetry.events import Log

DEMANDS = "demands"
DEMAND_SECONDS = 3.0
"""How often a process that waits for work says so. Others believe it for twice this time."""
OWN_SECONDS = 0.3
"""A process with partitions of its own waits this long before it asks others."""
HAND_OVER_SECONDS = 0.02
MAX_COUNT = 1000


class _Demand(Struct, frozen=True):
    """A process waits for work. `topics` are in the order in which it wants them."""

    to: str
    topics: list[str]
    count: int


class _Waiter:
    """A take that waits."""

    def __init__(self, topics: Sequence[Topic], count: int) -> None:
        self.topics = topics
        self.count = count
        self.woken = asyncio.Event()


class KafkaTakers:
    """Runs takes. A delivery that its taker no longer waits for goes to the next one."""

    def __init__(
        self,
        partitions: KafkaPartitions,
        patience: float,
        log: Log,
        *,
        listen: Callable[[str], AbstractAsyncContextManager[AsyncIterator[bytes]]],
        send: Callable[[str, bytes], Awaitable[None]],
        publish: Callable[[Sequence[Delivery]], Awaitable[int]],
        topic_of: Callable[[Delivery], str],
    ) -> None:
        self._partitions = partitions
        self._listen = listen
        self._send = send
        self._publish = publish
        self._topic_of = topic_of
        self._patience = patience
        self._log = log
        self._me = uuid4().hex
        self._background = Background()
        self._sending = Background()
        self._waiters: list[_Waiter] = []
        self._spare: dict[str, deque[Delivery]] = {}
        self._demands: dict[str, tuple[_Demand, float]] = {}
        self._is_due = False
        self._stopped = True
        self._end = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many takes wait."""
        return len(self._waiters)

    @property
    def spare(self) -> int:
        """How many deliveries this process holds that the group has forgotten."""
        return sum(map(len, self._spare.values()))

    def start(self) -> None:
        """Takes are allowed from now on."""
        self._stopped = False
        self._end.clear()

    async def stop(self) -> None:
        """End every take, and publish again what nobody took."""
        self._stopped = True
        self._end.set()
        self.wake()
        await self._background.stop()
        await self._sending.idle()
        spare = [delivery for here in self._spare.values() for delivery in here]
        self._spare.clear()
        self._demands.clear()
        if spare:
            with suppress(QueueUnavailable):
                await self._publish(spare)

    def wake(self) -> None:
        """Something came, or changed. Those who wait look, the first first."""
        for waiter in self._waiters:
            waiter.woken.set()
        self._hand_over_soon()

    async def take(self, topics: Sequence[Topic], count: int, timeout: float) -> list[Delivery]:
        """See the port."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        self._background.start(self._hear_demands, self._hear_gifts, name="kafka-handover")
        waiter = _Waiter(topics, min(count, MAX_COUNT))
        self._waiters.append(waiter)
        asking = asyncio.create_task(self._ask(waiter)) if timeout > 0 else None
        try:
            await self._join(topics, until if timeout > 0 else loop.time() + self._patience, until)
            return await self._wait(waiter, until)
        finally:
            # no await here: a take that was cancelled now would lose what it found
            if asking is not None:
                asking.cancel()
            self._waiters.remove(waiter)
            self._hand_over_soon()

    async def _wait(self, waiter: _Waiter, until: float) -> list[Delivery]:
        """What this process published itself and reads itself is waited for, however little time there is."""
        loop = asyncio.get_running_loop()
        latest = until + self._patience
        while not self._stopped:
            waiter.woken.clear()
            has_read = self._partitions.has_read(waiter.topics) or loop.time() >= latest
            if has_read and (found := self._pop([topic.name for topic in waiter.topics], waiter.count)):
                return found
            if has_read and loop.time() >= until:
                return []
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until if has_read else latest):
                    await waiter.woken.wait()
        return []

    async def _join(self, topics: Sequence[Topic], joined_by: float, until: float) -> None:
        """Become a member of the group. While the cluster is away this waits for its time."""
        loop = asyncio.get_running_loop()
        for pause in pauses():
            if self._stopped:
                return
            try:
                await self._partitions.want(topics, joined_by)
                return
            except KafkaRefused as error:
                self._log.warning("queue.refused", error=str(error)[:300])
            except KafkaLost:
                if loop.time() >= joined_by:
                    return
            left = max(0.0, until - loop.time())
            if not left:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(min(pause, left)):
                    await self._end.wait()

    def _pop(self, names: Sequence[str], count: int) -> list[Delivery]:
        found: list[Delivery] = []
        for name in names:
            spare = self._spare.get(name, deque())
            while len(found) < count:
                delivery = spare.popleft() if spare else self._partitions.pop(name)
                if delivery is None:
                    break
                found.append(delivery)
        return found

    async def _ask(self, waiter: _Waiter) -> None:
        """Tell the others, as long as this take waits."""
        if self._partitions.owns(waiter.topics):
            await asyncio.sleep(OWN_SECONDS)
        demand = _Demand(self._me, [topic.name for topic in waiter.topics], waiter.count)
        while True:
            with suppress(QueueUnavailable):
                await self._send(DEMANDS, msgspec.json.encode(demand))
            await asyncio.sleep(DEMAND_SECONDS)

    async def _hear_demands(self) -> None:
        decoder = msgspec.json.Decoder(_Demand)
        async with self._listen(DEMANDS) as heard:
            async for message in heard:
                with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                    demand = decoder.decode(message)
                    if demand.to != self._me:
                        self._demands[demand.to] = demand, asyncio.get_running_loop().time() + 2 * DEMAND_SECONDS
                        self.wake()

    async def _hear_gifts(self) -> None:
        async with self._listen(_gifts(self._me)) as heard:
            async for message in heard:
                with suppress(Unreadable):
                    delivery = decode_delivery(message)
                    self._spare.setdefault(self._topic_of(delivery), deque()).append(delivery)
                    self.wake()

    def _hand_over_soon(self) -> None:
        """A worker that took something takes again in a moment, so nothing is given away at once."""
        if self._demands and not self._is_due and not self._stopped:
            self._is_due = True
            asyncio.get_running_loop().call_later(HAND_OVER_SECONDS, self._hand_over)

    def _hand_over(self) -> None:
        """What others asked for, and nobody here waits for, is theirs."""
        self._is_due = False
        if self._stopped:
            return
        now = asyncio.get_running_loop().time()
        wanted = {topic.name for waiter in self._waiters for topic in waiter.topics}
        for demand, expires in list(self._demands.values()):
            if expires < now:
                del self._demands[demand.to]
            elif found := self._pop([name for name in demand.topics if name not in wanted], demand.count):
                self._demands[demand.to] = replace(demand, count=demand.count - len(found)), expires
                self._sending.spawn(self._give(demand.to, found), name="kafka-give")

    async def _give(self, to: str, deliveries: Sequence[Delivery]) -> None:
        """What cannot be sent is ours again."""
        for delivery in deliveries:
            try:
                await self._send(_gifts(to), encode_delivery(delivery))
            except QueueUnavailable:
                self._spare.setdefault(self._topic_of(delivery), deque()).append(delivery)


def _gifts(process: str) -> str:
    return f"gifts:{process}"
