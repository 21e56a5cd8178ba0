"""Pages that a script asks for and does not read: they wait in the worker, so they are counted and bounded."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.model import ExitReason
from scrapeyard.settings import SandboxSettings
from tests.contract.sandbox_scripts import result
from tests.contract.sandboxes import SMALL, Bench, Served, Walls, bench, eventually
from tests.leaks import PATIENCE

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.security]
MB = 1024 * 1024
LIMITS = replace(SMALL, memory_mb=256, fetches=1000)
SCRIPT = """
import json, os, socket, stat, struct, time

def wire():
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode): return socket.socket(fileno=os.dup(fd))
        except OSError: pass

def ask(sock, n, **more):
    head = json.dumps({"t": "fetch", "n": n, "url": "http://a.test/", **more}).encode()
    sock.sendall(struct.pack("<II", 4 + len(head), len(head)) + head)

def exactly(sock, size):
    got = 0
    while got < size: got += len(data := sock.recv(min(1 << 20, size - got)))
    return data

def pages(sock, count):
    for _ in range(count):
        size, = struct.unpack("<I", exactly(sock, 4))
        exactly(sock, size)
    return count

def run(ctx, count: int, read: bool = False, text: str = ""):
    sock = wire()
    for n in range(count): ask(sock, n, **({"headers": {str(k): text for k in range(10)}} if text else {}))
    ctx.log("asked")
    return pages(sock, count) if read else time.sleep(600)
"""


@dataclass
class Large(Served):
    """Every page has this many bytes. What is not a page yet can be held back."""

    page_bytes: int = 10 * MB
    hold: asyncio.Event | None = None

    def __post_init__(self) -> None:
        self._body = bytes(self.page_bytes)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        page = await super().fetch(request)
        if self.hold is not None:
            await self.hold.wait()
        return replace(page, body=self._body)

    async def release(self, count: int) -> None:
        """Let the pages go once that many fetches are under way."""
        await eventually(lambda: len(self.asked) == count, lambda: f"{len(self.asked)} asked")
        assert self.hold is not None
        self.hold.set()


def walls(**settings: Any) -> Walls:
    return Walls(name="unread", settings=SandboxSettings(load_seconds=PATIENCE, **settings))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand() -> AsyncIterator[Bench]:
    """It forks no child ahead: a test with a bench of its own would take that for something left behind."""
    async with bench(walls(), ahead=0) as made:
        yield made


async def test_no_fetch_begins_while_much_waits(stand: Bench) -> None:
    served = Large()
    run = asyncio.create_task(stand.run(SCRIPT, served, limits=LIMITS, count=80))
    await eventually(lambda: "asked" in served.text)
    assert result(await stand.run("def run(ctx): return ctx.fetch('http://a.test/').status")) == 200
    assert len(served.asked) <= 16
    assert stand.sandbox._pages.total <= 160 * MB
    run.cancel()
    await asyncio.wait((run,))
    assert stand.sandbox._pages.total == 0


async def test_no_fetch_begins_for_a_run_that_has_ended(stand: Bench) -> None:
    served = Large()
    limits = replace(LIMITS, wall_seconds=5)
    assert (await stand.run(SCRIPT, served, limits=limits, count=80)).exit_reason is ExitReason.TIMEOUT
    assert len(served.asked) <= 16


async def test_a_script_that_reads_late_gets_every_page(stand: Bench) -> None:
    served = Large()
    assert result(await stand.run(SCRIPT, served, limits=LIMITS, count=40, read=True)) == 40
    assert len(served.asked) == 40
    assert stand.sandbox._pages.total == 0


async def test_small_pages_are_fetched_sixteen_at_once(stand: Bench) -> None:
    served = Large(page_bytes=1000, hold=asyncio.Event())
    run = asyncio.create_task(stand.run(SCRIPT, served, limits=LIMITS, count=40, read=True))
    await eventually(lambda: "asked" in served.text)
    await served.release(16)
    assert result(await run) == 40


async def test_a_run_over_the_hard_limit_ends() -> None:
    async with bench(walls(unread_mb=1, unread_max_mb=4)) as small:
        served = Large(page_bytes=MB, hold=asyncio.Event())
        run = asyncio.create_task(small.run(SCRIPT, served, limits=LIMITS, count=80))
        await served.release(16)
        verdict = await run
        assert verdict.exit_reason is ExitReason.MEMORY_LIMIT
        assert verdict.error is not None
        assert "sandbox.unread_max_mb" in verdict.error.message
        assert result(await small.run(SCRIPT, Large(page_bytes=MB // 8), limits=LIMITS, count=40, read=True)) == 40


async def test_a_full_worker_ends_the_run_with_the_most() -> None:
    async with bench(walls(unread_mb=4, unread_worker_mb=8)) as small:
        few, many = Large(page_bytes=MB), Large(page_bytes=MB, hold=asyncio.Event())
        modest = asyncio.create_task(small.run(SCRIPT, few, limits=LIMITS, count=2))
        await eventually(lambda: small.sandbox._pages.total >= MB)
        run = asyncio.create_task(small.run(SCRIPT, many, limits=LIMITS, count=80))
        await many.release(16)
        verdict = await run
        assert verdict.exit_reason is ExitReason.MEMORY_LIMIT
        assert verdict.error is not None
        assert "sandbox.unread_worker_mb" in verdict.error.message
        assert not modest.done()
        modest.cancel()
        await asyncio.wait((modest,))


async def test_a_run_that_reads_is_served_in_a_crowded_worker() -> None:
    async with bench(walls(unread_mb=8, unread_worker_mb=8)) as small:
        hog = asyncio.create_task(small.run(SCRIPT, Large(page_bytes=MB), limits=LIMITS, count=7))
        await eventually(lambda: small.sandbox._pages.crowded)
        reads = "def run(ctx): return sum(ctx.fetch('http://a.test/').status for _ in range(10))"
        assert result(await small.run(reads, Large(page_bytes=MB), limits=LIMITS)) == 2000
        hog.cancel()
        await asyncio.wait((hog,))


async def test_heads_of_waiting_requests_are_counted(stand: Bench) -> None:
    served = Large(page_bytes=0, hold=asyncio.Event())
    run = asyncio.create_task(stand.run(SCRIPT, served, limits=LIMITS, count=300, text="x" * 60_000))
    await eventually(lambda: "asked" in served.text)
    tasks = [task for task in asyncio.all_tasks() if "ChildRequests._send_page" in repr(task)]
    assert 16 <= len(tasks) <= 64 * MB // 600_000
    run.cancel()
    await asyncio.wait((run,))
