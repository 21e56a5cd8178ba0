"""Signals: decoded once, passed on by kind, and listened to again after the broker failed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import Cancel, Refresh
from scrapeyard.queues import messages
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.queues.signals import Signals, Subscription
from scrapeyard.telemetry.events import get_log
from tests.leaks import PATIENCE


@pytest.fixture
async def queue() -> AsyncIterator[MemoryQueue]:
    queue = MemoryQueue()
    await queue.start()
    yield queue
    await queue.stop()


async def send(queue: MemoryQueue, *signals: Any) -> None:
    for signal in signals:
        await queue.send(messages.SIGNALS, messages.encode(signal))


async def test_each_subscriber_gets_its_kind_one_signal_after_the_other(queue: MemoryQueue) -> None:
    got, may_end, last = list[str](), asyncio.Event(), asyncio.Event()

    async def refresh(signal: Refresh) -> None:
        got.append(f"begin {signal.scraper}")
        await may_end.wait()
        got.append(f"end {signal.scraper}")

    def cancel(signal: Cancel) -> None:
        got.append(signal.run_id)
        last.set()

    signals = Signals(queue, "test", wait_seconds=PATIENCE)
    signals.subscribe(Refresh, refresh)
    signals.subscribe(Cancel, cancel)
    await signals.start()
    await signals.start()
    await send(queue, Refresh(scraper="a"), Cancel(run_id="b"))
    may_end.set()
    await asyncio.wait_for(last.wait(), PATIENCE)
    assert got == ["begin a", "end a", "b"]
    assert signals.started
    await signals.stop()
    await signals.stop()
    assert not signals.started


async def test_an_internal_error_of_a_subscriber_does_not_end_listening(queue: MemoryQueue) -> None:
    heard = asyncio.Event()

    def fail(_: Refresh) -> None:
        raise LookupError("a slip")

    signals = Signals(queue, "test", wait_seconds=PATIENCE)
    signals.subscribe(Refresh, fail)
    signals.subscribe(Cancel, lambda _: heard.set())
    await signals.start()
    with capture_logs() as logs:
        await send(queue, Refresh(), Cancel(run_id="b"))
        await asyncio.wait_for(heard.wait(), PATIENCE)
    await signals.stop()
    assert [(entry["event"], entry["kind"]) for entry in logs] == [("queue.signal_failed", "Refresh")]


@pytest.mark.parametrize(("reports", "events"), [(True, ["queue.dropped_message"]), (False, [])])
async def test_what_cannot_be_decoded_is_dropped(queue: MemoryQueue, reports: bool, events: list[str]) -> None:
    last = asyncio.Event()
    signals = Signals(queue, "test", wait_seconds=PATIENCE, log=get_log("worker") if reports else None)
    signals.subscribe(Cancel, lambda _: last.set())
    await signals.start()
    with capture_logs() as logs:
        await queue.send(messages.SIGNALS, b"nonsense")
        await send(queue, Cancel(run_id="a"))
        await asyncio.wait_for(last.wait(), PATIENCE)
    assert [entry["event"] for entry in logs] == events
    await signals.stop()


async def test_it_listens_again_after_the_broker_failed(queue: MemoryQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapeyard.queues.signals.PAUSE_SECONDS", 0.0)
    listen, fails, told, listened = queue.listen, [1, 1], list[str](), list[int]()

    @asynccontextmanager
    async def failing(channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        if fails:
            fails.pop()
            raise QueueUnavailable("away")
        async with listen(channel) as heard:
            yield heard

    monkeypatch.setattr(queue, "listen", failing)
    last = asyncio.Event()
    signals = Signals(
        queue,
        "test",
        wait_seconds=PATIENCE,
        on_listening=lambda: listened.append(1),
        on_away=lambda error: told.append(error.message),
    )
    signals.subscribe(Cancel, lambda _: last.set())
    await signals.start()
    await send(queue, Cancel(run_id="a"))
    await asyncio.wait_for(last.wait(), PATIENCE)
    assert (told, listened) == (["away", "away"], [1])
    await signals.stop()


async def test_a_start_does_not_wait_longer_than_told(queue: MemoryQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def silent(_: str) -> AsyncIterator[AsyncIterator[bytes]]:
        await asyncio.Event().wait()
        raise AssertionError
        yield

    monkeypatch.setattr(queue, "listen", silent)
    for wait_seconds in (0.0, 0.01):
        signals = Signals(queue, "test", wait_seconds=wait_seconds)
        async with asyncio.timeout(PATIENCE):
            await signals.start()
        await signals.stop()


async def test_a_subscription_goes_on_after_a_message_that_its_reader_cannot_take(queue: MemoryQueue) -> None:
    got, last = list[bytes](), asyncio.Event()

    def receive(message: bytes) -> None:
        got.append(message)
        if message == b"undecodable":
            raise msgspec.DecodeError("no")
        if message == b"slip":
            raise LookupError("a slip")
        last.set()

    subscription = Subscription(queue, "news", receive, name="test", wait_seconds=PATIENCE, log=get_log("gateway"))
    await subscription.start()
    await subscription.start()
    with capture_logs() as logs:
        for message in (b"undecodable", b"slip", b"last"):
            await queue.send("news", message)
        await asyncio.wait_for(last.wait(), PATIENCE)
    assert got == [b"undecodable", b"slip", b"last"]
    assert [(entry["event"], entry["channel"]) for entry in logs] == [
        ("queue.dropped_message", "news"),
        ("queue.message_failed", "news"),
    ]
    await subscription.stop()
    await subscription.stop()
