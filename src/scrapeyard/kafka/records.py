"""What is sent to Kafka, where to, and how it may fail."""

from collections.abc import Sequence

from msgspec import Struct


class KafkaLost(Exception):
    """The cluster did not confirm it in time. Whether it was done is not known."""


class KafkaUnsent(KafkaLost):
    """Nothing of it left this process, so that it was not done."""


class KafkaRefused(Exception):
    """The cluster says no, and will say so again. Its words tell why."""


class KafkaTooLarge(KafkaRefused):
    """The cluster refused some records for their size; all others were sent. It refuses those that the library put
    into one batch together, so some of them may be taken when they are sent alone."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(f"{len(numbers)} records are larger than the topic takes")
        self.numbers = tuple(numbers)
        """Their places among those given."""


class Topic(Struct, frozen=True, kw_only=True):
    """A topic of ours, created where it is missing. One that exists is used as it is."""

    name: str
    partitions: int
    replicas: int = -1
    """-1: as many copies as the cluster's own default."""
    retention_seconds: int = 7 * 86_400


class KafkaRecord(Struct, frozen=True):
    """What is sent to a topic."""

    topic: str
    value: bytes
    key: bytes | None = None
    partition: int = -1
    """-1: any, or by the key."""
    headers: tuple[tuple[str, bytes], ...] = ()
