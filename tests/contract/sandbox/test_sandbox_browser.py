"""`ctx.browser` in a real child: steps reach the worker checked and bounded, and the child is never trusted."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from scrapeyard.engines.browser.operations import Goto
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.model import ExitReason
from tests.contract.sandbox_scripts import result
from tests.contract.sandboxes import CONFIGURATIONS, SMALL, Bench, Served, bench, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASYNC = """
import asyncio
from scrapeyard_sdk import Context

async def run(ctx: Context, url: str, count: int = 3):
    async with ctx.browser(device="iPhone 15") as page:
        await page.goto(url)
        values = await asyncio.gather(*(page.evaluate("n => n", [n, "x" * 1000]) for n in range(count)))
        shown = await page.page()
        big = await page.evaluate("n => n", "é" * 700_000)
        return [[n for n, _ in values], shown.text("h1"), len(big)]
"""
PLAIN = """
def run(ctx, url: str):
    with ctx.browser() as page:
        page.goto(url)
        return [page.evaluate("n => n", 1), page.page().text("h1"), page.content()]
"""
WIRE = """
import json, os, socket, stat, struct

def run(ctx, frames: list):
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode): sock = socket.socket(fileno=os.dup(fd)); break
        except OSError: pass
    found = []
    for head, raw in frames:
        head = json.dumps({"t": "browser", "n": 1, **head}).encode()
        raw = raw.encode()
        sock.sendall(struct.pack("<II", 4 + len(head) + len(raw), len(head)) + head + raw)
        size, = struct.unpack("<I", sock.recv(4))
        data = b""
        while len(data) < size: data += sock.recv(size - len(data))
        length, = struct.unpack("<I", data[:4])
        answer = json.loads(data[4:4 + length])
        found.append([answer["t"], answer.get("reason"), answer.get("message", "")])
    return found
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand() -> AsyncIterator[Bench]:
    async with bench(CONFIGURATIONS[0]) as made:
        yield made


async def test_an_async_script_drives_a_page(stand: Bench) -> None:
    served = Served()
    verdict = await stand.run(ASYNC, served, limits=replace(SMALL, memory_mb=256), url="http://a.test/", count=50)
    assert result(verdict) == [list(range(50)), "as it is now", 700_000]
    assert served.steps[0] == Goto(url="http://a.test/")
    assert served.browsers == {}


async def test_a_plain_script_drives_a_page(stand: Bench) -> None:
    served = Served()
    found = result(await stand.run(PLAIN, served, url="http://a.test/"))
    assert found == [1, "as it is now", "<h1>as it is now</h1>"]
    assert served.browsers == {}


async def test_an_error_that_is_not_caught_ends_the_run_with_its_reason(stand: Bench) -> None:
    script = "def run(ctx, device: str):\n    with ctx.browser(device=device) as page: page.click('#no')"
    served = Served()
    verdict = await stand.run(script, served, device="")
    assert verdict.exit_reason is ExitReason.BROWSER_TIMEOUT
    assert verdict.error is not None
    assert (verdict.error.type, verdict.error.message) == ("BrowserError", "no #no within 30 s")
    assert served.browsers == {}
    assert (await stand.run(script, device="none")).exit_reason is ExitReason.BROWSER_UNAVAILABLE


async def test_what_cannot_be_a_step_is_refused(stand: Bench) -> None:
    good, deep = '{"do": "click", "selector": "a"}', '{"do": "evaluate", "expression": "1", "arg": ' + "[" * 5000
    frames = [
        ({"act": "open", "size": 2}, "{}"),
        ({"act": "open", "size": 16}, '{"colour": "red"}'),
        ({"act": "do", "b": 1, "size": 9}, '{"do": 1}'),
        ({"act": "do", "b": 1, "size": 21}, '{"do": "format_disk"}'),
        ({"act": "do", "b": 1, "size": len(deep)}, deep),
        ({"act": "do", "b": 1, "size": 0}, ""),
        ({"act": "do", "b": 1, "size": len(good)}, good),
        ({"act": "close", "b": 1}, ""),
    ]
    answers = result(await stand.run(WIRE, frames=frames))
    kinds = [kind for kind, _, _ in answers]
    assert kinds == ["browser", *["page_error"] * 6, "browser"]
    assert [reason for _, reason, _ in answers[1:7]] == [*["browser_step"] * 5, "browser_timeout"]
    assert "format_disk" in answers[3][2]


async def test_a_frame_that_is_none_ends_the_run(stand: Bench) -> None:
    verdict = await stand.run(WIRE, frames=[({"act": "explode"}, "")])
    assert verdict.exit_reason is ExitReason.PROTOCOL_ERROR


async def test_steps_that_wait_are_bounded(stand: Bench) -> None:
    script = """
import asyncio
async def run(ctx):
    async with ctx.browser() as page:
        waits = [asyncio.create_task(page.evaluate("forever")) for _ in range(150)]
        done, _ = await asyncio.wait(waits, return_when="FIRST_COMPLETED")
        return [str(each.exception()) for each in done][0]
"""
    served = Served()
    assert "too many requests wait" in result(await stand.run(script, served))
    assert len(served.steps) <= 16


async def test_pages_that_are_opened_are_counted(stand: Bench) -> None:
    step = '{"do": "goto", "url": "http://a.test/"}'
    frames = [({"act": "open", "size": 2}, "{}"), *[({"act": "do", "b": 1, "size": len(step)}, step)] * 4]
    served = Served()
    answers = result(await stand.run(WIRE, served, limits=replace(SMALL, fetches=3), frames=frames))
    assert [reason for _, reason, _ in answers] == [None] * 4 + ["fetch_limit"]
    assert len(served.steps) == 3


async def test_a_step_under_way_ends_with_the_run(stand: Bench) -> None:
    script = "def run(ctx):\n    with ctx.browser() as page: page.evaluate('forever')"
    served = Served()
    run = asyncio.create_task(stand.run(script, served))
    await eventually(lambda: served.steps)
    run.cancel()
    await asyncio.wait((run,))
    assert run.cancelled()


class Pictured(Served):
    """Its pages come with a picture of half a MB."""

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        page = await super().fetch(request)
        wanted = request.browser is not None and request.browser.screenshot
        return msgspec.structs.replace(page, screenshot=bytes(2**19) if wanted else b"")


async def test_a_fetch_by_browser_leaves_a_picture(stand: Bench) -> None:
    script = """
from scrapeyard_sdk import ArtifactError
def run(ctx, names: list):
    found = []
    for name in names:
        try: found.append(ctx.fetch("http://a.test/", engine="browser", screenshot=name).status)
        except ArtifactError as error: found.append(str(error))
    return found
"""
    served = Pictured()
    found = result(await stand.run(script, served, names=[True, "b.png", "c.png", "../d", False]))
    assert found[:2] == [200, 200]
    assert "limits.artifact_mb" in found[2]
    assert "an artifact's name" in found[3]
    assert found[4] == 200
    assert {name: (kind, len(data)) for name, (kind, data) in served.artifacts.items()} == {
        "screenshot.png": ("image/png", 2**19),
        "b.png": ("image/png", 2**19),
    }
