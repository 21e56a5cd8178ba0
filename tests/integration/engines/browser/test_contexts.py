"""What a context looks like to pages, what it keeps, and what is left of it."""

import functools
import zipfile
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from msgspec import json

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.host import ProcessHost
from scrapeyard.engines.browser.port import Evidence
from scrapeyard.model import ExitReason
from tests.services.browser import OpenPage, opened
from tests.services.static_site import StaticSite
from tests.sites.site import Site
from tests.sites.site import page as whole_answer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
PageAt = Callable[..., str]
PROBE = """async () => ({
    agent: navigator.userAgent, driven: navigator.webdriver, plugins: navigator.plugins.length, chrome: typeof chrome,
    brands: navigator.userAgentData.brands.map(b => b.brand + b.version).join(), languages: navigator.languages,
    inner: [innerWidth, innerHeight], outer: [outerWidth, outerHeight], screen: [screen.width, screen.height],
    notices: [Notification.permission, (await navigator.permissions.query({name: 'notifications'})).state],
    traces: Object.getOwnPropertyNames(window).filter(name => /playwright|puppeteer|__pw|cdc_/i.test(name)),
    watched: (() => { let read = false; const error = new Error();
        Object.defineProperty(error, 'stack', {get() { read = true }}); console.debug(error); return read })(),
})"""


@pytest.mark.needs("looks")
async def test_a_page_sees_no_machine(page: OpenPage, page_at: PageAt, site: StaticSite) -> None:
    await page.do(do.Goto(url=page_at("probe.html", "<p>x")))
    seen: dict[str, Any] = await page.do(do.Evaluate(expression=PROBE))
    major = page.host.facts.version.partition(".")[0]
    assert f"Chrome/{major}." in seen["agent"]
    assert "Headless" not in seen["agent"] + seen["brands"]
    assert f"Chromium{major}" in seen["brands"]
    assert (seen["driven"], seen["watched"], seen["traces"], seen["chrome"]) == (False, False, [], "object")
    assert seen["plugins"] == 5
    assert seen["notices"] == ["default", "prompt"]
    assert seen["inner"][1] < seen["outer"][1] < seen["screen"][1]
    headers = site.asked[-1][2]
    assert "Headless" not in headers["user-agent"] + headers["sec-ch-ua"]
    assert not any("proxy" in name for name in headers)


@pytest.mark.needs("looks")
async def test_options(host: ProcessHost, page_at: PageAt, site: StaticSite) -> None:
    url = page_at("options.html", "<p>x")
    options = {
        "locale": "de-DE", "timezone": "Asia/Seoul", "latitude": 37.5, "longitude": 127.0, "width": 700, "height": 500,
        "user_agent": "Mine/1", "headers": {"X-Own": "yes"},
    }  # fmt: skip
    look = """async () => [navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone, navigator.userAgent,
        innerWidth, innerHeight,
        await new Promise(f => navigator.geolocation.getCurrentPosition(p => f(p.coords.latitude), e => f(e + '')))]"""
    async with opened(host, **options) as page:
        await page.do(do.Goto(url=url))
        assert site.asked[-1][2]["x-own"] == "yes"
        assert await page.do(do.Evaluate(expression=look)) == ["de-DE", "Asia/Seoul", "Mine/1", 700, 500, 37.5]


@pytest.mark.needs("looks")
async def test_devices(host: ProcessHost, page_at: PageAt) -> None:
    async with opened(host, device="Pixel 7") as page:
        await page.do(do.Goto(url=page_at("device.html", "<p>x")))
        agent, touch = await page.do(do.Evaluate(expression="[navigator.userAgent, navigator.maxTouchPoints]"))
        assert "Pixel 7" in agent
        assert f"Chrome/{host.facts.version.partition('.')[0]}." in agent
        assert touch > 0
    with pytest.raises(Exception, match="no device"):
        async with opened(host, device="Nokia 3310"):
            pass


@pytest.mark.needs("looks")
async def test_without_javascript(host: ProcessHost, page_at: PageAt) -> None:
    async with opened(host, java_script=False) as page:
        html = "<p>before</p><script>document.body.textContent = 'after'</script>"
        await page.do(do.Goto(url=page_at("plain.html", html)))
        assert b"<p>before</p>" in (await page.done(do.Content())).raw
        assert await page.do(do.Read(selector="p")) == ["before"]


@pytest.mark.needs("storage")
async def test_contexts_share_nothing_and_keep_their_state(host: ProcessHost, page_at: PageAt) -> None:
    url = page_at("state.html", "<script>document.cookie = 'a=1'; localStorage.setItem('b', '2')</script>")
    look = "[document.cookie, localStorage.getItem('b')]"
    empty = page_at("empty.html", "<p>x")
    async with opened(host, session="s") as page:
        await page.do(do.Goto(url=url))
        state = (await page.close()).state
    async with opened(host) as page:
        await page.do(do.Goto(url=empty))
        assert await page.do(do.Evaluate(expression=look)) == ["", None]
    async with opened(host, session="s", state=state) as page:
        await page.do(do.Goto(url=empty))
        assert await page.do(do.Evaluate(expression=look)) == ["a=1", "2"]


@pytest.mark.needs("looks")
async def test_a_context_has_a_cache_and_shows_its_credentials_to_no_site(host: ProcessHost) -> None:
    if host.facts.no_namespace:
        pytest.skip(f"no namespaces here: {host.facts.no_namespace}")
    answer = functools.partial(whole_answer, Connection="close")  # the proxy of the tests passes one request
    html = answer(b"<!doctype html><script src=/a.js></script>", content_type="text/html")
    async with Site() as asked_site:
        asked_site.routes |= {"/": html, "/other": html, "/favicon.ico": html}
        asked_site.routes["/a.js"] = answer(b"1", content_type="text/javascript", Cache_Control="max-age=600")
        asked_site.routes["/login"] = answer(b"who?", status=401, WWW_Authenticate='Basic realm="shop"')
        async with opened(host) as page:
            for path in ("/", "/other"):
                await page.do(do.Goto(url=asked_site.url(path)))
            assert (await page.do(do.Goto(url=asked_site.url("/login"))))["status"] == 401
        paths = [asked.path for asked in asked_site.asked]
        assert (paths.count("/a.js"), paths.count("/login")) == (1, 1)
        assert not any("authorization" in name for asked in asked_site.asked for name in asked.headers)


@pytest.mark.needs("blocking")
async def test_blocked_kinds_are_not_asked_for(host: ProcessHost, page_at: PageAt, site: StaticSite) -> None:
    html = "<img src=/a.png><link rel=stylesheet href=/a.css><script src=/a.js></script>"
    async with opened(host, block=("image", "stylesheet")) as page:
        await page.do(do.Goto(url=page_at("block.html", html)))
        end = await page.close()
    assert (end.blocked, end.blocked_bytes > 0, end.pages) == (2, True, 1)
    assert "/a.js" in site.paths()
    assert not {"/a.png", "/a.css"} & set(site.paths())


@pytest.mark.needs("evidence")
async def test_evidence(host: ProcessHost, page_at: PageAt) -> None:
    async with opened(host, evidence=Evidence(har=True, trace=True)) as page:
        await page.do(do.Goto(url=page_at("evidence.html", "<p>x")))
        assert (await page.fails(do.Click(selector="#no", timeout=0.1))).reason is ExitReason.BROWSER_TIMEOUT
        files = {file.name: file.data for file in (await page.close()).files}
    assert sorted(files) == ["failure.png", "network.har", "trace.zip"]
    assert files["failure.png"].startswith(b"\x89PNG")
    assert "evidence.html" in files["network.har"].decode()
    assert json.decode(files["network.har"])["log"]["entries"]
    assert "trace.trace" in zipfile.ZipFile(BytesIO(files["trace.zip"])).namelist()


async def test_what_went_well_leaves_no_picture(page: OpenPage, page_at: PageAt) -> None:
    await page.do(do.Goto(url=page_at("well.html", "<p>x")))
    assert (await page.close()).files == ()


@pytest.mark.needs("evidence")
async def test_messages_of_the_page(host: ProcessHost, page_at: PageAt) -> None:
    url = page_at("messages.html", "<p>x</p><script>console.warn('look', 7); nothing()</script>")
    async with opened(host, evidence=Evidence(console=True)) as page:
        await page.do(do.Goto(url=url))
        await page.do(do.Read(selector="p"))
        await page.close()
    found = {(message.kind, message.text) for message in host.messages(page.number)}
    assert ("warning", "look 7") in found
    assert any(kind == "error" and "nothing is not defined" in text for kind, text in found)
    assert host.messages(page.number) == []


@pytest.mark.needs("evidence")
async def test_a_film_without_an_encoder(host: ProcessHost, page_at: PageAt) -> None:
    html = "<p>x</p><script>setInterval(() => document.body.append(1), 50)</script>"
    async with opened(host, evidence=Evidence(video=True)) as page:
        await page.do(do.Goto(url=page_at("film.html", html)))
        async for _ in page.host.watch(page.number):
            break
        await page.do(do.Wait(seconds=1))
        (film,) = (await page.close()).files
    if film.name == "video.webm":
        assert film.data.startswith(b"\x1aE\xdf\xa3")
        return
    assert (film.name, film.data[:4], film.data[8:16]) == ("video.avi", b"RIFF", b"AVI LIST")
    assert int.from_bytes(film.data[4:8], "little") == len(film.data) - 8
    assert film.data.count(b"\xff\xd8\xff") >= 2, "it has pictures"


@pytest.mark.needs("evidence")
async def test_live_view(page: OpenPage, page_at: PageAt) -> None:
    html = "<p>x</p><script>setInterval(() => document.body.append(1), 50)</script>"
    await page.do(do.Goto(url=page_at("live.html", html)))
    seen = []
    async for picture in page.host.watch(page.number):
        seen.append(picture[:2])
        if len(seen) == 3:
            await page.close()
    assert len(seen) >= 3
    assert set(seen) == {b"\xff\xd8"}
