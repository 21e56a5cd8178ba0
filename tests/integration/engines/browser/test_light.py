"""The light browser: pages that need scripts and no layout, behind the same walls."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.engine import Browsers
from scrapeyard.engines.browser.found import find_light
from scrapeyard.engines.browser.host import start_host
from scrapeyard.engines.browser.port import LIGHT_HOST, ContextOptions
from scrapeyard.engines.port import BrowserWish, Caller, FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, Scraper, ScraperRef
from scrapeyard.settings import BrowserSettings, Settings
from scrapeyard.wiring.local_engine import start_local_engine
from scrapeyard.wiring.pipeline import Engine
from tests.leaks import Process, descendants, living, until
from tests.services.scripted_site import ScriptedSite

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(bool(find_light(BrowserSettings()).missing), reason="Lightpanda is not installed"),
]


@pytest.fixture(scope="module")
def site() -> Iterator[ScriptedSite]:
    with ScriptedSite() as running:
        yield running


async def started(stack: AsyncExitStack, folder: Path, **settings: object) -> Engine:
    given = Settings.model_validate({"http": {"allow_private": True}, **settings})
    return await start_local_engine(given, folder / "pages", stack)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    async with AsyncExitStack() as stack:
        yield await started(stack, tmp_path_factory.mktemp("engine"))


async def get(by: Engine, url: str, caller: Caller | None = None, **request: object) -> FetchResponse:
    given = FetchRequest(url=url, timeout_seconds=60, engine="light", **request)  # type: ignore[arg-type]
    return await by.fetch(given, caller or Caller())


async def test_a_page_comes_as_its_scripts_left_it(engine: Engine, site: ScriptedSite) -> None:
    page = await get(engine, site.url + "shell", browser=BrowserWish(wait_for="li.item"))
    assert (page.status, page.strategy, page.way) == (200, "light", "light")
    assert page.body.count(b'class="item"') == 30
    assert page.bytes_received > 0
    assert "Lightpanda" in site.heard[-1]["user-agent"], "it says what it is"
    assert "light" in engine.names


async def test_cookies_of_a_session_are_kept_and_shared(engine: Engine, site: ScriptedSite) -> None:
    caller = Caller(scraper=Scraper(ref=ScraperRef(id="shop/a", version="1.0.0", digest="0" * 64), folder=None))
    await get(engine, site.url + "set-cookie", caller, session="main")
    assert b"from-script=1" in (await get(engine, site.url + "cookies", caller, session="main")).body
    plain = FetchRequest(url=site.url + "cookies", engine="http", session="main")
    assert b"from-script=1" in (await engine.fetch(plain, caller)).body
    assert b"from-script" not in (await get(engine, site.url + "cookies")).body


@pytest.mark.parametrize("wish", [BrowserWish(screenshot=True), BrowserWish(scroll=3), BrowserWish(device="Pixel 7")])
async def test_what_needs_a_layout_is_refused(engine: Engine, site: ScriptedSite, wish: BrowserWish) -> None:
    with pytest.raises(FetchFailed, match='use engine="browser"') as failed:
        await get(engine, site.url, browser=wish)
    assert failed.value.reason is ExitReason.FETCH_NOT_ALLOWED


async def test_the_guard_holds(tmp_path: Path, site: ScriptedSite) -> None:
    async with AsyncExitStack() as stack:
        engine = await started(stack, tmp_path, http={"allow_private": False})
        asked = len(site.asked)
        for url in (site.url, site.url.replace("http", "https")):
            with pytest.raises(FetchFailed) as failed:
                await get(engine, url)
            assert failed.value.reason is ExitReason.FETCH_PRIVATE_ADDRESS
        assert len(site.asked) == asked


async def test_it_has_no_other_network_and_leaves_nothing(engine: Engine, site: ScriptedSite) -> None:
    browsers = engine.browsers
    assert isinstance(browsers, Browsers)
    async with browsers.open(ContextOptions(), Caller(), light=True) as page:
        await page.perform(do.Goto(url=site.url))
        light = _light(browsers)
        for each in light:
            devices = Path(f"/proc/{each.pid}/net/dev").read_text().splitlines()[2:]
            assert [line.split(":")[0].strip() for line in devices] == ["lo"]
            assert b"LIGHTPANDA_DISABLE_TELEMETRY=true" in Path(f"/proc/{each.pid}/environ").read_bytes()
    await asyncio.to_thread(until, lambda: not living(light), "the browser of a closed page ends")


async def test_a_killed_one_costs_its_page_alone(engine: Engine, site: ScriptedSite) -> None:
    browsers = engine.browsers
    assert isinstance(browsers, Browsers)
    async with browsers.open(ContextOptions(), Caller(), light=True) as page:
        await page.perform(do.Goto(url=site.url))
        for each in _light(browsers):
            os.kill(each.pid, signal.SIGKILL)
        with pytest.raises(FetchFailed) as failed:
            await page.perform(do.Content(timeout=20))
        assert failed.value.reason is ExitReason.BROWSER_CRASHED
    assert (await get(engine, site.url)).status == 200


async def test_without_a_namespace_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="network namespace") as failed:
        await start_host(BrowserSettings(namespace="off"), "/nowhere", tmp_path, LIGHT_HOST)
    assert failed.value.reason is ExitReason.BROWSER_UNAVAILABLE


def _light(browsers: Browsers) -> list[Process]:
    found = [each for pid in browsers._hosts.pids for each in descendants(pid) if "lightpanda serve" in each.words]
    assert found
    return found
