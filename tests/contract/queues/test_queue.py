"""What every queue promises. Each backend runs all of it; a test skips only on a capability that the backend lacks."""

import asyncio
import contextlib
import itertools
import os
import runpy
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import nats
import pytest
from confluent_kafka import Producer
from msgspec import Raw
from structlog.testing import capture_logs

from scrapeyard.errors import BadRequest, QueueUnavailable, SettingsInvalid
from scrapeyard.model import Delivery, Priority
from scrapeyard.queues import listeners
from scrapeyard.queues.kafka.queue import KafkaQueue
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.queues.nats.queue import NatsQueue
from scrapeyard.queues.port import Queue
from scrapeyard.queues.redis.queue import RedisQueue
from scrapeyard.queues.sqs.queue import SqsQueue
from tests.leaks import PATIENCE, killed_after, processes
from tests.services.kafka import KafkaServer
from tests.services.nats import NatsServer
from tests.services.sqs import SqsServer
from tests.services.valkey import ValkeyServer

ALL = tuple(Priority)
SOON = PATIENCE
"""Longer than anything here takes; a test that waits so long has failed."""
NEVER = 5 * PATIENCE
"""How long a take waits that must be woken: a test does not live to see its end."""
OUTAGE_SECONDS = 0.2
EXAMPLE = Path(__file__).parents[3] / "examples" / "queue" / "sqlite_queue.py"


class Server(Protocol):
    """What can be done to a broker from outside."""

    pid: int
    url: str

    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(kw_only=True)
class Backend:
    """A kind of queue, and what can be done to it from outside."""

    make: Callable[[], Queue]
    takers_waiting: Callable[[Queue], int]
    server: Server | None = None
    """None for a queue that lives in one process. It can be stopped, and foreign things can lie in it."""
    program: str = ""
    """How another process makes such a queue."""
    put: Callable[[str, Priority, Sequence[str]], Awaitable[None]] | None = None
    """Puts messages of somebody else into a lane."""
    foreign_event: str = "queue.dead_letter"
    """What is logged for each of them."""
    made: list[Queue] = field(default_factory=list)

    async def start(self) -> Queue:
        """One more process's view of the queue. On a backend without a server it is another queue."""
        queue = self.make()
        self.made.append(queue)
        await queue.start()
        return queue

    def need_server(self) -> Server:
        """Skips the test where there is none."""
        if self.server is None:
            pytest.skip("the capability `is_shared` is not declared: this queue lives in one process")
        return self.server

    def need_redis(self) -> ValkeyServer:
        """For what only Redis knows: keys of other kinds, keys of earlier versions."""
        if not isinstance(self.server, ValkeyServer):
            pytest.skip("about keys in Redis")
        return self.server


def need(queue: Queue, capability: str) -> None:
    """Skips the test on a broker that does not declare it."""
    if not getattr(queue.capabilities, capability):
        pytest.skip(f"the capability `{capability}` is not declared")


def _memory(_request: pytest.FixtureRequest) -> Backend:
    return Backend(make=MemoryQueue, takers_waiting=lambda queue: len(queue._takers))


def _sqlite(request: pytest.FixtureRequest) -> Backend:
    """The example of an adapter of one's own."""
    module = runpy.run_path(str(EXAMPLE))
    files = itertools.count()
    folder = request.getfixturevalue("tmp_path")
    return Backend(
        make=lambda: module["SqliteQueue"](folder / f"{next(files)}.db"),
        takers_waiting=lambda queue: len(queue._takers),
    )


def _redis(request: pytest.FixtureRequest) -> Backend:
    outage = "outage" in request.fixturenames
    server = request.getfixturevalue("own_valkey" if outage else "valkey_server")
    server.command("FLUSHALL")

    async def put(lane: str, priority: Priority, messages: Sequence[str]) -> None:
        server.command("RPUSH", f"scrapeyard:l:{lane}:{priority}", *messages)

    return Backend(
        make=lambda: RedisQueue(server.url, patience_seconds=SOON),
        takers_waiting=lambda _queue: _blocked(server),
        server=server,
        program="from scrapeyard.queues.redis.queue import RedisQueue\n"
        "queue = RedisQueue(sys.argv[1], patience_seconds=600)",
        put=put,
        foreign_event="queue.dropped_message",
    )


def _nats(request: pytest.FixtureRequest) -> Backend:
    outage = "outage" in request.fixturenames
    server: NatsServer = request.getfixturevalue("own_nats" if outage else "nats_server")
    prefix = f"t{uuid4().hex}"

    async def put(lane: str, priority: Priority, messages: Sequence[str]) -> None:
        client = await nats.connect(server.url)
        for message in messages:
            await client.jetstream().publish(f"{prefix}.l.{lane}.{priority}", message.encode())
        await client.close()

    made = f"NatsQueue(sys.argv[1], prefix={prefix!r}, patience_seconds=600)"
    return Backend(
        make=lambda: NatsQueue(server.url, prefix=prefix, patience_seconds=SOON),
        takers_waiting=lambda queue: queue._takers.waiting,
        server=server,
        program=f"from scrapeyard.queues.nats.queue import NatsQueue\nqueue = {made}",
        put=put,
    )


def _sqs(request: pytest.FixtureRequest) -> Backend:
    outage = "outage" in request.fixturenames
    server: SqsServer = request.getfixturevalue("own_sqs" if outage else "sqs_server")
    prefix = f"t{uuid4().hex[:12]}"

    async def put(lane: str, priority: Priority, messages: Sequence[str]) -> None:
        async with server.client() as client:
            url = (await client.create_queue(QueueName=f"{prefix}-{priority[0]}-{lane}"))["QueueUrl"]
            for message in messages:
                await client.send_message(QueueUrl=url, MessageBody=message or "-")  # SQS has no empty messages

    made = f"SqsQueue(sys.argv[1], prefix={prefix!r}, patience_seconds=600)"
    return Backend(
        make=lambda: SqsQueue(server.url, prefix=prefix, patience_seconds=SOON),
        takers_waiting=lambda queue: queue._takers.waiting,
        server=server,
        program=f"from scrapeyard.queues.sqs.queue import SqsQueue\nqueue = {made}",
        put=put,
    )


def _kafka(request: pytest.FixtureRequest) -> Backend:
    outage = "outage" in request.fixturenames
    server: KafkaServer = request.getfixturevalue("own_kafka" if outage else "kafka_server")
    prefix = f"t{uuid4().hex[:12]}"
    for lane, priority in itertools.product(("default", "a", "b", "c", "shop.eu"), Priority):
        server.create(f"{prefix}.queue.{lane}.{priority}", partitions=1)

    async def put(lane: str, priority: Priority, messages: Sequence[str]) -> None:
        producer = Producer({"bootstrap.servers": server.hosts})
        for message in messages:
            producer.produce(f"{prefix}.queue.{lane}.{priority}", message.encode())
        assert await asyncio.to_thread(producer.flush, SOON) == 0

    made = f"KafkaQueue(sys.argv[1], prefix={prefix!r}, patience_seconds=600)"
    return Backend(
        make=lambda: KafkaQueue(server.url, prefix=prefix, patience_seconds=SOON),
        takers_waiting=lambda queue: queue._takers.waiting,
        server=server,
        program=f"from scrapeyard.queues.kafka.queue import KafkaQueue\nqueue = {made}",
        put=put,
    )


def _blocked(server: ValkeyServer) -> int:
    info = server.command("INFO", "clients").decode()
    return int(info.split("blocked_clients:")[1].split("\r\n")[0])


@contextlib.contextmanager
def impatient(queue: Queue) -> Iterator[None]:
    """For a while it gives up soon, since its server is away. What must succeed is never hurried."""
    patience = queue._patience
    queue._patience = queue._takers._patience = OUTAGE_SECONDS
    try:
        yield
    finally:
        queue._patience = queue._takers._patience = patience


@contextlib.asynccontextmanager
async def running(queue: Queue) -> AsyncIterator[Queue]:
    """Started, and stopped whatever happens."""
    await queue.start()
    try:
        yield queue
    finally:
        await queue.stop()


@pytest.fixture(
    params=[_memory, _redis, _nats, _sqs, _kafka, _sqlite], ids=["memory", "redis", "nats", "sqs", "kafka", "example"]
)
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    """Every kind of queue we ship, and the example. Nothing of ours is still running when the test is over."""
    backend = request.param(request)
    yield backend
    for queue in backend.made:
        await queue.stop()
        await queue.stop()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.fixture
async def queue(backend: Backend) -> Queue:
    """A queue that is started."""
    return await backend.start()


@pytest.fixture
def outage() -> None:
    """Asks for a server that the test may stop."""


def delivery(number: int = 0, *, priority: Priority = Priority.NORMAL, lane: str = "default", text: bytes = b"{}"):
    return Delivery(
        run_id=f"run_{number}",
        scraper="a/b",
        input=Raw(text),
        lane=lane,
        priority=priority,
        created_at=1.0,
        queued_at=2.0,
    )


def numbers(deliveries: list[Delivery]) -> list[int]:
    return [int(delivery.run_id.removeprefix("run_")) for delivery in deliveries]


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = SOON) -> None:
    """Wait for something that only the other side knows."""
    async with asyncio.timeout(seconds):
        while True:
            met = condition()
            if await met if isinstance(met, Awaitable) else met:
                return
            await asyncio.sleep(0.005)


async def take(queue: Queue, count: int = 100, *, timeout: float = 0.0, lanes=("default",), priorities=ALL):
    return await queue.take(lanes, count, priorities, timeout)


async def test_leaves_in_the_order_it_came(queue: Queue) -> None:
    need(queue, "keeps_order")
    await queue.publish([delivery(number) for number in range(5)])
    await queue.publish([delivery(number) for number in range(5, 8)])
    assert numbers(await take(queue, 3)) == [0, 1, 2]
    assert numbers(await take(queue)) == [3, 4, 5, 6, 7]
    assert await take(queue) == []


async def test_a_delivery_comes_out_as_it_went_in(queue: Queue) -> None:
    sent = Delivery(
        run_id="run_1",
        scraper="shop/product@1.4.2",
        input=Raw(b'{"b" : 1.0,"a":"\\u00e9 \xed\x95\x9c",  "big":12345678901234567890123, "n":[ ]}'),
        attempt=2,
        max_attempts=5,
        lane="shop.eu",
        priority=Priority.HIGH,
        created_at=1760000000.123456,
        queued_at=1760000001.5,
        timeout_seconds=3.5,
        reply_to="gw_1",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        redelivered=True,
    )
    await queue.publish([sent])
    (got,) = await take(queue, lanes=["shop.eu"])
    assert bytes(got.input) == bytes(sent.input)
    assert got == sent


async def test_priorities_are_exact(queue: Queue) -> None:
    await queue.publish([delivery(1, priority=Priority.LOW), delivery(2), delivery(3, priority=Priority.HIGH)])
    await queue.publish([delivery(4, priority=Priority.LOW), delivery(5), delivery(6, priority=Priority.HIGH)])
    assert numbers(await take(queue, 5)) == [3, 6, 2, 5, 1]
    assert numbers(await take(queue, 5)) == [4]


async def test_only_the_priorities_named_are_taken_the_first_named_first(queue: Queue) -> None:
    await queue.publish([delivery(1, priority=Priority.HIGH), delivery(2), delivery(3, priority=Priority.LOW)])
    assert numbers(await take(queue, priorities=[Priority.LOW, Priority.HIGH])) == [3, 1]
    assert numbers(await take(queue)) == [2]


async def test_interactive_work_never_waits_behind_bulk(queue: Queue) -> None:
    bulk = 2000 if queue.capabilities.counts_exactly else 200  # each ten are a request to SQS
    await queue.publish([delivery(number, priority=Priority.LOW) for number in range(bulk)])
    await queue.publish([delivery(-1, priority=Priority.HIGH)])
    assert numbers(await take(queue, 1)) == [-1]
    assert (await queue.depth())["default", Priority.LOW] == bulk


async def test_lanes_are_apart(queue: Queue) -> None:
    await queue.publish([delivery(1, lane="a"), delivery(2, lane="b"), delivery(3, lane="c")])
    assert numbers(await take(queue, lanes=["b"])) == [2]
    assert sorted(numbers(await take(queue, lanes=["a", "b", "c"]))) == [1, 3]


async def test_no_lane_starves_another_of_equal_priority(queue: Queue) -> None:
    await queue.publish([delivery(number, lane="ab"[number % 2]) for number in range(40)])
    lanes = [(await take(queue, 1, lanes=["a", "b"]))[0].lane for _ in range(20)]
    assert Counter(lanes) == {"a": 10, "b": 10}


@pytest.mark.parametrize("lane", ["", "A", "a b", "-a", "a:b", "a\n", "é", "a" * 65, "../x", "a*"])
async def test_names_that_are_no_lanes_are_refused(queue: Queue, lane: str) -> None:
    with pytest.raises(BadRequest, match="lane"):
        await queue.publish([delivery(0), delivery(1, lane=lane)])
    with pytest.raises(BadRequest, match="lane"):
        await take(queue, lanes=["default", lane])
    with pytest.raises(BadRequest, match="lane"):
        await queue.oldest(lane, Priority.NORMAL)
    assert await queue.depth() == {}


async def test_publish_tells_the_depth_of_the_fullest_lane(queue: Queue) -> None:
    need(queue, "counts_exactly")
    assert await queue.publish([]) == 0
    assert await queue.publish([delivery(0), delivery(1, priority=Priority.LOW)]) == 2
    assert await queue.publish([delivery(2, lane="b"), delivery(3, priority=Priority.HIGH)]) == 3
    assert await queue.publish([delivery(4, lane="b")]) == 2


async def test_depth_counts_what_waits(queue: Queue) -> None:
    need(queue, "counts_exactly")
    assert await queue.depth() == {}
    await queue.publish([delivery(0), delivery(1), delivery(2, lane="b", priority=Priority.HIGH)])
    assert await queue.depth() == {("default", Priority.NORMAL): 2, ("b", Priority.HIGH): 1}
    await take(queue, 1)
    assert {line: depth for line, depth in (await queue.depth()).items() if depth} == {
        ("default", Priority.NORMAL): 1,
        ("b", Priority.HIGH): 1,
    }


async def test_oldest_is_when_the_next_one_was_queued(queue: Queue) -> None:
    need(queue, "tells_oldest")
    assert await queue.oldest("default", Priority.NORMAL) is None
    first = Delivery(run_id="run_1", scraper="a/b", input=Raw(b"{}"), created_at=1.0, queued_at=1234.5)
    second = Delivery(run_id="run_2", scraper="a/b", input=Raw(b"{}"), created_at=1.0, queued_at=1235.25)
    await queue.publish([first, second])
    assert await queue.oldest("default", Priority.NORMAL) == 1234.5
    assert await queue.oldest("default", Priority.HIGH) is None
    await take(queue, 1)
    assert await queue.oldest("default", Priority.NORMAL) == 1235.25
    await take(queue, 1)
    assert await queue.oldest("default", Priority.NORMAL) is None


async def test_take_waits_and_is_woken(backend: Backend, queue: Queue) -> None:
    taking = asyncio.create_task(take(queue, timeout=NEVER))
    await until(lambda: backend.takers_waiting(queue) == 1)
    await queue.publish([delivery(7)])
    assert numbers(await asyncio.wait_for(taking, SOON)) == [7]
    assert sum((await queue.depth()).values()) == 0


async def test_a_waiting_taker_gets_the_most_urgent_of_a_batch(backend: Backend, queue: Queue) -> None:
    taking = asyncio.create_task(take(queue, 1, timeout=SOON))
    await until(lambda: backend.takers_waiting(queue) == 1)
    await queue.publish([delivery(1, priority=Priority.LOW), delivery(2), delivery(3, priority=Priority.HIGH)])
    assert numbers(await taking) == [3]
    left = numbers(await take(queue))
    while len(left) < 2 and not queue.capabilities.keeps_order:
        left += numbers(await take(queue, timeout=SOON))
    assert left == [2, 1] if queue.capabilities.keeps_order else sorted(left) == [1, 2]


async def test_take_ends_when_its_time_is_over(queue: Queue) -> None:
    began = time.monotonic()
    assert await asyncio.wait_for(take(queue, timeout=0.2), SOON) == []
    assert time.monotonic() - began >= 0.19
    assert await take(queue, 0) == []


async def test_waiting_takers_are_served_in_turn(backend: Backend, queue: Queue) -> None:
    need(queue, "keeps_order")
    takers = []
    for number in range(3):
        takers.append(asyncio.create_task(take(queue, 1, timeout=SOON)))
        await until(lambda wanted=number + 1: backend.takers_waiting(queue) == wanted)
    for number in range(3):
        await queue.publish([delivery(number)])
    assert [numbers(await taker) for taker in takers] == [[0], [1], [2]]


async def test_nothing_is_lost_or_doubled_between_many_takers(backend: Backend, queue: Queue) -> None:
    total, got = (900 if queue.capabilities.counts_exactly else 300), Counter[int]()
    queues = [queue] if backend.server is None else [queue, await backend.start(), await backend.start()]

    async def taker(number: int) -> None:
        while sum(got.values()) < total:
            some = await take(queues[number % len(queues)], 1 + number, timeout=0.3)
            assert len(some) <= 1 + number
            got.update(numbers(some))

    takers = [asyncio.create_task(taker(number)) for number in range(6)]
    for start in range(0, total, 50):
        batch = [delivery(number, priority=ALL[number % 3]) for number in range(start, start + 50)]
        await queues[start % len(queues)].publish(batch)
    await asyncio.gather(*takers)
    assert got == Counter(range(total))
    await until(lambda: _is_empty(queue))


async def test_a_cancelled_take_loses_nothing(backend: Backend, queue: Queue) -> None:
    for number in range(40):
        taking = asyncio.create_task(take(queue, timeout=SOON))
        await until(lambda: backend.takers_waiting(queue) == 1)
        publishing = asyncio.create_task(queue.publish([delivery(number)]))
        for _ in range(number % 8):
            await asyncio.sleep(0)
        taking.cancel()
        (outcome,) = await asyncio.gather(taking, return_exceptions=True)
        await publishing
        if isinstance(outcome, asyncio.CancelledError):
            outcome = await take(queue, timeout=SOON)
        assert numbers(outcome) == [number]
    assert sum((await queue.depth()).values()) == 0


async def test_a_cancelled_take_keeps_the_order(queue: Queue) -> None:
    need(queue, "keeps_order")
    for steps in range(10):
        await queue.publish([delivery(number) for number in range(3)])
        taking = asyncio.create_task(take(queue, 2))
        for _ in range(steps):
            await asyncio.sleep(0)
        taking.cancel()
        (outcome,) = await asyncio.gather(taking, return_exceptions=True)
        await queue.stop()  # waits for what is put back
        await queue.start()
        first = [] if isinstance(outcome, asyncio.CancelledError) else outcome
        assert numbers([*first, *await take(queue)]) == [0, 1, 2]


async def test_takers_that_give_up_again_and_again_lose_nothing(queue: Queue) -> None:
    total, got, publishing = (600 if queue.capabilities.counts_exactly else 200), Counter[int](), True

    async def taker(seconds: float) -> None:
        given_up = 0
        while sum(got.values()) < total:
            # in the end they take their time: a busy machine may need longer for any take than they would wait
            hurries = publishing and given_up < 60
            try:
                async with asyncio.timeout(seconds if hurries else None):
                    some = await take(queue, 3, timeout=SOON if hurries else 0.1)
                got.update(numbers(some))
            except TimeoutError:
                given_up += 1

    takers = [asyncio.create_task(taker(0.004 * number)) for number in range(1, 7)]
    for start in range(0, total, 5):
        await queue.publish([delivery(number) for number in range(start, start + 5)])
        await asyncio.sleep(0.001)
    publishing = False
    async with asyncio.timeout(SOON):
        await asyncio.gather(*takers)
    assert got == Counter(range(total))


async def test_a_cancelled_take_leaves_no_taker_behind(backend: Backend, queue: Queue) -> None:
    for _ in range(12):
        taking = asyncio.create_task(take(queue, timeout=SOON))
        await until(lambda: backend.takers_waiting(queue) == 1)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        await until(lambda: backend.takers_waiting(queue) == 0)
    await queue.publish([delivery(1)])
    assert numbers(await take(queue, timeout=SOON)) == [1]


async def test_stop_ends_a_waiting_take_and_may_be_called_twice(backend: Backend, queue: Queue) -> None:
    taking = asyncio.create_task(take(queue, timeout=NEVER))
    await until(lambda: backend.takers_waiting(queue) == 1)
    await queue.stop()
    assert await asyncio.wait_for(taking, SOON) == []
    await queue.stop()


async def test_a_large_message_passes_and_a_larger_one_is_refused(queue: Queue) -> None:
    largest = queue.capabilities.max_message_bytes
    text = b'{"x":"' + b"y" * (largest - 1000) + b'"}'
    await queue.publish([delivery(1, text=text)])
    (got,) = await take(queue, timeout=SOON)
    assert bytes(got.input) == text
    too_large = b'{"x":"' + b"y" * largest + b'"}'
    with pytest.raises(BadRequest, match="limit"):
        await queue.publish([delivery(2), delivery(3, text=too_large)])
    with pytest.raises(BadRequest, match="limit"):
        await queue.send("x", too_large)
    assert sum((await queue.depth()).values()) == 0


async def test_a_listener_hears_what_is_sent_after_it_entered(queue: Queue) -> None:
    await queue.send("news", b"too early")
    async with queue.listen("news") as heard:
        await queue.send("other", b"not for us")
        await queue.send("news", b"one")
        await queue.send("news", b"\x00\xff two")
        assert [await anext(heard), await anext(heard)] == [b"one", b"\x00\xff two"]
    await queue.send("news", b"nobody listens")


async def test_every_listener_hears_every_message(queue: Queue) -> None:
    async with contextlib.AsyncExitStack() as stack:
        same = [await stack.enter_async_context(queue.listen("all")) for _ in range(20)]
        own = [await stack.enter_async_context(queue.listen(f"own-{number}")) for number in range(100)]
        await queue.send("all", b"hello")
        for number in range(100):
            await queue.send(f"own-{number}", str(number).encode())
        assert [await anext(heard) for heard in same] == [b"hello"] * 20
        assert [await anext(heard) for heard in own] == [str(number).encode() for number in range(100)]


async def test_a_channel_can_be_left_and_entered_again_at_once(queue: Queue) -> None:
    for number in range(30):
        async with queue.listen("again") as heard:
            await queue.send("again", str(number).encode())
            assert await asyncio.wait_for(anext(heard), SOON) == str(number).encode()


async def test_leaving_one_listener_does_not_deafen_another(queue: Queue) -> None:
    async with queue.listen("news") as stays:
        async with queue.listen("news") as leaves:
            await queue.send("news", b"1")
            assert await anext(leaves) == b"1"
        await queue.send("news", b"2")
        assert [await anext(stays), await anext(stays)] == [b"1", b"2"]


async def test_a_slow_listener_loses_the_oldest_and_it_is_logged_once(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 200
    monkeypatch.setattr(listeners, "MAX_WAITING", most)
    with capture_logs() as logs:
        async with queue.listen("flood") as slow, queue.listen("flood") as quick:
            hearing = asyncio.create_task(_count(quick, most + 100))
            for number in range(most + 100):
                await queue.send("flood", str(number).encode())
                await asyncio.sleep(0)
            assert await asyncio.wait_for(hearing, SOON) == most + 100
            assert await anext(slow) == b"100"
    assert [entry["event"] for entry in logs] == ["queue.listener_slow"]


async def _count(heard: AsyncIterator[bytes], wanted: int) -> int:
    count = 0
    async for _ in heard:
        count += 1
        if count == wanted:
            break
    return count


async def test_stop_ends_every_listener(queue: Queue) -> None:
    async with queue.listen("news") as heard:
        hearing = asyncio.create_task(_count(heard, 5))
        await queue.send("news", b"1")
        await queue.stop()
        assert await asyncio.wait_for(hearing, SOON) <= 1
    async with queue.listen("news") as heard:
        assert await asyncio.wait_for(_count(heard, 5), SOON) == 0


async def test_it_can_be_stopped_and_started_again(queue: Queue) -> None:
    await queue.start()
    await queue.stop()
    await queue.start()
    async with queue.listen("news") as heard:
        await queue.send("news", b"1")
        assert await anext(heard) == b"1"
    await queue.publish([delivery(1)])
    assert numbers(await take(queue, timeout=SOON)) == [1]


async def test_ping_is_in_milliseconds(backend: Backend, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    quarters = itertools.count()
    if backend.server is not None:
        monkeypatch.setattr(sys.modules[type(queue).__module__], "perf_counter", lambda: next(quarters) / 4)
    assert await queue.ping() == (0.0 if backend.server is None else 250.0)


@pytest.mark.parametrize("timeout", [0.0, SOON])
async def test_garbage_is_dropped_and_logged(backend: Backend, queue: Queue, timeout: float) -> None:
    backend.need_server()
    await backend.put("default", Priority.NORMAL, ("not json", '{"run_id":1}', "x", "", "[" * 5000))
    await queue.publish([delivery(1)])
    with capture_logs() as logs:
        assert numbers(await take(queue, timeout=timeout)) == [1]
    assert [entry["event"] for entry in logs] == [backend.foreign_event] * 5
    await until(lambda: _is_empty(queue))


async def test_garbage_alone_does_not_end_a_waiting_take(backend: Backend, queue: Queue) -> None:
    backend.need_server()
    taking = asyncio.create_task(take(queue, timeout=SOON))
    await until(lambda: backend.takers_waiting(queue) == 1)
    await backend.put("default", Priority.HIGH, ("rubbish",))
    await until(lambda: backend.takers_waiting(queue) == 1)
    await queue.publish([delivery(1)])
    assert numbers(await taking) == [1]


async def test_garbage_is_never_the_oldest(backend: Backend, queue: Queue) -> None:
    backend.need_server()
    need(queue, "tells_oldest")
    await backend.put("default", Priority.NORMAL, ("rubbish", "more rubbish"))
    assert await queue.oldest("default", Priority.NORMAL) is None
    await queue.publish([delivery(1)])
    assert await queue.oldest("default", Priority.NORMAL) == 2.0


async def test_a_key_of_another_kind_in_our_place_is_survived(backend: Backend, queue: Queue) -> None:
    server = backend.need_redis()
    server.command("SET", "scrapeyard:l:default:normal", "a string")
    with capture_logs() as logs:
        assert await take(queue, timeout=0.1) == []
    assert {entry["event"] for entry in logs} == {"queue.refused"}
    with pytest.raises(QueueUnavailable, match="WRONGTYPE"):
        await queue.publish([delivery(1)])
    server.command("DEL", "scrapeyard:l:default:normal")
    await queue.publish([delivery(1)])
    assert numbers(await take(queue, timeout=SOON)) == [1]


async def test_a_server_emptied_under_a_waiting_take_is_healed(backend: Backend, queue: Queue) -> None:
    server = backend.need_redis()
    taking = asyncio.create_task(take(queue, timeout=SOON))
    await until(lambda: backend.takers_waiting(queue) == 1)
    server.command("FLUSHALL")
    server.command("SCRIPT", "FLUSH")
    await queue.publish([delivery(1)])
    assert numbers(await taking) == [1]


async def test_streams_of_an_earlier_version_are_left_alone(backend: Backend, queue: Queue) -> None:
    server = backend.need_redis()
    server.command("XADD", "scrapeyard:q:default:normal", "*", "d", "{}")
    assert await take(queue) == []
    assert await queue.oldest("default", Priority.NORMAL) is None
    await queue.publish([delivery(1)])
    assert numbers(await take(queue, timeout=SOON)) == [1]


async def test_two_processes_share_the_work(backend: Backend, queue: Queue) -> None:
    server = backend.need_server()
    script = (
        "import asyncio, sys\n"
        "from scrapeyard.model import Priority\n"
        "async def main():\n" + textwrap.indent(backend.program, "    ") + "\n"
        "    await queue.start()\n"
        "    await queue.send('hello', b'up')\n"
        "    while got := await queue.take(['default'], 7, tuple(Priority), float(sys.argv[2])):\n"
        "        for one in got:\n"
        "            if one.run_id == 'run_-1':\n"
        "                return await queue.stop()\n"
        "            await queue.send('replies', one.run_id.encode())\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-W", "error", "-c", script, server.url, str(NEVER)]
    async with queue.listen("hello") as hello, queue.listen("replies") as replies:
        with killed_after(subprocess.Popen(command)) as one, killed_after(subprocess.Popen(command)) as other:
            for _ in range(2):
                await asyncio.wait_for(anext(hello), SOON)
            await queue.publish([delivery(number) for number in range(100)])
            async with asyncio.timeout(SOON):
                heard = Counter([await anext(replies) for _ in range(100)])
            assert heard == Counter(f"run_{number}".encode() for number in range(100))
            for gone in (1, 2):  # one after the other, or the first might take both
                await queue.publish([delivery(-1)])
                await until(lambda wanted=gone: sum(each.poll() is not None for each in (one, other)) == wanted)
            assert (one.returncode, other.returncode) == (0, 0)


async def test_a_restart_is_survived(backend: Backend, outage: None) -> None:
    server = backend.need_server()
    with capture_logs() as logs:
        queue, other = await backend.start(), await backend.start()
        async with queue.listen("news") as heard:
            taking = asyncio.create_task(take(queue, timeout=NEVER))
            await until(lambda: backend.takers_waiting(queue) == 1)
            server.stop()
            await _refused_in_time(queue)
            await _refused_in_time(other)
            server.start()
            await until(lambda: backend.takers_waiting(queue) == 1)
            await until(lambda: _answers(other))
            await other.publish([delivery(1)])
            assert numbers(await asyncio.wait_for(taking, SOON)) == [1]
            await asyncio.wait_for(_heard_again(other, heard), SOON)
    await until(lambda: [entry["event"] for entry in logs] == ["queue.away"] * 2 + ["queue.back"] * 2)


async def _refused_in_time(queue: Queue) -> None:
    began = time.monotonic()
    for ask in (queue.publish([delivery(0)]), queue.send("x", b"x"), queue.depth(), queue.ping()):
        with impatient(queue), pytest.raises(QueueUnavailable):
            await asyncio.wait_for(ask, SOON)
    assert time.monotonic() - began > 4 * OUTAGE_SECONDS * 0.9


async def _heard_again(sender: Queue, heard: AsyncIterator[bytes]) -> None:
    hearing = asyncio.create_task(anext(heard))
    while not hearing.done():
        await sender.send("news", b"back")
        await asyncio.wait((hearing,), timeout=0.02)
    assert await hearing == b"back"


async def test_a_short_restart_is_not_noticed_by_publish(backend: Backend, outage: None) -> None:
    server = backend.need_server()
    queue = await backend.start()
    server.stop()
    publishing = asyncio.create_task(queue.publish([delivery(1)]))
    await asyncio.sleep(0)
    await asyncio.to_thread(server.start)
    assert await publishing == 1


async def test_start_returns_though_the_server_is_away(backend: Backend, outage: None) -> None:
    server = backend.need_server()
    server.stop()
    queue = backend.make()
    backend.made.append(queue)
    with impatient(queue):
        await asyncio.wait_for(queue.start(), SOON)
    began = time.monotonic()
    assert await asyncio.wait_for(take(queue, timeout=0.3), SOON) == []
    assert time.monotonic() - began > 0.25
    async with asyncio.timeout(SOON):
        entering = asyncio.create_task(_first(queue, "news"))
        server.start()
        while not entering.done():
            await queue.send("news", b"hello")
            await asyncio.wait((entering,), timeout=0.02)
    assert await entering == b"hello"


async def _first(queue: Queue, channel: str) -> bytes:
    async with queue.listen(channel) as heard:
        return await anext(heard)


async def test_a_take_cancelled_while_the_server_is_away_ends_at_once(backend: Backend, outage: None) -> None:
    server = backend.need_server()
    queue = await backend.start()
    taking = asyncio.create_task(take(queue, timeout=NEVER))
    await until(lambda: backend.takers_waiting(queue) == 1)
    server.stop()
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(taking, SOON)
    server.start()
    await until(lambda: _answers(queue))
    await queue.publish([delivery(1)])
    assert numbers(await take(queue, timeout=SOON)) == [1]


async def test_a_server_that_hangs_is_given_up_and_found_again(backend: Backend, outage: None) -> None:
    server = backend.need_server()
    queue = await backend.start()
    taking = asyncio.create_task(take(queue, timeout=NEVER))
    await until(lambda: backend.takers_waiting(queue) == 1)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        await until(lambda: processes()[server.pid].state == "T")
        with impatient(queue):
            async with asyncio.timeout(SOON):
                with pytest.raises(QueueUnavailable):
                    await queue.publish([delivery(0)])
                taking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await taking
                await queue.stop()
    finally:
        os.kill(server.pid, signal.SIGCONT)
    await queue.start()
    await until(lambda: _answers(queue))
    await until(lambda: backend.takers_waiting(queue) == 0)
    await queue.publish([delivery(1)])
    # what was sent before the server hung may be there too: a delivery may come twice, never not at all
    async with asyncio.timeout(SOON):
        while 1 not in numbers(await take(queue, timeout=SOON)):
            pass


async def test_no_password_is_ever_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with ValkeyServer(password="hush") as server, capture_logs() as logs:
        right = RedisQueue(server.url, patience_seconds=SOON)
        wrong = RedisQueue(server.url.replace("hush", "hus%20h"), patience_seconds=0.2)
        async with running(right), running(wrong):
            assert await right.publish([delivery(1)]) == 1
            await until(lambda: bool(logs))  # the server has said no
            with pytest.raises(QueueUnavailable, match=r"(?i)password") as refused:
                await wrong.publish([delivery(1)])
    assert [entry["event"] for entry in logs] == ["queue.away"]
    assert "hush" not in f"{logs} {refused.value} {refused.value.details} {capfd.readouterr()} {vars(right)}"


@pytest.mark.parametrize("url", ["", "http://h", "redis://:hu#sh@h", "redis://:hush@h:port", "redis://:hush@h?odd=1"])
def test_a_url_that_cannot_be_used_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsInvalid, match="redis_url") as refused:
        RedisQueue(url)
    assert "hu" not in refused.value.message.replace("user", "").replace("should", "")
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("prefix", ["", "a b", "a:b", "*", "x" * 65])
def test_a_prefix_that_cannot_be_used_is_refused(prefix: str) -> None:
    with pytest.raises(SettingsInvalid, match="prefix"):
        RedisQueue("redis://127.0.0.1:1", prefix=prefix)


async def test_yards_with_different_prefixes_are_apart(redis_url: str) -> None:
    ours, theirs = (RedisQueue(redis_url, prefix=name, patience_seconds=SOON) for name in ("ours", "theirs"))
    async with running(ours), running(theirs):
        async with ours.listen("news") as heard:
            await theirs.send("news", b"theirs")
            await ours.send("news", b"ours")
            assert await anext(heard) == b"ours"
        await theirs.publish([delivery(1)])
        assert await take(ours) == []
        assert await ours.depth() == {}
        assert numbers(await take(theirs)) == [1]


async def _is_empty(queue: Queue) -> bool:
    return sum((await queue.depth()).values()) == 0


async def _answers(queue: Queue) -> bool:
    with contextlib.suppress(QueueUnavailable):
        return await queue.ping() >= 0
    return False
