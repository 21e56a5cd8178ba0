"""A fetch by browser: the same request, the same answer and the same rules as over HTTP."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from scrapeyard.engines.browser.engine import Browsers
from scrapeyard.engines.browser.found import find_browser
from scrapeyard.engines.browser.host import _SILENT_SECONDS
from scrapeyard.engines.browser.operations import Evaluate, Goto
from scrapeyard.engines.browser.port import ContextOptions
from scrapeyard.engines.port import BrowserWish, Caller, FetchRequest, FetchResponse, Proxy
from scrapeyard.errors import FetchFailed
from scrapeyard.model import BudgetLimits, ExitReason, FetchPolicy, Scraper, ScraperRef
from scrapeyard.settings import BrowserSettings, Settings
from scrapeyard.wiring.local_engine import start_local_engine
from scrapeyard.wiring.pipeline import Engine
from tests.contract.sandboxes import eventually
from tests.leaks import descendants
from tests.services.scripted_site import ScriptedSite

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(bool(find_browser(BrowserSettings()).missing), reason="no browser is installed"),
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
    given = FetchRequest(url=url, timeout_seconds=60, **request)  # type: ignore[arg-type]
    return await by.fetch(given, caller or Caller())


async def test_a_page_comes_as_its_scripts_left_it(engine: Engine, site: ScriptedSite) -> None:
    page = await get(engine, site.url + "shell", engine="browser", browser=BrowserWish(wait_for="li.item"))
    assert (page.status, page.url, page.strategy, page.encoding) == (200, site.url + "shell", "browser", "utf-8")
    assert page.body.count(b'class="item"') == 30
    assert page.bytes_received > 0


async def test_json_and_plain_text_are_as_the_site_sent_them(engine: Engine, site: ScriptedSite) -> None:
    page = await get(engine, site.url + "items.json", engine="browser")
    assert page.body == site.ITEMS


async def test_a_status_is_an_answer_and_a_picture_comes_along(engine: Engine, site: ScriptedSite) -> None:
    wish = BrowserWish(screenshot=True, full_page=True)
    page = await get(engine, site.url + "missing", engine="browser", browser=wish)
    assert page.status == 404
    assert page.screenshot.startswith(b"\x89PNG")


async def test_redirects_end_at_the_last_url(engine: Engine, site: ScriptedSite) -> None:
    assert (await get(engine, site.url + "moved", engine="browser")).url == site.url + "shell"


async def test_what_a_script_puts_in_the_place_of_a_page_is_told_as_it_is(engine: Engine, site: ScriptedSite) -> None:
    wish = BrowserWish(wait_for="h1")
    left = await get(engine, site.url + "leaves", engine="browser", browser=wish)
    assert (left.url, left.status) == (site.url + "gone", 410)
    assert b"No longer sold" in left.body
    checked = await get(
        engine, site.url + "challenge", engine="browser", browser=BrowserWish(wait_for="p >> text=lamp")
    )
    assert (checked.url, checked.status) == (site.url + "challenge", 200)


async def test_scripts_have_what_they_asked_for(engine: Engine, site: ScriptedSite) -> None:
    reading = asyncio.ensure_future(get(engine, site.url + "slow", engine="browser"))
    await eventually(lambda: "/slow.json" in site.asked)
    site.slow.set()
    assert b"30 things" in (await reading).body


@pytest.mark.parametrize("name", ["paper.pdf", "dot.png", "pack.zip"])
async def test_a_file_is_no_page(engine: Engine, site: ScriptedSite, name: str) -> None:
    with pytest.raises(FetchFailed, match=r"is a file.* and no page.* plain HTTP") as failed:
        await get(engine, site.url + name, engine="browser")
    assert failed.value.reason is ExitReason.BROWSER_STEP


async def test_a_shell_is_opened_in_a_browser_by_itself(engine: Engine, site: ScriptedSite) -> None:
    page = await get(engine, site.url + "shell")
    assert page.strategy == "browser"
    assert b'class="item"' in page.body
    assert [each["reason"] for each in page.tried] == ["the page is empty until its scripts run"]


async def test_a_challenge_is_passed_once_and_plain_http_goes_on(tmp_path: Path, site: ScriptedSite) -> None:
    async with AsyncExitStack() as stack:
        engine = await started(stack, tmp_path)
        caller = Caller()
        first = await get(engine, site.url + "challenge", caller)
        assert b"behind the check" in first.body
        by_browser = next(each for each in site.heard if "Google" not in each.get("sec-ch-ua", "Google"))
        again = await get(engine, site.url + "challenge", caller)
        assert (again.strategy, again.status) == ("clearance", 200)
        assert b"behind the check" in again.body
        for name in ("user-agent", "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform"):
            assert site.heard[-1][name] == by_browser[name], "both look like the same browser"


async def test_cookies_of_a_session_are_shared_with_plain_http(engine: Engine, site: ScriptedSite) -> None:
    caller = Caller(scraper=Scraper(ref=ScraperRef(id="shop/a", version="1.0.0", digest="0" * 64), folder=None))
    await get(engine, site.url + "set-cookie", caller, engine="browser", session="main")
    plain = await get(engine, site.url + "cookies", caller, engine="http", session="main")
    assert b"from-script=1" in plain.body
    await get(engine, site.url + "set-http-cookie", caller, engine="http", session="main")
    seen = await get(engine, site.url + "cookies", caller, engine="browser", session="main")
    assert b"from-server=1" in seen.body
    assert b"from-script" not in (await get(engine, site.url + "cookies", engine="browser")).body


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (FetchPolicy(budget=BudgetLimits(requests=1)), ExitReason.FETCH_BUDGET),
        (FetchPolicy(robots="obey"), ExitReason.FETCH_ROBOTS),
    ],
)
async def test_budgets_and_robots_hold(
    engine: Engine, site: ScriptedSite, policy: FetchPolicy, reason: ExitReason
) -> None:
    caller = Caller(policy=policy)
    if reason is ExitReason.FETCH_BUDGET:
        await get(engine, site.url + "private", caller, engine="browser")
    with pytest.raises(FetchFailed) as failed:
        await get(engine, site.url + "private", caller, engine="browser")
    assert failed.value.reason is reason


async def test_the_hosts_of_a_manifest_hold(engine: Engine, site: ScriptedSite) -> None:
    ref = ScraperRef(id="shop/a", version="1.0.0", digest="0" * 64)
    caller = Caller(scraper=Scraper(ref=ref, folder=None, allowed_hosts=("shop.test",)))
    with pytest.raises(FetchFailed, match="allowed_hosts"):
        await get(engine, site.url, caller, engine="browser")


async def test_a_private_address_is_refused(tmp_path: Path, site: ScriptedSite) -> None:
    async with AsyncExitStack() as stack:
        engine = await started(stack, tmp_path, http={"allow_private": False})
        with pytest.raises(FetchFailed) as failed:
            await get(engine, site.url, engine="browser")
        assert failed.value.reason is ExitReason.FETCH_PRIVATE_ADDRESS


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://no-such-host.invalid/", ExitReason.FETCH_DNS),
        ("https://no-such-host.invalid/", ExitReason.FETCH_DNS),
    ],
)
async def test_what_the_proxy_knows_is_told(engine: Engine, url: str, reason: ExitReason) -> None:
    with pytest.raises(FetchFailed) as failed:
        await get(engine, url, engine="browser")
    assert failed.value.reason is reason


async def test_only_get_is_sent(engine: Engine, site: ScriptedSite) -> None:
    with pytest.raises(FetchFailed, match="GET"):
        await get(engine, site.url, engine="browser", method="POST", body=b"x")


async def test_a_killed_browser_ends_its_pages_and_the_next_ones_work(engine: Engine, site: ScriptedSite) -> None:
    browsers = engine.browsers
    assert isinstance(browsers, Browsers)
    async with browsers.open(ContextOptions(), Caller()) as context:
        await context.perform(Goto(url=site.url + "shell"))
        (pid,) = browsers._hosts.pids
        started_by_it = descendants(pid)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(FetchFailed) as failed:
            await context.perform(Evaluate(expression="new Promise(() => 0)"))
        assert failed.value.reason is ExitReason.BROWSER_CRASHED
    await eventually(lambda: not any(Path(f"/proc/{each.pid}").exists() for each in started_by_it))
    assert (await get(engine, site.url + "shell", engine="browser")).status == 200


async def test_a_browser_that_dies_while_a_page_loads_is_noticed_before_it_is_silent_too_long(engine: Engine) -> None:
    browsers = engine.browsers
    assert isinstance(browsers, Browsers)
    with ScriptedSite() as site:
        async with browsers.open(ContextOptions(), Caller()) as context:
            loading = asyncio.create_task(context.perform(Goto(url=site.url + "slow.json")))
            await eventually(lambda: "/slow.json" in site.asked)
            (pid,) = browsers._hosts.pids
            started = [each for each in descendants(pid) if "--remote-debugging-pipe" in each.words]
            os.kill(next(each.pid for each in started if "--type=" not in each.words), signal.SIGKILL)
            with pytest.raises(FetchFailed) as failed:
                async with asyncio.timeout(_SILENT_SECONDS / 2):
                    await loading
            assert failed.value.reason is ExitReason.BROWSER_CRASHED
        site.slow.set()


async def test_a_fetch_that_finds_no_free_context_is_put_back(tmp_path: Path, site: ScriptedSite) -> None:
    async with AsyncExitStack() as stack:
        engine = await started(stack, tmp_path, browser={"max_contexts": 1, "wait_seconds": 0})
        assert engine.browsers is not None
        async with engine.browsers.open(ContextOptions(), Caller()):
            with pytest.raises(FetchFailed, match="is put back") as failed:
                await get(engine, site.url, engine="browser")
            assert (failed.value.reason, failed.value.details["retry_after"]) == (ExitReason.FETCH_RATE_LIMITED, 10)
            with pytest.raises(FetchFailed, match=r"browser\.max_contexts"):
                async with engine.browsers.open(ContextOptions(), Caller()):
                    pass


async def test_language_and_time_zone_follow_the_exits_country(engine: Engine, site: ScriptedSite) -> None:
    browsers = engine.browsers
    assert browsers is not None
    caller = Caller(policy=FetchPolicy(country="de"))
    asked = "[navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone]"
    async with browsers.open(ContextOptions(), caller) as context:
        await context.perform(Goto(url=site.url))
        assert bytes((await context.perform(Evaluate(expression=asked))).value) == b'["de-DE","Europe/Berlin"]'
    exit_proxy = Proxy(url="http://127.0.0.1:9", country="kr")
    async with browsers.open(ContextOptions(), caller, way=exit_proxy) as context:
        found = bytes((await context.perform(Evaluate(expression=asked))).value)
        assert found == b'["ko-KR","Asia/Seoul"]', "the exit is where it is, whatever was asked for"
