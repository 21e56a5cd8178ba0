"""Items from Kafka topics. Each job has a consumer of its own, which no group gives partitions to."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from msgspec.structs import replace

from scrapeyard.errors import BadRequest, QueueUnavailable
from scrapeyard.inputs.source import KafkaSource, Span
from scrapeyard.kafka.address import KafkaAddress
from scrapeyard.kafka.link import words

BATCH: Final = 500
POLL_SECONDS: Final = 0.25
PATIENCE_SECONDS: Final = 30.0
_NO_GROUP: Final = "scrapeyard.inputs"
"""The library wants a name; nothing is committed under it."""


class KafkaTopics:
    """Topics of the operator's cluster. `allowed` has their names, or patterns such as `crawl.*`."""

    def __init__(self, address: KafkaAddress, allowed: Sequence[str]) -> None:
        self._address = address
        self._allowed = allowed

    def check(self, topic: str) -> None:
        """Raises BadRequest if jobs may not read this topic."""
        if not any(fnmatchcase(topic, pattern) for pattern in self._allowed):
            raise BadRequest(f"kafka.topic: jobs may not read {topic}; the operator names topics in jobs.kafka_topics")

    async def spans(self, source: KafkaSource) -> Sequence[Span]:
        """From the positions that the source asks for to the ends as they are now."""
        async with self._consumer(source) as consumer:
            found: list[Span] = await self._done(_spans, consumer, source)
            return found

    async def read(
        self, source: KafkaSource, ended: Callable[[Sequence[Span]], Awaitable[None]]
    ) -> AsyncIterator[bytes]:
        """The records of the spans, in chunks of whole lines."""
        async with self._consumer(source) as consumer:
            reading = _Reading(source)
            await self._done(consumer.assign, reading.places)
            silent, loop = asyncio.get_running_loop().time(), asyncio.get_running_loop()
            while not reading.is_done:
                messages = await self._done(_next, consumer)
                lines = reading.take(messages)
                now = loop.time()
                silent = now if messages else silent
                if lines:
                    yield b"".join(lines)
                elif source.idle_seconds and now - silent >= source.idle_seconds:
                    break
                elif not source.idle_seconds and now - silent >= PATIENCE_SECONDS:
                    raise QueueUnavailable(f"Kafka gave nothing of the topic {source.topic} for a while")
            await ended(reading.spans)

    async def commit(self, source: KafkaSource) -> None:
        """Move the group of the source to the ends of its spans."""
        if not source.group:
            return
        offsets = [TopicPartition(source.topic, span.partition, span.end) for span in source.spans]
        async with self._consumer(source) as consumer:
            await self._done(lambda: consumer.commit(offsets=offsets, asynchronous=False))

    @asynccontextmanager
    async def _consumer(self, source: KafkaSource) -> AsyncIterator[Consumer]:
        own = {
            "group.id": source.group or _NO_GROUP,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "queued.max.messages.kbytes": 16_384,
        }
        consumer = Consumer(self._address.client(own))
        try:
            yield consumer
        finally:
            await asyncio.to_thread(consumer.close)

    async def _done(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """In a thread, since the library blocks. Raises QueueUnavailable."""
        try:
            return await asyncio.to_thread(call, *arguments)
        except KafkaException as error:
            raise QueueUnavailable(f"Kafka: {words(error)[:200]}") from None


class _Reading:
    """How far the spans of a source were read."""

    def __init__(self, source: KafkaSource) -> None:
        self._source = source
        self._first = {span.partition: span.start for span in source.spans}
        self._at = dict(self._first)
        self._ends = {span.partition: span.end for span in source.spans}
        self._taken = 0
        self._waits = source.idle_seconds > 0
        self._open = {span.partition for span in source.spans if self._waits or span.start < span.end}

    @property
    def places(self) -> list[TopicPartition]:
        return [TopicPartition(self._source.topic, number, self._at[number]) for number in self._open]

    @property
    def spans(self) -> list[Span]:
        """What was read. Without waiting, a span is what it was: nothing is left of it."""
        ends = self._at if self._waits else self._ends
        return [replace(span, end=ends[span.partition]) for span in self._source.spans]

    @property
    def is_done(self) -> bool:
        is_full = self._source.limit is not None and self._taken >= self._source.limit
        return not self._open or (self._waits and is_full)

    def take(self, messages: Sequence[Message]) -> list[bytes]:
        """The values among them that belong to the source, as lines. Raises BadRequest if some are gone."""
        lines = []
        for message in messages:
            number, offset, error = message.partition() or 0, message.offset() or 0, message.error()
            if error is not None:
                self._meet(error, number, offset)
            elif number in self._open and not (self._waits and self.is_done):
                if self._waits or offset < self._ends[number]:
                    self._at[number] = offset + 1
                    if value := message.value():
                        self._taken += 1
                        # a line break inside JSON is only space between its parts
                        lines.append(value.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")
                self._close(number, offset + 1)
        return lines

    def _meet(self, error: KafkaError, number: int, offset: int) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            self._close(number, offset)
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise BadRequest(f"records of the topic {self._source.topic} were removed before they were read")
        elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise BadRequest(f"the topic {self._source.topic} may not be read: {error.str()}")

    def _close(self, number: int, at: int) -> None:
        if not self._waits and at >= self._ends[number]:
            self._open.discard(number)


def _next(consumer: Consumer) -> list[Message]:
    """The records that the library holds, once there are some: waiting for a full batch would pile up large ones."""
    first = consumer.consume(1, POLL_SECONDS)
    return first + consumer.consume(BATCH - 1, 0) if first and BATCH > 1 else first


def _spans(consumer: Consumer, source: KafkaSource) -> list[Span]:
    found = consumer.list_topics(source.topic, timeout=PATIENCE_SECONDS).topics.get(source.topic)
    if found is None or found.error is not None or not found.partitions:
        why = "does not exist" if found is None or found.error is None else found.error.str()
        raise BadRequest(f"kafka.topic: {source.topic}: {why}")
    places = [TopicPartition(source.topic, number) for number in sorted(found.partitions)]
    stands = consumer.committed(places, timeout=PATIENCE_SECONDS) if source.group else places
    spans, left = [], source.limit
    for place in stands:
        low, high = consumer.get_watermark_offsets(place, timeout=PATIENCE_SECONDS, cached=False)
        # a group beyond the end stood in a topic of this name that was deleted
        is_known = bool(source.group) and 0 <= place.offset <= high
        asked = place.offset if is_known else _first(source, place.partition, low, high)
        start = min(max(asked, low), high)
        end = high if left is None or source.idle_seconds else min(high, start + left)
        left = None if left is None else left - (end - start)
        spans.append(Span(partition=place.partition, start=start, end=end, lost=max(0, low - asked)))
    return spans


def _first(source: KafkaSource, partition: int, low: int, high: int) -> int:
    if str(partition) in source.offsets:
        return source.offsets[str(partition)]
    return high if source.start == "latest" else low
