"""What a run tells while it goes on, to whoever watches it."""

import asyncio

import msgspec
from msgspec import Raw

from scrapeyard.model import Delivery, LogLine
from scrapeyard.queues import messages
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.worker.live_events import LiveEvents
from tests.leaks import PATIENCE

LINES = 5000


async def test_a_burst_is_seen_to_its_end() -> None:
    """The script may write nothing more for a long time: what it wrote last says what it does."""
    queue = MemoryQueue()
    delivery = Delivery(run_id="run_1", scraper="test/script", input=Raw(b"{}"), created_at=0, queued_at=0)
    async with queue.listen(messages.events("run_1")) as heard, asyncio.timeout(PATIENCE):
        live = LiveEvents(queue, delivery)
        for number in range(LINES):
            live.add_line(LogLine(at_ms=0, stream="stdout", text=f"line {number}"))
        kinds, texts = set(), []
        async for message in heard:
            content = msgspec.json.decode(message)
            kinds.add(content["type"])
            texts += [content["text"]] if content["type"] == "log" else []
            if texts and texts[-1] == f"line {LINES - 1}":
                break
        await live.stop()
    assert kinds == {"status", "log"}
    assert len(texts) < LINES, "what is queued for watchers is bounded"
