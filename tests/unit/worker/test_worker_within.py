"""A limit on waiting, and what of it is left out where nothing waits."""

import asyncio
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from scrapeyard.worker.attempts.steps import within
from scrapeyard.worker.batches.items import host_of


async def test_what_waits_for_nothing_sets_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer() -> int:
        return 7

    monkeypatch.setattr(asyncio, "timeout", None)
    assert await within(0.0, answer()) == 7


async def test_what_waits_goes_on_with_what_it_waited_for() -> None:
    brought: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def work() -> list[int]:
        first = await brought
        await asyncio.sleep(0)
        return [first, await asyncio.sleep(0.001, 2)]

    asyncio.get_running_loop().call_soon(brought.set_result, 1)
    assert await within(10.0, work()) == [1, 2]


@pytest.mark.parametrize("waits_before", [0, 3])
async def test_the_limit_ends_it_where_it_stands(waits_before: int) -> None:
    ended = []

    async def work() -> None:
        try:
            for _ in range(waits_before):
                await asyncio.sleep(0)
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    with pytest.raises(TimeoutError):
        await within(0.02, work())
    assert ended


async def test_who_is_cancelled_cancels_it() -> None:
    began, ended = asyncio.Event(), []

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    task = asyncio.create_task(within(10.0, work()))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended


async def test_a_limit_of_its_own_inside_is_kept() -> None:
    async def work() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "inner"
        return ""

    assert await within(10.0, work()) == "inner"


@pytest.mark.parametrize("waits", [False, True])
async def test_its_faults_are_ours(waits: bool) -> None:
    async def work() -> None:
        if waits:
            await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await within(10.0, work())


_PIECES = some.sampled_from(
    ["http://", "https://", "HTTP://", "ftp://", "//", "a", "Shop.example", "127.0.0.1", "[::1]", ":80", ":", "@", "/",
     "?", "#", "user", " ", "\t", "\n", "é", "%41", "-", "..", "\\", "[", "]"]
)  # fmt: skip


@given(some.lists(_PIECES, max_size=8).map("".join) | some.text(max_size=30))
@example("http://user:80@shop.example/")
@example("https://Shop.example:8443?x")
@example("http://shop.example\n")
def test_a_host_is_what_the_library_says(url: str) -> None:
    try:
        expected = urlsplit(url).hostname or ""
    except ValueError:
        expected = ""
    assert host_of(url) == expected
