"""Small messages on Kafka: one topic, whose partitions are read from their end while somebody listens."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from confluent_kafka import Message, TopicPartition

from scrapeyard.kafka.link import KafkaLink
from scrapeyard.kafka.reader import KafkaReader
from scrapeyard.kafka.records import KafkaLost, KafkaRecord, Topic
from scrapeyard.queues.listeners import Listener
from scrapeyard.redis.outage import pauses
from scrapeyard.telemetry.events import Log

PARTITIONS = 16
KEEP_SECONDS = 600
"""Nobody reads a message that is older than a moment."""
_PATIENCE_SECONDS = 5.0


class KafkaSubscriber:
    """A channel is a key, and its hash chooses the partition. A process reads the partitions of its channels and drops
    what is meant for others."""

    def __init__(self, prefix: str, replicas: int, link: KafkaLink, log: Log) -> None:
        self._topic = Topic(
            name=f"{prefix}.messages", partitions=PARTITIONS, replicas=replicas, retention_seconds=KEEP_SECONDS
        )
        self._link = link
        self._log = log
        self._reader: KafkaReader | None = None
        self._listeners: dict[str, dict[Listener, int]] = {}
        self._readers: dict[int, int] = {}
        self._stopped = asyncio.Event()

    def start(self) -> None:
        """Listening is allowed from now on."""
        self._stopped.clear()

    async def stop(self) -> None:
        """End every iteration, and let go those who wait for the cluster."""
        self._stopped.set()
        for here in self._listeners.values():
            for listener in here:
                listener.close()
        reader, self._reader = self._reader, None
        self._readers.clear()
        if reader is not None:
            await reader.stop()

    async def send(self, channel: str, message: bytes, until: float) -> None:
        """Returns when the cluster has it. Raises KafkaLost and KafkaRefused."""
        partition = await self._partition(channel, until)
        await self._link.send([KafkaRecord(self._topic.name, message, channel.encode(), partition)], until)

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Enters when the end of the channel's partition is known, however long the cluster is away."""
        listener = Listener(channel, self._log)
        partition = -1
        here = self._listeners.setdefault(channel, {})
        try:
            if (found := await self._find_end(channel)) is None:
                listener.close()
            else:
                partition, here[listener] = found
                self._read(partition, here[listener])
            yield listener
        finally:
            listener.close()
            here.pop(listener, None)
            if not here and self._listeners.get(channel) is here:
                del self._listeners[channel]
            self._leave(partition)

    async def _find_end(self, channel: str) -> tuple[int, int] | None:
        """None when the queue was stopped."""
        for pause in pauses():
            if self._stopped.is_set():
                return None
            until = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
            with suppress(KafkaLost):
                partition = await self._partition(channel, until)
                (end,) = await self._link.ends([(self._topic.name, partition)], until)
                return None if self._stopped.is_set() else (partition, end)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopped.wait()
        return None

    async def _partition(self, channel: str, until: float) -> int:
        await self._link.ensure([self._topic], until)
        return zlib.crc32(channel.encode()) % await self._link.partitions(self._topic.name, until)

    def _read(self, partition: int, start: int) -> None:
        if self._reader is None:
            own = {"group.id": self._topic.name, "auto.offset.reset": "latest"}
            self._reader = KafkaReader(self._link.address, self._receive, self._link.note, own)
            self._reader.start()
        self._readers[partition] = self._readers.get(partition, 0) + 1
        if self._readers[partition] == 1:
            place = TopicPartition(self._topic.name, partition, start)
            self._reader.call(lambda consumer: consumer.incremental_assign([place]))

    def _leave(self, partition: int) -> None:
        if self._reader is None or partition not in self._readers:
            return
        self._readers[partition] -= 1
        if not self._readers[partition]:
            del self._readers[partition]
            place = TopicPartition(self._topic.name, partition)
            self._reader.call(lambda consumer: consumer.incremental_unassign([place]))

    def _receive(self, messages: list[Message]) -> None:
        for message in messages:
            if message.error() is not None:
                continue
            offset = message.offset() or 0
            for listener, start in self._listeners.get((message.key() or b"").decode(errors="replace"), {}).items():
                if offset >= start:
                    listener.give(message.value() or b"")
