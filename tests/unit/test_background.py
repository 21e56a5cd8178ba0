"""Background tasks: started once, stopped twice, a fault is logged once."""

import asyncio

from structlog.testing import capture_logs

from scrapeyard.background import Background
from tests.leaks import PATIENCE


class Work:
    """A loop that ends only when it is cancelled, and takes its time for that."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0

    async def run(self) -> None:
        self.begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.ended += 1


async def test_it_may_be_started_and_stopped_twice() -> None:
    background, work = Background(), Work()
    assert background.start(work.run, work.run, name="test")
    assert not background.start(work.run, name="test")
    await asyncio.sleep(0)
    assert (work.begun, len(background), background.started) == (2, 2, True)
    assert await background.stop()
    assert (work.ended, len(background), background.started) == (2, 0, False)
    assert not await background.stop()
    assert background.start(work.run, name="test")
    assert await background.stop()


async def test_a_key_is_there_while_its_task_runs() -> None:
    background, go_on = Background(), asyncio.Event()
    background.spawn(go_on.wait(), name="test", key="a")
    assert ("a" in background, "b" in background) == (True, False)
    go_on.set()
    await asyncio.wait_for(background.idle(), PATIENCE)
    assert "a" not in background


async def test_a_task_that_fails_is_logged_once_and_the_others_go_on() -> None:
    async def fail() -> None:
        raise LookupError("a slip")

    background, work = Background(), Work()
    with capture_logs() as logs:
        background.start(fail, work.run, name="test")
        while len(background) > 1:
            await asyncio.sleep(0)
        assert await background.stop()
    assert [(entry["event"], entry["task"], entry["error"]) for entry in logs] == [
        ("background.failed", "test", "LookupError('a slip')")
    ]


async def test_what_is_cancelled_from_outside_is_no_fault() -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    background = Background()
    with capture_logs() as logs:
        background.spawn(give_up(), name="test")
        await background.idle()
        await background.stop()
    assert logs == []
