"""One Kafka record for each result: at least once, with the item's key."""

import asyncio
from collections.abc import Sequence
from typing import Final

from scrapeyard.errors import SinkUnavailable
from scrapeyard.kafka.address import KafkaAddress, split_topic
from scrapeyard.kafka.link import KafkaLink
from scrapeyard.kafka.records import KafkaLost, KafkaRecord, KafkaRefused, KafkaTooLarge
from scrapeyard.redis.outage import Outage
from scrapeyard.results.sinks.port import RefusedRecord, Repeats, SinkBatch
from scrapeyard.settings import SinkTarget

OVERHEAD_BYTES: Final = 1024
"""What the headers and the batch of a record add."""
CHECK_SECONDS: Final = 5.0
"""A cluster that does not answer a question for so long is away."""


class KafkaSink:
    """A ResultSink. The producer is idempotent, so that its own retries double nothing; a batch that the delivery
    repeats comes again, with the same keys and the same header `scrapeyard-batch`.

    The key is `JOB/ITEM`: a topic that is compacted keeps the last result of each item. The topic must exist, or the
    cluster create topics by itself.
    """

    repeats: Repeats = "same_id"

    def __init__(self, target: SinkTarget, *, timeout_seconds: float) -> None:
        self.name = target.name
        setting = f"sinks.targets: {target.name}: url"
        url, self._topic = split_topic(target.url.get_secret_value(), setting)
        address = KafkaAddress(url, setting, str(target.ca_file or ""))
        self._largest = address.max_message_bytes - OVERHEAD_BYTES
        self._hosts = address.hosts
        self._timeout = timeout_seconds
        # the delivery logs each failure itself
        self._link = KafkaLink(address, Outage(lambda *_: None, lambda *_: None, ends_on_stop=True), idempotent=True)

    async def start(self) -> None:
        """Connects in the background. May be called twice."""
        self._link.start()

    async def stop(self) -> None:
        """Close connections. May be called twice."""
        await self._link.stop()

    async def check(self) -> str:
        """Look for the topic. Raises SinkUnavailable."""
        count = await self._find()
        return f"topic {self._topic} at {self._hosts}, {count} partitions"

    async def deliver(self, batch: SinkBatch) -> Sequence[RefusedRecord]:
        """Returns when every replica in sync has all records. One that is over the limit of the topic is refused
        alone."""
        until = asyncio.get_running_loop().time() + self._timeout
        await self._find()
        refused: list[RefusedRecord] = []
        records: list[tuple[str, KafkaRecord]] = []
        for record in batch.records:
            key, value = f"{record.job_id}/{record.item_key}".encode(), record.to_json()
            if len(key) + len(value) > self._largest:
                why = f"{len(value)} bytes are more than message.max.bytes allows"
                refused.append(RefusedRecord(item_key=record.item_key, why=why))
            else:
                headers = (("scrapeyard-batch", batch.id.encode()),)
                records.append((record.item_key, KafkaRecord(self._topic, value, key, headers=headers)))
        try:
            return [*refused, *await self._sent(records, until)]
        except (KafkaLost, KafkaRefused) as error:
            raise SinkUnavailable(f"Kafka: {str(error)[:300]}") from None

    async def _sent(self, records: Sequence[tuple[str, KafkaRecord]], until: float) -> list[RefusedRecord]:
        """Those that the topic refuses for their size, each sent by itself. Raises KafkaLost and KafkaRefused."""
        try:
            await self._link.send([record for _, record in records], until)
        except KafkaTooLarge as error:
            if len(records) == 1:
                why = f"{len(records[0][1].value)} bytes are more than the topic's max.message.bytes allows"
                return [RefusedRecord(item_key=records[0][0], why=why)]
            return [each for number in error.numbers for each in await self._sent([records[number]], until)]
        return []

    async def _find(self) -> int:
        until = asyncio.get_running_loop().time() + min(CHECK_SECONDS, self._timeout)
        try:
            count = await self._link.partitions(self._topic, until)
        except (KafkaLost, KafkaRefused) as error:
            raise SinkUnavailable(f"Kafka: {str(error)[:300]}") from None
        if not count:
            raise SinkUnavailable(f"the topic {self._topic} does not exist; create it")
        return count
