"""Pages that mean harm: each ends with a reason, and the next context works."""

from collections.abc import Callable

import pytest

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.host import ProcessHost
from scrapeyard.model import ExitReason
from tests.services.browser import OpenPage, opened

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
PageAt = Callable[..., str]
LOOP = "<p>x</p><script>setTimeout(() => { while (1) {} })</script>"
ALERTS = "<p>x</p><script>setTimeout(() => { while (1) alert(1) })</script>"
GROWTH = "<script>const all = []; setInterval(() => all.push(new Array(5e6).fill(Math.random())), 1)</script>"
BUFFERS = "<script>const all = []; setInterval(() => all.push(new Uint8Array(5e7).fill(1)), 20)</script>"
POPUPS = "<p>x</p><script>for (let n = 0; n < 60; n++) window.open('about:blank#' + n)</script>"
STAYS = "<p>x</p><script>addEventListener('beforeunload', e => { e.preventDefault(); e.returnValue = 'stay' })</script>"
HUGE = """<div></div><script>const d = document.querySelector('div');
    for (let n = 0; n < 2e4; n++) d.append('x'.repeat(200), document.createElement('p'))</script>"""


@pytest.fixture(scope="module")
def driver() -> str:
    """The usual one."""
    return "patchright"


async def _works(host: ProcessHost, page_at: PageAt) -> bool:
    async with opened(host) as page:
        await page.do(do.Goto(url=page_at("good.html", "<h1>good</h1>")))
        return bool(await page.do(do.Read(selector="h1")) == ["good"])


@pytest.mark.parametrize("html", [LOOP, ALERTS], ids=["loop", "alerts"])
async def test_a_page_that_never_answers(host: ProcessHost, page_at: PageAt, html: str) -> None:
    async with opened(host) as page:
        await page.do(do.Goto(url=page_at("busy.html", html), wait_until="commit"))
        for operation in (
            do.Evaluate(expression="new Promise(() => 0)", timeout=0.5),
            do.Content(timeout=0.5),
            do.Screenshot(timeout=0.5),
            do.Click(selector="p", timeout=0.5),
        ):
            assert (await page.fails(operation)).reason is ExitReason.BROWSER_TIMEOUT
        await page.close()
    assert await _works(host, page_at)


@pytest.mark.parametrize("html", [GROWTH, BUFFERS], ids=["heap", "buffers"])
async def test_a_page_that_takes_all_memory(host: ProcessHost, page_at: PageAt, html: str) -> None:
    async with opened(host) as other, opened(host, timeout=120) as page:
        await other.do(do.Goto(url=page_at("good.html", "<h1>good</h1>")))
        await page.do(do.Goto(url=page_at("bomb.html", html)))
        failure = await page.fails(do.WaitForFunction(expression="false"))
        assert failure.reason is ExitReason.BROWSER_CRASHED
        assert (await page.fails(do.Content())).reason is ExitReason.BROWSER_CRASHED
        assert await other.do(do.Read(selector="h1")) == ["good"]
    assert host.is_alive


async def test_popups_are_bounded(page: OpenPage, page_at: PageAt) -> None:
    await page.do(do.Goto(url=page_at("popups.html", POPUPS)))
    await page.do(do.WaitForLoad(state="networkidle"))
    assert 1 <= len(await page.do(do.Tabs())) <= 20
    assert await page.do(do.Read(selector="p")) == ["x"]


async def test_a_page_that_wants_to_stay_is_left_and_closed(page: OpenPage, page_at: PageAt) -> None:
    await page.do(do.Goto(url=page_at("stays.html", STAYS)))
    await page.do(do.Click(selector="p"))
    assert (await page.do(do.Goto(url=page_at("after.html", STAYS))))["status"] == 200
    await page.do(do.Click(selector="p"))
    assert (await page.close()).pages == 2


async def test_a_huge_page_is_refused(host: ProcessHost, page_at: PageAt) -> None:
    async with opened(host, max_bytes=1_000_000) as page:
        await page.do(do.Goto(url=page_at("huge.html", HUGE)))
        for operation in (do.Content(), do.Read(selector="div", what="html")):
            assert (await page.fails(operation)).reason is ExitReason.FETCH_TOO_LARGE
    assert await _works(host, page_at)


async def test_the_browsers_own_pages_are_refused(host: ProcessHost, page_at: PageAt) -> None:
    async with opened(host) as page:
        await page.do(do.Goto(url=page_at("good.html", "<h1>good</h1>")))
        await page.do(do.NewTab())
        assert (await page.fails(do.Goto(url="chrome://crash", tab=1))).reason is ExitReason.FETCH_BAD_URL
    assert await _works(host, page_at)
