"""Kafka for tests: librdkafka's mock cluster in a process of its own, or a real broker that the environment names."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from scrapeyard.kafka.address import KafkaAddress
from tests.leaks import PATIENCE

QUICK = "fetch.wait.max.ms=5&session.timeout.ms=2000&heartbeat.interval.ms=200"
"""The mock answers a fetch that finds nothing only when its time is over, and rebalances within a session's time."""


class KafkaServer:
    """`stop` closes its port and every connection, `start` opens it again; what was sent is still there."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self.hosts = ""
        """Host and port."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.services.kafka_mock"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self.hosts = self._process.stdout.readline().strip()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate(timeout=PATIENCE)

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"kafka://{self.hosts}?{QUICK}"

    def start(self) -> None:
        """Its port is open again."""
        self._say("up")

    def stop(self) -> None:
        """Its port is closed."""
        self._say("down")

    def create(self, topic: str, partitions: int) -> None:
        """The mock cannot be asked by clients; a topic that they name first has four partitions."""
        self._say(f"topic {topic} {partitions}")

    def refuse(self, request: Literal["produce", "init_producer_id"], count: int, code: int) -> None:
        """The next so many requests of a kind are answered with this error. Only the mock can."""
        self._say(f"refuse {request} {count} {code}")

    def write(self, topic: str, values: Sequence[bytes]) -> None:
        """Returns when they are there."""
        producer = Producer({"bootstrap.servers": self.hosts, "linger.ms": 0})
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(PATIENCE) == 0

    def read(self, topic: str) -> list[Message]:
        """Everything that is in a topic now, partition by partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.hosts,
                "group.id": "reader",
                "fetch.wait.max.ms": 5,
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        try:
            partitions = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
            found, ends = [], 0
            while ends < len(partitions):
                message = consumer.poll(PATIENCE)
                assert message is not None
                if (error := message.error()) is None:
                    found.append(message)
                else:
                    assert error.code() == KafkaError._PARTITION_EOF
                    ends += 1
            return sorted(found, key=lambda one: (one.partition(), one.offset()))
        finally:
            consumer.close()

    def _say(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"


class GivenKafka(KafkaServer):
    """A cluster that somebody else started: KAFKA_URL. It cannot be stopped, so tests of outages use the mock."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.hosts = KafkaAddress(url, "KAFKA_URL").hosts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    @property
    def url(self) -> str:
        """As it was given."""
        return self._url

    def create(self, topic: str, partitions: int) -> None:
        """By request. On a cluster that cannot, a topic is made when it is first named."""
        options = KafkaAddress(self._url, "KAFKA_URL").client({})
        with suppress(KafkaException):
            AdminClient(options).create_topics([NewTopic(topic, partitions)])[topic].result(PATIENCE)


@pytest.fixture(scope="session")
def kafka_server(real_servers: None) -> Iterator[KafkaServer]:
    """One for the whole session; leave it running."""
    url = os.environ.get("KAFKA_URL", "")
    with GivenKafka(url) if url else KafkaServer() as server:
        yield server


@pytest.fixture
def own_kafka(real_servers: None) -> Iterator[KafkaServer]:
    """A server of the test's own, which it may stop."""
    with KafkaServer() as server:
        yield server
