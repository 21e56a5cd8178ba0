"""One producer and one admin client for each process: records that are confirmed, topics, offsets, outages."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from scrapeyard.background import Background
from scrapeyard.kafka.address import KafkaAddress
from scrapeyard.kafka.records import KafkaLost, KafkaRecord, KafkaRefused, KafkaTooLarge, KafkaUnsent, Topic
from scrapeyard.redis.outage import Outage, pauses

T = TypeVar("T")
POLL_SECONDS = 0.1
_PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
_AGAIN = (*_PURGED, KafkaError._MSG_TIMED_OUT, KafkaError._TRANSPORT, KafkaError.LEADER_NOT_AVAILABLE)
_NO_CREATION = (KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION)
_FORBIDDEN = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.POLICY_VIOLATION,
    KafkaError.INVALID_REPLICATION_FACTOR,
)
_WAIT_SECONDS = 0.05
_END_SECONDS = 60.0
PURGE_SECONDS = 1.0
"""How long a report of what was dropped before it was sent may take."""
_FIRST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the library has no types for it
_END: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the same


class _Receipt:
    """Confirmations of records that were handed over together. Counted in the producer's thread."""

    def __init__(self, count: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = count
        self.done: asyncio.Future[None] = self._loop.create_future()
        self.again: list[int] = []
        self.too_large: list[int] = []
        self.offsets: list[tuple[str, int, int]] = []
        self.refused = ""
        self.was_sent = False
        """Whether one of them may have reached the cluster."""

    def confirm(self, number: int, error: KafkaError | None, message: Message) -> None:
        self.was_sent = self.was_sent or error is None or error.code() != KafkaError._PURGE_QUEUE
        if error is None:
            self.offsets.append((message.topic() or "", message.partition() or 0, message.offset() or 0))
        elif error.code() in _AGAIN or error.retriable():
            self.again.append(number)
        elif error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self.too_large.append(number)
        else:
            self.refused = error.str()
        self._left -= 1
        if not self._left:
            tell(self._loop, self._end)

    def _end(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


class KafkaLink:
    """`send` returns when every record is confirmed. Records may be doubled by a retry, unless `idempotent`."""

    def __init__(self, address: KafkaAddress, outage: Outage, *, idempotent: bool = False) -> None:
        self.address = address
        self._outage = outage
        self._is_idempotent = idempotent
        self._own = {"enable.idempotence": True, "message.timeout.ms": 30_000} if idempotent else {"acks": "all"}
        self._producer: Producer | None = None
        self._admin: AdminClient | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._background = Background()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._partitions: dict[str, int] = {}
        self._why = "not connected yet"
        self._fatal = ""
        """Why the producer can send nothing any more. The next `send` makes another."""

    def start(self) -> None:
        """Begin to connect; returns at once. Raises SettingsInvalid."""
        if self._producer is not None:
            return
        self._loop = asyncio.get_running_loop()
        self._stopping.clear()
        sending = {"linger.ms": 0, "sticky.partitioning.linger.ms": 0, "error_cb": self.note, **self._own}
        try:
            self._producer = Producer(self.address.client(sending))
            self._renew_admin()
        except KafkaException as error:
            self._producer = None
            raise self.address.refused(error) from None
        self._fatal = ""
        self._thread = threading.Thread(target=self._poll, name="kafka-producer", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Waits for nothing: what was not confirmed is dropped. May be called twice."""
        await self._background.stop()
        self._outage.forget(self)
        producer, self._producer = self._producer, None
        thread, self._thread = self._thread, None
        if producer is None or thread is None:
            return
        self._stopping.set()
        producer.purge(blocking=False)
        await ended(thread)
        self._admin = None

    async def send(self, records: Sequence[KafkaRecord], until: float) -> list[tuple[str, int, int]]:
        """The topic, partition and offset of each, in no order. Raises KafkaLost and KafkaRefused."""
        if self._fatal:
            await self._replace_producer()
        offsets: list[tuple[str, int, int]] = []
        too_large: list[int] = []
        left: Sequence[int] = range(len(records))
        while left:
            receipt = _Receipt(len(left))
            for number in left:
                await self._hand_over(records[number], number, receipt, until)
            try:
                async with asyncio.timeout_at(until):
                    await receipt.done
            except TimeoutError:
                # none of what waits can be sent now; the order that an idempotent producer keeps forbids to drop some
                if self._producer is not None and not self._is_idempotent:
                    self._producer.purge(blocking=False)
                self.lost("the records were not confirmed in time")
                await asyncio.wait((receipt.done,), timeout=PURGE_SECONDS)
                is_unsent = receipt.done.done() and not receipt.was_sent and not offsets
                raise (KafkaUnsent if is_unsent else KafkaLost)(self._why) from None
            if receipt.refused:
                raise KafkaRefused(receipt.refused)
            offsets += receipt.offsets
            too_large += receipt.too_large
            left = sorted(receipt.again)
            if left:
                await self._pause(until)
        if too_large:
            raise KafkaTooLarge(sorted(too_large))
        return offsets

    async def _hand_over(self, record: KafkaRecord, number: int, receipt: _Receipt, until: float) -> None:
        while True:
            if self._producer is None:
                raise KafkaLost("it is stopped")
            if self._fatal:
                raise KafkaRefused(self._fatal)
            try:
                self._producer.produce(
                    record.topic,
                    record.value,
                    record.key,
                    partition=record.partition,
                    headers=list(record.headers) or None,
                    on_delivery=lambda error, message: receipt.confirm(number, error, message),
                )
                return
            except BufferError:
                await self._pause(until)
            except KafkaException as error:
                raise KafkaRefused(words(error)) from None

    async def ensure(self, topics: Sequence[Topic], until: float) -> None:
        """Create those that are missing. Raises KafkaLost; KafkaRefused if they can be neither found nor created."""
        missing = [topic for topic in topics if topic.name not in self._partitions]
        if not missing:
            return
        new = [
            NewTopic(
                topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replicas,
                config={"retention.ms": str(topic.retention_seconds * 1000)},
            )
            for topic in missing
        ]
        seconds = max(0.1, until - asyncio.get_running_loop().time())
        creating = self._need_admin().create_topics(new, request_timeout=seconds)
        for topic in missing:
            refusal = ""
            try:
                await self._within(creating[topic.name], until)
            except KafkaException as error:
                code = error.args[0].code()
                if code in _FORBIDDEN:
                    refusal = words(error)
                elif code not in (KafkaError.TOPIC_ALREADY_EXISTS, *_NO_CREATION):
                    raise KafkaLost(words(error)) from None
            self._partitions[topic.name] = await self._find(topic, refusal, until)

    async def partitions(self, topic: str, until: float) -> int:
        """How many the topic has; 0 if it does not exist. Raises KafkaLost and KafkaRefused."""
        if topic in self._partitions:
            return self._partitions[topic]
        found = (await self._metadata(topic, until)).topics.get(topic)
        if found is None or found.error is not None:
            if found is not None and found.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise KafkaRefused(found.error.str())
            return 0
        return len(found.partitions)

    async def topics(self, prefix: str, until: float) -> dict[str, int]:
        """Every topic whose name begins so, with the number of its partitions. Raises KafkaLost."""
        found = (await self._metadata(None, until)).topics
        return {name: len(topic.partitions) for name, topic in found.items() if name.startswith(prefix)}

    async def _find(self, topic: Topic, refusal: str, until: float) -> int:
        """A new topic is known to all brokers only after a moment."""
        while True:
            if count := await self.partitions(topic.name, until):
                return count
            if refusal:
                raise KafkaRefused(
                    f"the topic {topic.name} does not exist and may not be created ({refusal}); create it with "
                    f"{topic.partitions} partitions, or let this user create topics"
                )
            await self._pause(until)

    async def ends(self, places: Sequence[tuple[str, int]], until: float, *, first: bool = False) -> list[int]:
        """The offset that the next record of each partition will have; the first that is still there, with `first`.
        Raises KafkaLost."""
        spec = _FIRST if first else _END
        asked = [TopicPartition(*place) for place in places]
        seconds = max(0.1, until - asyncio.get_running_loop().time())
        answers = self._need_admin().list_offsets(dict.fromkeys(asked, spec), request_timeout=seconds)
        try:
            return [(await self._within(answers[each], until)).offset for each in asked]
        except KafkaException as error:
            raise KafkaLost(words(error)) from None

    async def committed(self, group: str, places: Sequence[tuple[str, int]], until: float) -> list[int]:
        """Where a group stands in each partition; less than 0 where it has not begun. Raises KafkaLost."""
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(*place) for place in places])
        seconds = max(0.1, until - asyncio.get_running_loop().time())
        answers = self._need_admin().list_consumer_group_offsets([asked], request_timeout=seconds)
        try:
            found = (await self._within(answers[group], until)).topic_partitions
        except (KafkaException, KafkaLost) as error:
            # after an outage the library may wait for ever for the coordinator of a group
            self._renew_admin()
            raise KafkaLost(words(error) if isinstance(error, KafkaException) else str(error)) from None
        offsets = {(each.topic, each.partition): each.offset for each in found}
        return [offsets.get(place, -1) for place in places]

    def note(self, error: KafkaError) -> None:
        """Called in a thread of any client when it met an error that may pass."""
        if self._loop is not None and error.code() == KafkaError._ALL_BROKERS_DOWN:
            tell(self._loop, lambda: self.lost(error.str()))
        elif error.code() not in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART):
            self._why = error.str()

    def lost(self, why: str) -> None:
        """The cluster is away. It is looked for until it answers."""
        if self._producer is None or "look" in self._background:
            return
        if self._why in ("", "not connected yet"):
            self._why = why
        self._background.spawn(self._look(), name="kafka-look", key="look")

    async def _look(self) -> None:
        for pause in pauses():
            self._outage.down(self, self._why, pause)
            await self._outage.pause(pause)
            try:
                await self._metadata("", asyncio.get_running_loop().time() + 1.0)
            except KafkaLost:
                continue
            self._why = ""
            self._outage.up(self)
            return

    async def _metadata(self, topic: str | None, until: float) -> Any:
        """None for all topics, empty for those that are known."""
        seconds = max(0.05, until - asyncio.get_running_loop().time())
        admin = self._need_admin()
        asked = {} if topic is None else {"topic": topic or "_"}
        try:
            return await asyncio.to_thread(admin.list_topics, **asked, timeout=seconds)
        except KafkaException as error:
            raise KafkaLost(words(error)) from None

    async def _within(self, answer: "Future[T]", until: float) -> T:
        try:
            async with asyncio.timeout_at(until):
                return await asyncio.wrap_future(answer)
        except TimeoutError:
            self.lost("no answer in time")
            raise KafkaLost(self._why or "no answer in time") from None

    async def _pause(self, until: float) -> None:
        if asyncio.get_running_loop().time() + _WAIT_SECONDS > until:
            raise KafkaLost(self._why or "no answer in time")
        await asyncio.sleep(_WAIT_SECONDS)

    def _renew_admin(self) -> None:
        if self._producer is not None:
            self._admin = AdminClient(self.address.client({"allow.auto.create.topics": True}))

    def _need_admin(self) -> AdminClient:
        if self._admin is None:
            raise KafkaLost("it is stopped")
        return self._admin

    def _poll(self) -> None:
        producer = self._producer
        if producer is None:
            return
        try:
            while not self._stopping.is_set():
                producer.poll(POLL_SECONDS)
            producer.poll(0)
        except KafkaException as error:
            self._give_up(producer, words(error))

    def _give_up(self, producer: Producer, why: str) -> None:
        """After a fatal error an idempotent producer sends nothing more, and says so at each call. What it holds is
        dropped, so that those who wait for it are told."""
        if self._loop is not None:
            tell(self._loop, self._end_producer, producer, why)
        producer.purge(blocking=False)
        for _ in range(int(PURGE_SECONDS / POLL_SECONDS)):
            with suppress(KafkaException):
                producer.poll(POLL_SECONDS)
            if not len(producer):
                return

    def _end_producer(self, producer: Producer, why: str) -> None:
        if self._producer is producer:
            self._fatal = why

    async def _replace_producer(self) -> None:
        thread, producer = self._thread, self._producer
        if thread is not None:
            await ended(thread)
        if self._producer is producer and producer is not None:  # neither stopped nor replaced meanwhile
            self._producer = None
            self.start()


def words(error: KafkaException) -> str:
    """What the cluster or the library said."""
    found = error.args[0]
    return str(found.str()) if isinstance(found, KafkaError) else str(found)


def tell(loop: asyncio.AbstractEventLoop, call: Any, *arguments: Any) -> None:
    """Call it in the loop's thread, unless the loop is closed."""
    if not loop.is_closed():
        try:
            loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            return


async def ended(thread: threading.Thread) -> None:
    """Wait for the end of a thread, but not for ever: a library that hangs must not keep the process from ending."""
    await asyncio.to_thread(thread.join, _END_SECONDS)
