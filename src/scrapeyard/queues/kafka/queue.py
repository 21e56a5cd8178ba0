"""The queue on Kafka: a topic for each lane and priority, read by one consumer group, and one for small messages."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from time import perf_counter
from typing import NoReturn

from confluent_kafka import Message

from scrapeyard.background import Background
from scrapeyard.errors import BadRequest, QueueUnavailable, QueueUncertain
from scrapeyard.kafka.address import KafkaAddress
from scrapeyard.kafka.link import KafkaLink
from scrapeyard.kafka.records import KafkaLost, KafkaRecord, KafkaRefused, KafkaUnsent, Topic
from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.kafka.partitions import KafkaPartitions
from scrapeyard.queues.kafka.pubsub import KafkaSubscriber
from scrapeyard.queues.kafka.take import KafkaTakers
from scrapeyard.queues.messages import LANE, LaneTurns, check_lanes, encode_delivery
from scrapeyard.queues.port import MAX_MESSAGE_BYTES, Capabilities
from scrapeyard.redis.outage import Outage
from scrapeyard.telemetry.events import get_log

PARTITIONS = 8
DEPTH_SECONDS = 1.0
OLDEST_DEPTH_SECONDS = 5.0
OVERHEAD_BYTES = 4096
"""What a record and its batch add to a message, and more."""
_PROBE = "probe"


class KafkaQueue:
    """Deliveries and messages between processes.

    `patience_seconds` is how long a method tries before it raises QueueUnavailable. A delivery's offset is committed
    when it was handed out. One that may have been handed out by another process is marked as redelivered.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "scrapeyard",
        partitions: int = PARTITIONS,
        replicas: int = -1,
        ca_file: str = "",
        patience_seconds: float = 3.0,
    ) -> None:
        self._prefix = prefix
        self._replicas = replicas
        self._count = partitions
        self._patience = patience_seconds
        self._log = get_log("queue")
        self._address = KafkaAddress(url, ca_file=ca_file)
        outage = Outage(
            away=lambda error, seconds: self._log.warning("queue.away", error=error, retry_seconds=seconds),
            back=lambda seconds: self._log.info("queue.back", away_seconds=seconds),
            ends_on_stop=True,
        )
        self._link = KafkaLink(self._address, outage)
        self._ear = KafkaSubscriber(prefix, replicas, self._link, self._log)
        self._partitions = KafkaPartitions(prefix, self._link, self._came, self._bury)
        self._takers = KafkaTakers(
            self._partitions,
            patience_seconds,
            self._log,
            listen=self.listen,
            send=self.send,
            publish=self.publish,
            topic_of=self._name_of,
        )
        self._dead = Topic(name=f"{prefix}.dead", partitions=1, replicas=replicas, retention_seconds=14 * 86_400)
        self._aside = Background()
        self._depth: dict[tuple[str, Priority], int] = {}
        self._read_at = 0.0
        self._changes = 0
        self._turns = LaneTurns()

    @property
    def capabilities(self) -> Capabilities:
        """Order holds within a partition only. Depth is the lag of the group, read once in a second."""
        return Capabilities(
            max_message_bytes=min(MAX_MESSAGE_BYTES, self._address.max_message_bytes - OVERHEAD_BYTES),
            keeps_order=False,
            counts_exactly=False,
            tells_oldest=False,
        )

    async def start(self) -> None:
        """Connects in the background. Raises SettingsInvalid for an option that the library does not take."""
        self._link.start()
        self._read_at = asyncio.get_running_loop().time() - DEPTH_SECONDS
        self._ear.start()
        self._takers.start()

    async def stop(self) -> None:
        """Leaves the group, so that others get its partitions at once."""
        await self._takers.stop()
        await self._partitions.stop()
        await self._aside.stop()
        await self._ear.stop()
        await self._link.stop()

    async def publish(self, deliveries: Sequence[Delivery]) -> int:
        """The most urgent first. The number returned is an estimate."""
        until = self._until()
        records = [(each.priority, KafkaRecord(self._name_of(each), self._encode(each))) for each in deliveries]
        topics = [self._topic(*line) for line in dict.fromkeys((each.lane, each.priority) for each in deliveries)]
        kind = QueueUnavailable
        try:
            await self._link.ensure(topics, until)
            for priority in Priority:
                if some := [record for each, record in records if each == priority]:
                    self._partitions.published(await self._send(some, until, kind))
                    kind = QueueUncertain
        except (KafkaLost, KafkaRefused) as error:
            _refuse(error, kind)
        for delivery in deliveries:
            self._count_own(delivery, 1)
        if "look" not in self._aside:
            self._aside.spawn(self._look_aside(), name="kafka-depth", key="look")
        lanes = {delivery.lane for delivery in deliveries}
        return max((self._in_lane(lane) for lane in lanes), default=0)

    async def _send(
        self, records: Sequence[KafkaRecord], until: float, before: type[QueueUnavailable]
    ) -> list[tuple[str, int, int]]:
        """`before` says whether some of the deliveries are in the queue already."""
        try:
            return await self._link.send(records, until)
        except KafkaUnsent as error:
            _refuse(error, before)
        except KafkaLost as error:
            _refuse(error, QueueUncertain)

    async def take(
        self, lanes: Sequence[str], count: int, priorities: Sequence[Priority], timeout: float
    ) -> list[Delivery]:
        """Lanes of equal priority take turns at being asked first."""
        topics = [self._topic(lane, priority) for lane, priority in self._turns.order(lanes, priorities)]
        if not topics or count <= 0:
            return []
        found = await self._takers.take(topics, count, timeout)
        for delivery in found:
            self._count_own(delivery, -1)
        return found

    async def depth(self) -> dict[tuple[str, Priority], int]:
        """The lag of the group within the last second, and what this process published and took since."""
        await self._look()
        return {line: count for line, count in self._depth.items() if count}

    async def oldest(self, lane: str, priority: Priority) -> float | None:  # noqa: ARG002 - see capabilities
        """Always None: the oldest of several partitions would have to be read from each."""
        check_lanes((lane,))
        return None

    async def send(self, channel: str, message: bytes) -> None:
        """Returns when the cluster has it."""
        self._check_size(message)
        try:
            await self._ear.send(channel, message, self._until())
        except (KafkaLost, KafkaRefused) as error:
            _refuse(error)

    def listen(self, channel: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Entering waits for the cluster, however long it is away. Start the queue first."""
        return self._ear.listen(channel)

    async def ping(self) -> float:
        """Sends a small message that nobody listens to."""
        began = perf_counter()
        await self.send(_PROBE, b"")
        return (perf_counter() - began) * 1000

    def _came(self) -> None:
        self._takers.wake()

    def _bury(self, message: Message, why: str) -> None:
        """A message of somebody else is read only once, and nobody must miss it."""
        self._aside.spawn(self._bury_now(message, why), name="kafka-bury")
        topic = message.topic()
        self._log.warning("queue.dead_letter", channel=topic, error=why, dead_letters=f"topic {self._dead.name}")

    async def _bury_now(self, message: Message, why: str) -> None:
        headers = (("topic", (message.topic() or "").encode()), ("error", why.encode()))
        record = KafkaRecord(self._dead.name, message.value() or b"", headers=headers)
        with suppress(KafkaLost, KafkaRefused):
            await self._link.ensure([self._dead], self._until())
            await self._link.send([record], self._until())

    async def _look_aside(self) -> None:
        with suppress(QueueUnavailable):
            await self._look()

    async def _look(self) -> None:
        """Read the lag of every lane, at most once in a second."""
        now = asyncio.get_running_loop().time()
        if now < self._read_at + DEPTH_SECONDS:
            return
        until, before = self._until(), self._changes
        try:
            await self._partitions.settle()
            topics = await self._link.topics(f"{self._prefix}.queue.", until)
            places = [(name, number) for name, count in topics.items() if self._line(name) for number in range(count)]
            ends = await self._link.ends(places, until) if places else []
            firsts = await self._link.ends(places, until, first=True) if places else []
            taken = await self._link.committed(self._prefix, places, until) if places else []
        except (KafkaLost, KafkaRefused) as error:
            _refuse(error)
        if self._changes != before and now < self._read_at + OLDEST_DEPTH_SECONDS:
            return  # what was read is older than what this process counted
        self._depth = {}
        for place, end, first, position in zip(places, ends, firsts, taken, strict=True):
            if line := self._line(place[0]):
                self._depth[line] = self._depth.get(line, 0) + max(0, end - max(first, position))
        self._read_at = now

    def _count_own(self, delivery: Delivery, change: int) -> None:
        self._changes += 1
        line = (delivery.lane, delivery.priority)
        self._depth[line] = max(0, self._depth.get(line, 0) + change)

    def _in_lane(self, lane: str) -> int:
        return sum(count for (name, _), count in self._depth.items() if name == lane)

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self._patience

    def _encode(self, delivery: Delivery) -> bytes:
        return self._check_size(encode_delivery(delivery))

    def _check_size(self, message: bytes) -> bytes:
        most = self.capabilities.max_message_bytes
        if len(message) > most:
            words = f"a message of {len(message)} bytes is over the queue's limit of {most}"
            raise BadRequest(f"{words}; raise message.max.bytes of the brokers and in queue.url")
        return message

    def _name_of(self, delivery: Delivery) -> str:
        return f"{self._prefix}.queue.{delivery.lane}.{delivery.priority}"

    def _topic(self, lane: str, priority: Priority) -> Topic:
        name = f"{self._prefix}.queue.{lane}.{priority}"
        return Topic(name=name, partitions=self._count, replicas=self._replicas)

    def _line(self, name: str) -> tuple[str, Priority] | None:
        """The lane and priority of a topic; None for topics of others."""
        lane, _, priority = name.removeprefix(f"{self._prefix}.queue.").rpartition(".")
        return (lane, Priority(priority)) if priority in tuple(Priority) and LANE.fullmatch(lane) else None


def _refuse(error: Exception, kind: type[QueueUnavailable] = QueueUnavailable) -> NoReturn:
    if isinstance(error, KafkaRefused):
        raise QueueUnavailable(f"the queue refused: {str(error)[:300]}") from None
    raise kind(f"the queue does not answer: {str(error)[:200]}") from None
