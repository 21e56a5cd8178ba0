"""The partitions that this process reads: what came and was not handed out yet, and how far it was handed out."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from msgspec.structs import replace

from scrapeyard.kafka.link import KafkaLink
from scrapeyard.kafka.reader import POLL_SECONDS, KafkaReader
from scrapeyard.kafka.records import KafkaLost, Topic
from scrapeyard.model import Delivery
from scrapeyard.queues.messages import Unreadable, decode_delivery

MOST_MESSAGES = 1000
MOST_BYTES = 4 * 1024 * 1024
"""A partition with more than this in memory is paused."""
COMMIT_SECONDS = 0.1
RETRY_SECONDS = 1.0
LEAVE_SECONDS = 10.0
SESSION_SECONDS = 10
"""The partitions of a process that was killed are given to others after this time."""
Place = tuple[str, int]


class Partition:
    """One partition that the group gave to this process."""

    def __init__(self, position: int = -1) -> None:
        self.waiting: deque[tuple[int, int, Delivery]] = deque()
        """Offset, size and delivery."""
        self.bytes = 0
        self.read = position
        """The offset after the last that came; less than 0 when nothing is known yet."""
        self.position = position
        """The offset after the last that was handed out."""
        self.at_end = False
        """Whether its end was reached once. What came before may have been handed out by another process."""
        self.is_paused = False


class KafkaPartitions:
    """Reads the topics asked for so far as a member of the group. `came` is called when there is something new, `bury`
    with a message that is no delivery. Offsets are committed a moment after a delivery was handed out."""

    def __init__(
        self, group: str, link: KafkaLink, came: Callable[[], None], bury: Callable[[Message, str], None]
    ) -> None:
        self._group = group
        self._link = link
        self._came = came
        self._bury = bury
        self._reader: KafkaReader | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._topics: dict[str, Topic] = {}
        self._assigned = asyncio.Event()
        self._here: dict[Place, Partition] = {}
        self._positions: dict[Place, int] = {}
        """What this process knows better than the group: positions whose commit was refused."""
        self._published: dict[Place, int] = {}
        self._dirty: set[Place] = set()

    async def stop(self) -> None:
        """Commit and leave the group."""
        reader, self._reader = self._reader, None
        if reader is not None:
            self._commit(reader)
            reader.call(_leave)
            await reader.stop()
        self._topics.clear()
        self._here.clear()
        self._positions.clear()
        self._published.clear()
        self._assigned.set()
        self._assigned = asyncio.Event()

    async def want(self, topics: Sequence[Topic], until: float) -> None:
        """Returns when the group has given this process its share of these topics. Raises KafkaLost, KafkaRefused."""
        if any(topic.name not in self._topics for topic in topics):
            await self._link.ensure(topics, until)
            self._topics.update({topic.name: topic for topic in topics})
            self._assigned.clear()
            names = list(self._topics)
            self._start().call(lambda consumer: self._subscribe(consumer, names))
        try:
            async with asyncio.timeout_at(until):
                await self._assigned.wait()
        except TimeoutError:
            raise KafkaLost("the group has given out no partitions yet") from None

    def published(self, offsets: Sequence[tuple[str, int, int]]) -> None:
        """Records of this process: a take that begins now finds them."""
        for topic, partition, offset in offsets:
            place = (topic, partition)
            self._published[place] = max(self._published.get(place, 0), offset + 1)

    def has_read(self, topics: Sequence[Topic]) -> bool:
        """Whether everything that this process published to them, and must read itself, came, or as much as is held."""
        names = {topic.name for topic in topics}
        return all(
            self._here[place].is_paused or self._here[place].read >= end
            for place, end in self._published.items()
            if place[0] in names and place in self._here
        )

    def owns(self, topics: Sequence[Topic]) -> bool:
        """Whether some partition of them is this process's."""
        names = {topic.name for topic in topics}
        return any(topic in names for topic, _ in self._here)

    def pop(self, topic: str) -> Delivery | None:
        """The next delivery of a topic, from the partition whose next one is the oldest. None: there is none."""
        ready = [(place, one) for place, one in self._here.items() if place[0] == topic and one.waiting]
        if not ready:
            return None
        place, partition = min(ready, key=lambda each: each[1].waiting[0][2].queued_at)
        offset, size, delivery = partition.waiting.popleft()
        partition.bytes -= size
        partition.position = offset + 1
        self._mark(place)
        if partition.is_paused and len(partition.waiting) < MOST_MESSAGES // 2:
            self._pause(place, partition, False)
        return delivery

    async def settle(self) -> None:
        """Commit what was handed out."""
        if self._reader is not None:
            await self._commit(self._reader)

    def _start(self) -> KafkaReader:
        if self._reader is None:
            self._loop = asyncio.get_running_loop()
            own = {
                "group.id": self._group,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": SESSION_SECONDS * 1000,
                "heartbeat.interval.ms": 1000,
            }
            self._reader = KafkaReader(self._link.address, self._receive, self._link.note, own)
            self._reader.start()
        return self._reader

    def _receive(self, messages: list[Message]) -> None:
        for message in messages:
            place = (message.topic() or "", message.partition() or 0)
            partition = self._here.get(place)
            error = message.error()
            offset = message.offset()
            if partition is None or offset is None:
                continue
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    partition.at_end = True
                    partition.read = max(partition.read, offset)
            elif offset >= partition.read:
                self._add(place, partition, offset, message)
        self._came()

    def _add(self, place: Place, partition: Partition, offset: int, message: Message) -> None:
        value = message.value() or b""
        partition.read = offset + 1
        try:
            delivery = decode_delivery(value)
        except Unreadable as error:
            self._bury(message, str(error)[:200])
            if not partition.waiting:
                partition.position = offset + 1
                self._mark(place)
            return
        if not partition.at_end:
            delivery = replace(delivery, redelivered=True)
        partition.waiting.append((offset, len(value), delivery))
        partition.bytes += len(value)
        if not partition.is_paused and (len(partition.waiting) >= MOST_MESSAGES or partition.bytes >= MOST_BYTES):
            self._pause(place, partition, True)

    def _pause(self, place: Place, partition: Partition, is_paused: bool) -> None:
        partition.is_paused = is_paused
        if self._reader is not None:
            places = [TopicPartition(*place)]
            self._reader.call(lambda consumer: (consumer.pause if is_paused else consumer.resume)(places))

    def _mark(self, place: Place, seconds: float = COMMIT_SECONDS) -> None:
        if not self._dirty and self._loop is not None:
            self._loop.call_later(seconds, self._commit_soon)
        self._dirty.add(place)

    def _commit_soon(self) -> None:
        if self._reader is not None:
            self._commit(self._reader)

    def _commit(self, reader: KafkaReader) -> "asyncio.Future[Any]":
        """Refused while the group moves partitions, perhaps for some of them only; then it is tried again."""
        offsets = self._take_dirty()

        def done(answer: "asyncio.Future[Any]") -> None:
            told = answer.result()
            for one in offsets if told is None else told:
                if told is None or one.error is not None:
                    self._mark((one.topic, one.partition), RETRY_SECONDS)

        future = reader.call(lambda consumer: consumer.commit(offsets=offsets, asynchronous=False) if offsets else [])
        future.add_done_callback(done)
        return future

    def _take_dirty(self) -> list[TopicPartition]:
        dirty, self._dirty = self._dirty, set()
        return [TopicPartition(*place, self._here[place].position) for place in dirty if place in self._here]

    def _subscribe(self, consumer: Consumer, names: list[str]) -> None:
        gone, lost = partial(self._revoke, is_lost=False), partial(self._revoke, is_lost=True)
        consumer.subscribe(names, on_assign=self._assign, on_revoke=gone, on_lost=lost)

    def _assign(self, consumer: Consumer, given: list[TopicPartition]) -> None:
        """Called by the library in the reader's thread."""
        known = [one for one in given if (one.topic, one.partition) in self._positions]
        if known:
            committed: list[TopicPartition] = []
            with suppress(KafkaException):
                committed = consumer.committed(known, timeout=5)
            for one in committed:
                place = (one.topic, one.partition)
                if one.offset >= self._positions[place]:
                    del self._positions[place]
            given = [
                TopicPartition(one.topic, one.partition, self._positions.get((one.topic, one.partition), one.offset))
                for one in given
            ]
        self._in_loop(self._assign_here, [(one.topic, one.partition) for one in given])
        with suppress(KafkaException):
            consumer.incremental_assign(given)

    def _assign_here(self, places: Sequence[Place]) -> list[TopicPartition]:
        for place in places:
            self._here[place] = Partition(self._positions.get(place, -1))
            if place in self._positions:
                self._mark(place)
        self._assigned.set()
        self._came()
        return []

    def _revoke(self, consumer: Consumer, taken: list[TopicPartition], *, is_lost: bool) -> None:
        """The same. What waits here is read again by the partition's next owner."""
        offsets = self._in_loop(self._revoke_here, [(one.topic, one.partition) for one in taken])
        with suppress(KafkaException):
            if offsets and not is_lost:
                consumer.commit(offsets=offsets, asynchronous=False)
        with suppress(KafkaException):
            consumer.incremental_unassign(taken)

    def _revoke_here(self, places: Sequence[Place]) -> list[TopicPartition]:
        offsets = []
        for place in places:
            partition = self._here.pop(place, None)
            self._dirty.discard(place)
            if partition is not None and partition.position >= 0:
                self._positions[place] = partition.position
                offsets.append(TopicPartition(*place, partition.position))
        return offsets

    def _in_loop(self, call: Callable[..., list[TopicPartition]], places: Sequence[Place]) -> list[TopicPartition]:
        """The reader's thread waits for the loop, to which the partitions belong."""

        async def run() -> list[TopicPartition]:
            return call(places)

        loop = self._loop
        if loop is None or loop.is_closed():
            return []
        waiting: Any = asyncio.run_coroutine_threadsafe(run(), loop)
        return list(waiting.result())


def _leave(consumer: Consumer) -> None:
    """Give the partitions back before the consumer is closed: in a library that closes, giving them back may never
    return (librdkafka #4884), and one that closes as the group moves partitions may abort the process (#4312)."""
    consumer.unsubscribe()
    ends = time.monotonic() + LEAVE_SECONDS
    while consumer.assignment() and time.monotonic() < ends:
        consumer.poll(POLL_SECONDS)
