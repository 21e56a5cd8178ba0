"""`shell`: a prompt with a page, without a server."""

from collections.abc import Iterator

import pytest

from scrapeyard.engines.browser.found import find_browser
from scrapeyard.settings import Settings
from tests.integration.cli_stand import Stand

_MISSING = find_browser(Settings().browser).missing


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    stand = Stand(tmp_path_factory.mktemp("shell"))
    yield stand
    assert list(stand.temporary.iterdir()) == [], "a command left temporary files"


@pytest.fixture(scope="module")
def shop(stand: Stand) -> Iterator[str]:
    with stand.serving("demo-site", "--port", "0", says=b"open at ") as url:
        yield url.rstrip("/")


def test_a_page_is_tried_and_more_are_fetched(stand: Stand, shop: str) -> None:
    lines = f"""
print(page.status, page.text("h1"))
other = await ctx.fetch("{shop}/product/2")
print(other.text("h1"))
print(fetch("{shop}/status/404").status)
ctx.log("seen", pages=3)
"""
    ended = stand.cli("shell", f"{shop}/product/1", "--allow-private", stdin=lines)
    assert (ended.status, ended.out.split("\n")[:3]) == (0, ["200 Aurora Lamp", "Aurora Lantern", "404"]), ended.err
    assert "[info] seen pages=3" in ended.err


def test_an_error_shows_what_was_typed_and_the_shell_goes_on(stand: Stand) -> None:
    typed = ('fetch("http://127.0.0.1:9/")', 'await ctx.artifact("a.txt", "x")', 'raise ValueError("mine")')
    lines = "".join(f"{line}\n" for line in (*typed, 'print("still here")'))
    ended = stand.cli("shell", "--allow-private", stdin=lines)
    assert (ended.status, ended.out.strip()) == (0, "still here")
    assert "FetchError: cannot connect to 127.0.0.1:9" in ended.err
    assert "keeps no artifacts" in ended.err
    assert "ValueError: mine" in ended.err
    assert "scrapeyard/cli" not in ended.err


def test_a_page_that_cannot_be_had_is_told(stand: Stand) -> None:
    ended = stand.cli("shell", "http://127.0.0.1:9/", "--allow-private", stdin="print(page)\n")
    assert (ended.status, ended.out.strip()) == (0, "None")
    assert "cannot connect" in ended.err


@pytest.mark.browser
@pytest.mark.skipif(bool(_MISSING), reason=f"it needs a browser: {_MISSING}")
def test_a_page_in_a_browser_is_tried(stand: Stand, shop: str) -> None:
    lines = f"""
tab = await ctx.browser(timeout=60).__aenter__()
print((await tab.goto("{shop}/scripted")).status)
await tab.wait_for_selector(".product-card")
print(await tab.count(".product-card"))
await tab.goto("file:///etc/passwd")
"""
    ended = stand.cli("shell", "--allow-private", stdin=lines)
    assert (ended.status, ended.out.split("\n")[:2]) == (0, ["200", "12"]), ended.err
    assert "BrowserError: file:///etc/passwd is no http or https URL" in ended.err
