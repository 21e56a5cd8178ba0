"""Pages read in processes of their own."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from scrapeyard.builtin.pages.page import extract_page
from scrapeyard.builtin.pages.port import PageUnreadable, RawPage
from scrapeyard.builtin.reading import processes
from scrapeyard.builtin.reading.processes import ProcessExtractor
from scrapeyard.builtin.registry import make_builtins
from scrapeyard.builtin.services import Services
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.framed_process import FramedProcess, Framing, start_process
from scrapeyard.model import ExitReason
from tests.leaks import PATIENCE

LIGHT = RawPage(url="https://shop.example/", body=b"<title>light</title><p>x", encoding="utf-8", include=("text",))
HEAVY = RawPage(
    url="https://shop.example/",
    body=b"<title>heavy</title>" + b"<p>word</p>" * 20_000,
    encoding="utf-8",
    headers=(("x-robots-tag", "noindex"),),
    include=("text", "structured", "product"),
)


def children() -> set[int]:
    """Processes of ours that are not zombies. Threads and processes may go while they are looked at."""
    found = set()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with contextlib.suppress(OSError):
            found.update(pid for pid in (task / "children").read_text().split() if _reads_pages(pid))
    return {int(pid) for pid in found}


def _reads_pages(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and b"reading.serving" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
async def pool() -> AsyncIterator[ProcessExtractor]:
    extractor = ProcessExtractor(2, seconds=PATIENCE)
    await extractor.start()
    yield extractor
    await extractor.stop()
    await extractor.stop()
    assert children() == set()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Processes that stand still as soon as they are there: no page is read before they are told to go on."""
    pids = []

    async def stopped(module: str, *arguments: str, framing: Framing) -> FramedProcess:
        process = await start_process(module, *arguments, framing=framing)
        os.kill(process.pid, signal.SIGSTOP)
        pids.append(process.pid)
        return process

    monkeypatch.setattr(processes, "start_process", stopped)
    return pids


async def test_a_page_that_comes_while_a_process_starts_is_read_by_it(
    pool: ProcessExtractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_START_SECONDS", PATIENCE)
    pages = await asyncio.gather(pool.extract(HEAVY), pool.extract(HEAVY))
    assert [page["title"] for page in pages] == ["heavy", "heavy"]
    assert len(children()) == 1
    await asyncio.gather(*(pool.extract(HEAVY) for _ in range(4)))
    assert len(children()) == 2


async def test_a_process_that_does_not_start_holds_up_no_other_page(pool: ProcessExtractor, held: list[int]) -> None:
    pages = [asyncio.create_task(pool.extract(HEAVY)) for _ in range(2)]
    await until(lambda: len(held) == 2)
    for pid in held:
        os.kill(pid, signal.SIGCONT)
    assert [page["title"] for page in await asyncio.gather(*pages)] == ["heavy", "heavy"]


async def test_a_light_page_needs_no_process(pool: ProcessExtractor) -> None:
    assert (await pool.extract(LIGHT))["text"] == "x"
    assert children() == set()


async def test_many_light_pages_are_read_in_processes_which_end_when_they_are_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_BURST_SECONDS", 0.0)
    monkeypatch.setattr(processes, "_LOOK_SECONDS", 0.01)
    pool = ProcessExtractor(2, seconds=PATIENCE, share_here=0.0)
    await pool.start()
    try:
        assert [page["text"] for page in await asyncio.gather(*(pool.extract(LIGHT) for _ in range(6)))] == ["x"] * 6
        assert len(children()) == 2
        monkeypatch.setattr(processes, "_IDLE_SECONDS", 0.0)
        await until(lambda: children() == set())
        assert (await pool.extract(LIGHT))["text"] == "x"
    finally:
        await pool.stop()


async def test_a_heavy_page_is_read_as_it_would_be_here(pool: ProcessExtractor) -> None:
    here = extract_page(HEAVY.body, HEAVY.url, include=HEAVY.include, headers=HEAVY.headers)
    assert await pool.extract(HEAVY) == here
    assert here["robots"]["index"] is False
    assert len(children()) == 1


async def test_a_process_serves_again_and_no_more_than_the_pool_has(pool: ProcessExtractor) -> None:
    await asyncio.gather(*(pool.extract(HEAVY) for _ in range(6)))
    seen = children()
    assert len(seen) == 2
    await pool.extract(HEAVY)
    assert children() == seen


async def test_a_worn_out_process_is_replaced() -> None:
    pool = ProcessExtractor(1, pages_per_process=1, seconds=PATIENCE)
    try:
        await pool.extract(HEAVY)
        await until(lambda: children() == set())
        assert (await pool.extract(HEAVY))["title"] == "heavy"
    finally:
        await pool.stop()


async def test_a_page_that_takes_too_long_costs_its_process() -> None:
    pool = ProcessExtractor(1, seconds=0.001)
    try:
        with pytest.raises(PageUnreadable, match="longer than"):
            await pool.extract(HEAVY)
        assert children() == set()
    finally:
        await pool.stop()


async def test_a_page_that_takes_too_much_memory_is_told_so() -> None:
    pool = ProcessExtractor(1, seconds=PATIENCE, memory_mb=16)
    try:
        huge = RawPage(url="https://x.example/", body=b"<p>word</p>" * 400_000, encoding="utf-8", include=("text",))
        with pytest.raises(PageUnreadable, match="memory"):
            await pool.extract(huge)
    finally:
        await pool.stop()


async def test_a_process_that_is_killed_is_replaced(pool: ProcessExtractor) -> None:
    await pool.extract(HEAVY)
    (pid,) = children()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(PageUnreadable):
        await pool.extract(HEAVY)
    assert (await pool.extract(HEAVY))["title"] == "heavy"


async def test_a_cancelled_call_leaves_no_process(pool: ProcessExtractor, held: list[int]) -> None:
    task = asyncio.create_task(pool.extract(HEAVY))
    await until(lambda: bool(held))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: children() == set())


async def test_a_parser_gets_no_secrets(pool: ProcessExtractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRAPEYARD_TOKEN", "secret")
    await pool.extract(HEAVY)
    (pid,) = children()
    assert b"SCRAPEYARD_TOKEN" not in Path(f"/proc/{pid}/environ").read_bytes()


async def test_the_loop_is_free_while_a_heavy_page_is_read(pool: ProcessExtractor, held: list[int]) -> None:
    task = asyncio.create_task(pool.extract(HEAVY))
    await until(lambda: bool(held))
    for _ in range(100):
        await asyncio.sleep(0)
        assert not task.done()
    os.kill(held[0], signal.SIGCONT)
    assert (await task)["title"] == "heavy"


async def test_stopping_ends_pages_that_are_being_read(pool: ProcessExtractor, held: list[int]) -> None:
    task = asyncio.create_task(pool.extract(HEAVY))
    await until(lambda: bool(held))
    await pool.stop()
    with pytest.raises(PageUnreadable):
        await task
    assert children() == set()


async def test_an_unreadable_page_ends_the_run_with_a_reason() -> None:
    pool = ProcessExtractor(1, seconds=0.001)

    async def fetch(request: FetchRequest) -> FetchResponse:
        headers = (("content-type", "text/html"),)
        return FetchResponse(
            url=request.url, status=203, headers=headers, body=HEAVY.body, encoding="utf-8", elapsed_ms=1
        )

    try:
        with pytest.raises(FetchFailed) as failed:
            await make_builtins(pool)["builtin/page"].run(Services(fetch=fetch), {"url": "https://x.example/"})
    finally:
        await pool.stop()
    assert (failed.value.reason, failed.value.site_status) == (ExitReason.FETCH_DECODE, 203)
