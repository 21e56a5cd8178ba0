"""What only the queue on Kafka does: its addresses, partitions that move, and work that is handed over."""

import asyncio
import threading
from collections import Counter
from uuid import uuid4

import pytest
from confluent_kafka import Message, TopicPartition

from scrapeyard.errors import SettingsInvalid
from scrapeyard.kafka.address import KafkaAddress
from scrapeyard.kafka.reader import AHEAD, BATCH, KafkaReader
from scrapeyard.model import Priority
from scrapeyard.queues.kafka.queue import KafkaQueue
from tests.contract.queues.test_queue import SOON, delivery, numbers, running, take, until
from tests.leaks import PATIENCE
from tests.services.kafka import KafkaServer


@pytest.fixture
def prefix(kafka_server: KafkaServer) -> str:
    """Whose topics have one partition each."""
    made = f"t{uuid4().hex[:12]}"
    for priority in Priority:
        kafka_server.create(f"{made}.queue.default.{priority}", partitions=1)
    return made


def test_a_url_names_hosts_a_login_and_options() -> None:
    address = KafkaAddress("kafka+ssl://user:p%40ss@one,two:9093,[::1]:9?sasl.mechanism=SCRAM-SHA-512")
    assert address.hosts == "one:9092,two:9093,[::1]:9"
    assert address.options == {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "user",
        "sasl.password": "p@ss",
        "security.protocol": "sasl_ssl",
    }
    assert KafkaAddress("kafka://h:1").options == {}
    assert KafkaAddress("kafka://user:x@h").options["sasl.mechanism"] == "PLAIN"


@pytest.mark.parametrize(
    "url",
    [
        "kafka://",
        "kafka://u:hush@",
        "kafka://u:hush@h:port",
        "kafka://u:hush@h/topic",
        "kafka://u:hush@h?group.id=x",
        "kafka://u:hush@h?plugin.library.paths=/tmp/x.so",
        "kafka://u:hush@h?hush",
        "kafka://u:hush@h?message.max.bytes=many",
        "kafka://u:hush@h?message.max.bytes=12",
        "http://u:hush@h",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"queue\.url") as refused:
        KafkaAddress(url)
    assert "hush" not in refused.value.message.replace("'hush'", "")


async def test_an_option_that_the_library_does_not_know_is_refused_at_the_start() -> None:
    with pytest.raises(SettingsInvalid, match=r"queue\.url.*no\.such\.option"):
        await KafkaQueue("kafka://127.0.0.1:1?no.such.option=1").start()


async def test_a_process_that_owns_no_partition_gets_work_while_the_owner_is_busy(
    kafka_server: KafkaServer, prefix: str
) -> None:
    owner, idle = (KafkaQueue(kafka_server.url, prefix=prefix, patience_seconds=SOON) for _ in range(2))
    async with running(owner), running(idle):
        await owner.publish([delivery(0)])
        assert numbers(await take(owner, timeout=SOON)) == [0]
        waiting = asyncio.create_task(take(idle, 1, timeout=SOON))
        await until(lambda: idle._takers.waiting == 1)
        got = Counter[int]()
        for number in range(1, 6):  # one of the two owns the partition now, and only `idle` takes
            await owner.publish([delivery(number)])
            got.update(numbers(await asyncio.wait_for(waiting, SOON)))
            waiting = asyncio.create_task(take(idle, 1, timeout=SOON))
        waiting.cancel()
        assert got == Counter(range(1, 6))


async def test_what_may_have_been_taken_by_another_is_marked(kafka_server: KafkaServer, prefix: str) -> None:
    first = KafkaQueue(kafka_server.url, prefix=prefix, patience_seconds=SOON)
    async with running(first):
        assert await take(first) == []
        await until(lambda: all(partition.at_end for partition in first._partitions._here.values()))
        await first.publish([delivery(1)])
        (fresh,) = await take(first, timeout=SOON)
        await first.publish([delivery(2)])
        await until(lambda: bool(first._partitions._here[f"{prefix}.queue.default.normal", 0].waiting))
    second = KafkaQueue(kafka_server.url, prefix=prefix, patience_seconds=SOON)
    async with running(second):
        (again,) = await take(second, timeout=SOON)
    assert (fresh.redelivered, numbers([again]), again.redelivered) == (False, [2], True)


async def test_several_partitions_and_processes_lose_and_double_nothing(kafka_server: KafkaServer) -> None:
    name = f"t{uuid4().hex[:12]}"
    queues = [KafkaQueue(kafka_server.url, prefix=name, patience_seconds=SOON) for _ in range(3)]
    got, total = Counter[int](), 300

    async def taker(queue: KafkaQueue) -> None:
        while got.total() < total:
            got.update(numbers(await take(queue, 4, timeout=0.3)))

    async with running(queues[0]), running(queues[1]), running(queues[2]):
        takers = [asyncio.create_task(taker(queue)) for queue in queues]
        for start in range(0, total, 20):
            await queues[0].publish([delivery(number) for number in range(start, start + 20)])
        async with asyncio.timeout(SOON):
            await asyncio.gather(*takers)
    assert got == Counter(range(total))


async def test_a_loop_that_is_busy_does_not_have_a_whole_topic_in_memory(kafka_server: KafkaServer) -> None:
    topic = f"t{uuid4().hex[:12]}"
    kafka_server.create(topic, partitions=1)
    kafka_server.write(topic, [b"x"] * 20 * BATCH)
    waiting, found = 0, 0

    def receive(messages: list[Message]) -> None:
        nonlocal waiting, found
        waiting += 1
        found += sum(message.error() is None for message in messages)

    address = KafkaAddress(kafka_server.url)
    reader = KafkaReader(address, receive, lambda _: None, {"group.id": topic})
    reader.start()
    try:
        await reader.call(lambda consumer: consumer.assign([TopicPartition(topic, 0, 0)]))
        for _ in range(150):  # the loop does nothing else, while the thread has as many turns
            turn = threading.Event()
            reader.call(lambda _, turn=turn: turn.set())  # type: ignore[misc]
            turn.wait(PATIENCE)
        waiting = 0
        await asyncio.sleep(0)
        assert waiting <= AHEAD
        await until(lambda: found == 20 * BATCH)
    finally:
        await reader.stop()
