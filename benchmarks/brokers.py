"""The queue on each broker beside Redis, in one run: deliveries a second, and latency from publish to take.

The brokers take short turns, so that a slow moment of the machine falls on all. One process publishes and takes; the
servers are processes of their own. SQS is an emulator here, which looks for messages ten times a second, and Kafka
librdkafka's mock cluster, which answers a fetch that finds nothing only after its time, here 5 ms.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

import uvloop
from msgspec import Raw, Struct

from benchmarks.quantiles import median, quantile
from benchmarks.report import Options, Report, Table, figure, spread
from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.kafka.queue import KafkaQueue
from scrapeyard.queues.nats.queue import NatsQueue
from scrapeyard.queues.port import Queue
from scrapeyard.queues.redis.queue import RedisQueue
from scrapeyard.queues.sqs.queue import SqsQueue
from scrapeyard.settings import LogSettings
from scrapeyard.telemetry.events import configure

PARTS = ("brokers",)
_PACED = 60
_PACE_SECONDS = 0.003
_FLOOD = 1500
_BULK = 500
_PUBLISHERS = 8
_TAKERS = 4
_SLOTS = 8
Say = Callable[[str], None]


class Turn(Struct, frozen=True, kw_only=True):
    """One short turn on one broker."""

    p50_ms: float
    p99_ms: float
    singles: float
    """Deliveries a second, each published by itself by one of eight callers, taken by four."""
    bulk: float
    """Deliveries a second, 500 in each publish."""


def run(options: Options, say: Say) -> Report:
    """All brokers, in turns."""
    from tests.services.kafka import KafkaServer
    from tests.services.nats import NatsServer
    from tests.services.sqs import SqsServer
    from tests.services.valkey import ValkeyServer

    configure(LogSettings(level="error"))
    loops = uvloop.new_event_loop
    with (
        ValkeyServer() as valkey,
        NatsServer() as nats,
        SqsServer() as sqs,
        KafkaServer() as kafka,
        asyncio.Runner(loop_factory=loops) as runner,
    ):
        queues: dict[str, Queue] = {
            "Redis": RedisQueue(valkey.url),
            "NATS": NatsQueue(nats.url),
            "SQS (emulator)": SqsQueue(sqs.url, patience_seconds=60),
            "Kafka (mock)": KafkaQueue(kafka.url, patience_seconds=60),
        }
        return _report(runner.run(_measure(queues, options.rounds, say)))


async def _measure(queues: dict[str, Queue], rounds: int, say: Say) -> dict[str, list[Turn]]:
    turns: dict[str, list[Turn]] = {name: [] for name in queues}
    async with contextlib.AsyncExitStack() as stack:
        for queue in queues.values():
            await queue.start()
            stack.push_async_callback(queue.stop)
        for number in range(rounds + 1):
            say(f"round {number} of {rounds}")
            for name, queue in sorted(queues.items(), reverse=bool(number % 2)):
                turn = await _turn(queue)
                if number:  # the first one warms up
                    turns[name].append(turn)
    return turns


async def _turn(queue: Queue) -> Turn:
    async with _taking(queue) as waits:
        for _ in range(_PACED):
            await queue.publish([_delivery()])
            await asyncio.sleep(_PACE_SECONDS)
        await _all(waits, _PACED)
        paced = sorted(waits)
    began = time.perf_counter()
    async with _taking(queue) as waits:
        await asyncio.gather(*(_publish(queue, _FLOOD // _PUBLISHERS) for _ in range(_PUBLISHERS)))
        await _all(waits, _FLOOD // _PUBLISHERS * _PUBLISHERS)
        singles = len(waits) / (time.perf_counter() - began)
    began = time.perf_counter()
    async with _taking(queue) as waits:
        for _ in range(4):
            await queue.publish([_delivery() for _ in range(_BULK)])
        await _all(waits, 4 * _BULK)
        bulk = len(waits) / (time.perf_counter() - began)
    p50, p99 = quantile(paced, 0.5) * 1000, quantile(paced, 0.99) * 1000
    return Turn(p50_ms=p50, p99_ms=p99, singles=singles, bulk=bulk)


async def _publish(queue: Queue, count: int) -> None:
    for _ in range(count):
        await queue.publish([_delivery()])


@contextlib.asynccontextmanager
async def _taking(queue: Queue) -> AsyncIterator[list[float]]:
    """Takers that note how long each delivery waited."""
    waits: list[float] = []

    async def take() -> None:
        while True:
            found = await queue.take(("default",), _SLOTS, tuple(Priority), 5.0)
            now = time.time()
            waits.extend(now - delivery.queued_at for delivery in found)

    takers = [asyncio.create_task(take()) for _ in range(_TAKERS)]
    try:
        yield waits
    finally:
        for taker in takers:
            taker.cancel()
        await asyncio.gather(*takers, return_exceptions=True)


async def _all(waits: list[float], wanted: int) -> None:
    while len(waits) < wanted:
        await asyncio.sleep(0.001)


def _delivery() -> Delivery:
    now = time.time()
    return Delivery(run_id="run", scraper="shop/product@1.0.0", input=Raw(b'{"n":1}'), created_at=now, queued_at=now)


def _report(turns: dict[str, list[Turn]]) -> Report:
    fields = Turn.__struct_fields__
    rows = [
        (name, *(spread([getattr(turn, field) for turn in found]) for field in fields)) for name, found in turns.items()
    ]
    for name, found in turns.items():
        if name != "Redis":
            pairs = list(zip(found, turns["Redis"], strict=True))
            parts = (
                median([getattr(here, field) / getattr(other, field) for here, other in pairs]) for field in fields
            )
            rows.append((f"{name} / Redis", *(figure(part, "x") for part in parts)))
    table = Table(
        title="Deliveries on each broker",
        columns=("broker", "p50 ms", "p99 ms", "singles/s", "in bulk/s"),
        rows=tuple(rows),
        note="Ratios are medians over the rounds.",
    )
    return Report(bench="brokers", tables=(table,), numbers=dict(turns))
