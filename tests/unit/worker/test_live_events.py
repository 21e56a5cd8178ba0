"""What a run tells while it goes on, to whoever watches it."""

import asyncio

import msgspec
import pytest
from msgspec import Raw

from scrapeyard.model import Delivery, LogLine, RunProgress, RunWait
from scrapeyard.queues import messages
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.worker.live_events import LiveEvents
from tests.leaks import PATIENCE

LINES = 5000
DELIVERY = Delivery(run_id="run_1", scraper="test/script", input=Raw(b"{}"), created_at=0, queued_at=0)


async def test_a_burst_is_seen_to_its_end() -> None:
    """The script may write nothing more for a long time: what it wrote last says what it does."""
    queue = MemoryQueue()
    async with queue.listen(messages.events("run_1")) as heard, asyncio.timeout(PATIENCE):
        live = LiveEvents(queue, DELIVERY)
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


@pytest.mark.parametrize("turns", range(6))
async def test_a_run_that_ends_with_a_line_ends(turns: int) -> None:
    """However many turns of the event loop are between its last line and its end."""
    noted = asyncio.Event()

    async def note(progress: RunProgress | None, waiting: RunWait | None) -> bool:
        noted.set()
        return False  # so that it is tried again a second later

    queue = MemoryQueue()
    async with queue.listen(messages.events("run_1")), asyncio.timeout(PATIENCE):
        live = LiveEvents(queue, DELIVERY, note)
        live.add_progress(RunProgress(done=1))
        await noted.wait()
        await asyncio.sleep(0)
        live.add_line(LogLine(at_ms=0, stream="stdout", text="the last"))
        for _ in range(turns):
            await asyncio.sleep(0)
        await live.stop()
