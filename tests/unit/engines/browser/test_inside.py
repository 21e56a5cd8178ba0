"""What the browser's process decides without a browser: selectors, patterns, failures, blocked hosts, addresses."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import cv2
import numpy as np
import pytest
from pyee import EventEmitter

from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.inside.blocking import is_tracker
from scrapeyard.engines.browser.inside.film import Film
from scrapeyard.engines.browser.inside.steps.failures import explain
from scrapeyard.engines.browser.inside.steps.navigating import check_url
from scrapeyard.engines.browser.inside.steps.performing import ACTING, CONTEXT_WIDE, PERFORMERS
from scrapeyard.engines.browser.inside.steps.selectors import read_pattern, read_selector
from scrapeyard.engines.browser.inside.steps.step import Step, describe
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason


def test_every_operation_is_performed() -> None:
    everything = set(get_args(do.AnyOperation))
    assert set(PERFORMERS) == everything
    assert everything >= ACTING | CONTEXT_WIDE


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#a", "#a"),
        ("div > p", "div > p"),
        ("a[href='/x/y']", "a[href='/x/y']"),
        ("text=Go", "text=Go"),
        ("//p[1]", "//p[1]"),
        ("xpath///p", "xpath=//p"),
        ("pierce/#a", "#a"),
        ('text/Say "hi"', 'internal:text="Say \\"hi\\""i'),
        ('aria/Go[role="button"]', 'internal:role=button[name="Go"s]'),
        ('aria/[role="main"]', "internal:role=main"),
        ('aria/Go[role="StaticText"]', 'internal:text="Go"s'),
        ("x-a >>> x-b >>> #c", "x-a >> x-b >> #c"),
        ("x-a >> aria/Go[role='link']", 'x-a >> internal:role=link[name="Go"s]'),
    ],
)
def test_selectors(text: str, found: str) -> None:
    assert read_selector(text) == found


def test_a_name_alone_is_looked_for_in_every_role() -> None:
    found = read_selector("aria/Go")
    assert found.startswith('internal:role=button[name="Go"s] >> internal:or=')
    assert "internal:role=link" in found


def test_an_empty_part_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        read_selector("#a >>> pierce/")


@pytest.mark.parametrize(
    ("pattern", "url", "fits"),
    [
        ("**", "http://a/b", True),
        ("http://a/*", "http://a/b", True),
        ("http://a/*", "http://a/b/c", False),
        ("http://a/**", "http://a/b/c", True),
        ("*/api", "http://a/b/api", True),
        ("*/api", "http://a/b/api?x", False),
        ("*/api?*", "http://a/b/api?x", True),
        ("http://a.b/", "http://axb/", False),
    ],
)
def test_patterns(pattern: str, url: str, fits: bool) -> None:
    assert bool(read_pattern(pattern).fullmatch(url)) is fits


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("Page.goto: net::ERR_NAME_NOT_RESOLVED at http://a/", ExitReason.FETCH_DNS),
        ("Page.goto: net::ERR_CONNECTION_REFUSED at http://a/", ExitReason.FETCH_CONNECT),
        ("Page.goto: net::ERR_CONNECTION_TIMED_OUT at http://a/", ExitReason.FETCH_TIMEOUT),
        ("Page.goto: net::ERR_TUNNEL_CONNECTION_FAILED at http://a/", ExitReason.FETCH_CONNECT),
        ("Page.goto: net::ERR_CERT_DATE_INVALID at http://a/", ExitReason.FETCH_TLS),
        ("Page.goto: net::ERR_SSL_PROTOCOL_ERROR at http://a/", ExitReason.FETCH_TLS),
        ("Page.goto: net::ERR_TOO_MANY_REDIRECTS at http://a/", ExitReason.FETCH_REDIRECTS),
        ("Page.goto: net::ERR_EMPTY_RESPONSE at http://a/", ExitReason.FETCH_PROTOCOL),
        ("Page.goto: net::ERR_CONTENT_DECODING_FAILED at http://a/", ExitReason.FETCH_DECODE),
        ("Page.goto: net::ERR_INVALID_URL at http://a/", ExitReason.FETCH_BAD_URL),
        ("Page.goto: net::ERR_ABORTED at http://a/", ExitReason.BROWSER_STEP),
        ("Page.evaluate: Target crashed", ExitReason.BROWSER_CRASHED),
        ("Locator.click: Error: strict\nCall log:\n  - waiting", ExitReason.BROWSER_STEP),
    ],
)
def test_failures(words: str, reason: ExitReason) -> None:
    failure = explain(Exception(words), "goto 'http://a/'")
    assert failure.reason is reason
    assert "\n" not in failure.message
    assert "Call log" not in failure.message


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "chrome://crash", "javascript:1", "about:config", "ftp://a/", "x", "", " file:///etc"]
)
def test_only_the_web_is_opened(url: str) -> None:
    with pytest.raises(FetchFailed) as caught:
        check_url(url)
    assert caught.value.reason is ExitReason.FETCH_BAD_URL


def test_trackers_are_known_by_their_hosts() -> None:
    assert is_tracker("https://www.google-analytics.com/collect?x")
    assert is_tracker("https://stats.g.doubleclick.net/")
    assert not is_tracker("https://shop.example/google-analytics.com")
    assert not is_tracker("https://notdoubleclick.net/")


def test_an_operation_is_told_in_few_words() -> None:
    assert describe(do.Click(selector="#a")) == "click '#a'"
    assert describe(do.WaitForUrl(pattern="**/x")) == "wait_for_url '**/x'"
    assert describe(do.Content()) == "content"
    assert len(describe(do.Fill(selector="x" * 4000, text=""))) < 300


def test_a_film_is_as_long_as_what_it_shows(tmp_path: Path) -> None:
    film = Film()
    for at, shade, size in ((10.0, 0, 320), (10.2, 200, 320), (10.5, 90, 160), (12.0, 255, 320)):
        pixels = np.full((240, size, 3), shade, np.uint8)
        film.add(cv2.imencode(".jpg", pixels)[1].tobytes(), at)
    (tmp_path / "film.avi").write_bytes(film.data())
    played = cv2.VideoCapture(str(tmp_path / "film.avi"))
    assert (played.get(cv2.CAP_PROP_FPS), played.get(cv2.CAP_PROP_FRAME_COUNT)) == (5, 11)
    shades = []
    while (read := played.read())[0]:
        assert read[1].shape == (240, 320, 3), "pictures of another size are left out"
        shades.append(int(read[1][0, 0, 0]))
    assert list(dict.fromkeys(shades)) == [0, 200, 255]
    assert Film().data() == b""


async def test_a_page_that_went_elsewhere_without_an_answer_is_read_again() -> None:
    page = EventEmitter()
    tab: Any = SimpleNamespace(page=page, is_gone=False)
    context: Any = SimpleNamespace(driver=SimpleNamespace(error=RuntimeError), seconds=lambda _: 60.0)
    looks = 0

    async def look() -> str:
        nonlocal looks
        looks += 1
        if looks == 1:
            page.emit("framenavigated", None)
            await asyncio.Event().wait()
        return "found"

    assert await Step(context, tab, do.WaitForFunction(expression="true"), b"").read(look) == "found"
    assert not page.event_names()
