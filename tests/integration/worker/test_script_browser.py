"""`ctx.browser` from a real child through a real browser to a real site, and what is left of it."""

import asyncio
import re
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from scrapeyard.cli.runs.local import LocalYard, open_yard
from scrapeyard.engines.browser.engine import Browsers
from scrapeyard.engines.browser.found import find_browser
from scrapeyard.model import ExitReason, Outcome
from scrapeyard.settings import Settings
from tests.contract.sandboxes import eventually
from tests.integration.worker.test_county_example import county
from tests.services.ports import free_port
from tests.sites.site import Asked, Site, never, page

ROOT = Path(__file__).parents[3]
_MISSING = find_browser(Settings().browser).missing
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.browser,
    pytest.mark.skipif(bool(_MISSING), reason=f"it needs a browser: {_MISSING}"),
]

HOME = b"""<!doctype html><title>Shop</title><h1>Shop</h1>
<form id=login method=post action=/login><input name=user><input type=checkbox name=keep>
<select name=lang><option value=en>English<option value=de>Deutsch</select><input type=file name=photo>
<button>Log in</button></form>
<iframe src=/inner></iframe><a id=new href=/inner target=_blank>new</a><a id=file href=/data.csv download>file</a>
<ul></ul><button id=more onclick=more()>More</button>
<script>
console.warn("a warning of the page");
async function more() {
  const found = await (await fetch("/api/items.json")).json();
  for (const name of found) document.querySelector("ul").innerHTML += `<li><b>${name}</b></li>`;
}
more();
</script>"""
ITEMS = '["kettle", "caf\u00e9"]'.encode()


async def login(asked: Asked, writer: asyncio.StreamWriter) -> None:
    head = "HTTP/1.1 303 See\r\nLocation: /account\r\nSet-Cookie: user=ada; Max-Age=600\r\nContent-Length: 0\r\n\r\n"
    writer.write(head.encode())


async def account(asked: Asked, writer: asyncio.StreamWriter) -> None:
    body = f"<title>Account</title><p>{asked.headers.get('cookie', 'nobody')}</p>".encode()
    await page(body, content_type="text/html")(asked, writer)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        html = {"content_type": "text/html; charset=utf-8"}
        site.routes["/"] = page(HOME, **html)
        site.routes["/inner"] = page(b"<title>Inner</title><button onclick='this.textContent=1'>inner</button>", **html)
        site.routes["/api/items.json"] = page(ITEMS, content_type="application/json")
        site.routes["/data.csv"] = page(b"a,b\n1,2\n", content_type="text/csv")
        site.routes["/login"] = login
        site.routes["/account"] = account
        site.routes["/never"] = never
        site.routes["/missing"] = page(b"<h1>none</h1>", status=404, **html)
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def yard(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalYard]:
    folder = tmp_path_factory.mktemp("browser")
    settings = Settings.model_validate({"data_dir": folder / "data", "http": {"allow_private": True}})
    async with open_yard(settings) as yard:
        yield yard


async def run(yard: LocalYard, folder: Path, body: str, limits: str = "", **given: Any) -> Outcome:
    """A run of a script with this body; `page` is a page in the browser, and `site` an argument."""
    folder = folder / "scraper"
    folder.mkdir(exist_ok=True)
    (folder / "scraper.toml").write_text(
        f'id = "test/browser"\nversion = "1.0.0"\n[limits]\nmemory_mb = 512\n{limits or "wall_seconds = 120"}\n'
    )
    kind, with_ = ("async def", "async with") if "await" in body else ("def", "with")
    source = f"{kind} run(ctx, site, options={{}}):\n    {with_} ctx.browser(**{{'timeout': 60, **options}}) as page:\n"
    (folder / "scraper.py").write_text(source + textwrap.indent(body, "        ") + "\n")
    _, outcome = await yard.run(yard.load(folder), given)
    return outcome


def result(outcome: Outcome) -> Any:
    assert outcome.exit_reason is ExitReason.SUCCEEDED, outcome.error
    return msgspec.json.decode(outcome.result or b"null")


async def browsers(yard: LocalYard) -> Browsers:
    found = (await yard.engine()).browsers
    assert isinstance(found, Browsers)
    return found


async def test_a_page_is_read_when_its_scripts_have_run(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    body = """
answer = await page.goto(site)
await page.wait_for_selector("li", count=2)
found = await page.page()
[api] = await page.responses("*/api/*")
records = await page.extract("li", {"name": "b::text", "none": "i::text"})
return [answer.status, await page.title(), await page.query_all("li"), found.css("li b::text").getall(), records,
        api.status, api.json(), found.url, await page.url()]
"""
    outcome = await run(yard, tmp_path, body, site=site.url())
    names = ["kettle", "café"]
    records = [{"name": name, "none": None} for name in names]
    assert result(outcome) == [200, "Shop", names, names, records, 200, names, site.url(), site.url()]
    assert [(trace.url, trace.status, trace.way) for trace in outcome.fetches] == [(site.url(), 200, "browser")]
    assert (outcome.usage.fetches, outcome.usage.browser_pages) == (1, 1)
    assert outcome.usage.bytes_received > len(HOME)


async def test_a_page_that_a_click_opens_counts_as_a_fetch(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    body = """
await page.goto(site)
await page.click("#login button")
await page.wait_for_url("**/account")
return await page.title()
"""
    outcome = await run(yard, tmp_path, body, site=site.url())
    assert result(outcome) == "Account"
    assert [(trace.url, trace.status) for trace in outcome.fetches] == [(site.url(), 200), (site.url("/account"), 200)]
    assert (outcome.usage.fetches, outcome.usage.browser_pages) == (2, 2)


async def test_the_console_is_logged_on_request(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    body = "page.goto(site)\npage.wait_for_selector('li')"
    outcome = await run(yard, tmp_path, body, site=site.url(), options={"console": True})
    assert result(outcome) is None
    assert "a warning of the page" in [line.text for line in outcome.logs if line.level == "warning"]


async def test_a_plain_script_does_the_same(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    body = """
page.goto(site)
page.wait_for_response("*/api/*")
page.click("#more")
page.wait_for_selector("li", count=4)
shown = page.frame("iframe")
shown.click("button")
return [page.count("li"), shown.text("button"), shown.title(), page.evaluate("n => n + 1", 1)]
"""
    assert result(await run(yard, tmp_path, body, site=site.url())) == [4, "1", "Inner", 2]


async def test_forms_files_tabs_and_pictures(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    body = """
await page.goto(site)
await page.fill("[name=user]", "ada")
await page.check("[name=keep]")
chosen = await page.select_option("[name=lang]", "Deutsch")
await page.set_input_files("[name=photo]", ("me.png", b"PNG"))
files = await page.evaluate("[...document.querySelector('[name=photo]').files].map(f => [f.name, f.size])")
name, data = await page.download("#file", save_as="kept.csv")
await page.click("#new")
tab = await page.wait_for_tab()
title = await tab.title()
await tab.close()
picture = await page.screenshot(save_as="page.png")
paper = await page.pdf()
return [chosen, files, name, data.decode(), title, len(await page.tabs()), picture[1:4].decode(), paper[:4].decode()]
"""
    outcome = await run(yard, tmp_path, body, site=site.url())
    assert result(outcome) == [["de"], [["me.png", 3]], "data.csv", "a,b\n1,2\n", "Inner", 1, "PNG", "%PDF"]
    assert {kept.name: kept.content_type for kept in outcome.artifacts} == {
        "kept.csv": "text/csv",
        "page.png": "image/png",
    }


async def test_a_session_is_shared_with_fetches_and_kept(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    log_in = """
await page.goto(site)
await page.click("text=Log in")
await page.wait_for_url("**/account")
return [await page.text("p"), [each["name"] for each in await page.cookies()]]
"""
    session = {"session": "shop"}
    found = result(await run(yard, tmp_path, log_in, site=site.url(), options=session))
    assert found == ["user=ada", ["user"]]
    again = 'page.goto(site + "account")\nreturn page.text("p")'
    assert result(await run(yard, tmp_path, again, site=site.url(), options=session)) == "user=ada"
    assert result(await run(yard, tmp_path, again, site=site.url())) == "nobody"
    fetched = 'return ctx.fetch(site + "account", session="shop").text("p")'
    assert result(await run(yard, tmp_path, fetched, site=site.url())) == "user=ada"


async def test_a_fetch_by_browser(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    body = """
found = await ctx.fetch(site, engine="browser", wait_for="li", screenshot=True, block=["image"])
return [found.status, found.css("li b::text").getall(), found.way]
"""
    outcome = await run(yard, tmp_path, body, site=site.url())
    assert result(outcome) == [200, ["kettle", "café"], "browser"]
    assert [(kept.name, kept.content_type) for kept in outcome.artifacts] == [("screenshot.png", "image/png")]


@pytest.mark.parametrize(
    ("body", "reason", "words"),
    [
        ("page.goto(site); page.click('#none', timeout=0.2)", ExitReason.BROWSER_TIMEOUT, "#none"),
        ("page.goto(site); page.evaluate('nothing.at.all')", ExitReason.BROWSER_STEP, "nothing"),
        ("page.goto(site + 'never', timeout=0.5)", ExitReason.BROWSER_TIMEOUT, "never"),
        ("page.goto('http://127.0.0.1:PORT/')", ExitReason.FETCH_CONNECT, "127.0.0.1"),
        ("page.goto('file:///etc/passwd')", ExitReason.FETCH_BAD_URL, "file:"),
        ("page.goto(site); page.evaluate('while (true);', timeout=1)", ExitReason.BROWSER_TIMEOUT, "evaluate"),
    ],
)
async def test_failures_have_their_reason(
    yard: LocalYard, site: Site, tmp_path: Path, body: str, reason: ExitReason, words: str
) -> None:
    outcome = await run(yard, tmp_path, body.replace("PORT", str(free_port())), site=site.url())
    assert outcome.exit_reason is reason, outcome.error
    assert outcome.error is not None
    assert outcome.error.type == "BrowserError"
    assert words in outcome.error.message
    assert (await browsers(yard)).open_now == 0


async def test_a_failure_leaves_a_picture_and_no_status_is_an_error(
    yard: LocalYard, site: Site, tmp_path: Path
) -> None:
    body = "answer = page.goto(site + 'missing')\nassert answer.status == 404\npage.click('#none', timeout=0.2)"
    outcome = await run(yard, tmp_path, body, site=site.url())
    assert outcome.exit_reason is ExitReason.BROWSER_TIMEOUT, outcome.error
    assert [kept.name for kept in outcome.artifacts] == ["failure.png"]


@pytest.mark.parametrize("limits", ["wall_seconds = 3", "cpu_seconds = 2"])
async def test_a_run_that_is_ended_leaves_no_context(yard: LocalYard, site: Site, tmp_path: Path, limits: str) -> None:
    body = "while True: pass" if "cpu" in limits else "page.wait(100)"
    outcome = await run(yard, tmp_path, body, limits, site=site.url())
    assert outcome.exit_reason in (ExitReason.TIMEOUT, ExitReason.CPU_LIMIT)
    assert (await browsers(yard)).open_now == 0


async def test_a_cancelled_run_leaves_no_context(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    engine = await browsers(yard)
    running = asyncio.create_task(run(yard, tmp_path, "page.goto(site)\npage.wait(100)", site=site.url()))
    await eventually(lambda: engine.open_now == 1)
    running.cancel()
    await asyncio.wait((running,))
    assert engine.open_now == 0


async def test_pages_are_bounded_by_the_limit_on_fetches(yard: LocalYard, site: Site, tmp_path: Path) -> None:
    body = "for _ in range(3): page.goto(site)"
    outcome = await run(yard, tmp_path, body, "fetches = 2", site=site.url())
    assert outcome.exit_reason is ExitReason.FETCH_LIMIT


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop() -> AsyncIterator[str]:
    async with county() as address:
        yield address


GUIDE = [
    block
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "browser.md").read_text("utf-8"), re.DOTALL)
    if "def run(" in block
]
FOUND = [12, 1, 24, 1, 60]
"""Records, or keys, that each script of the guide returns."""


@pytest.mark.parametrize(("script", "found"), list(zip(GUIDE, FOUND, strict=True)))
async def test_the_scripts_of_the_guide_run(
    yard: LocalYard, shop: str, tmp_path: Path, script: str, found: int
) -> None:
    (tmp_path / "scraper.toml").write_text('id = "test/guide"\nversion = "1.0.0"\n[limits]\nwall_seconds = 120\n')
    (tmp_path / "scraper.py").write_text(script)
    _, outcome = await yard.run(yard.load(tmp_path), {"url": shop})
    assert len(result(outcome)) == found


async def test_the_example_scrolls_to_the_end(yard: LocalYard, shop: str) -> None:
    scraper = yard.load(ROOT / "examples" / "scrapers" / "browser" / "endless")
    _, outcome = await yard.run(scraper, {"url": f"{shop}/endless"})
    found = result(outcome)
    assert len(found) == 60
    assert found[0]["url"].startswith(f"{shop}/product/")
