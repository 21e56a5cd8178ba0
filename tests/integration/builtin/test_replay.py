"""`builtin/replay` in a real browser: the flows of puppeteer/replay, and recordings that people exported."""

import functools
import json
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from scrapeyard.builtin.replay.player import run_replay
from scrapeyard.errors import FetchFailed
from tests.services.browser_contexts import LocalBrowser, local_browser
from tests.services.threads import ThreadedServer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
DATA = Path(__file__).parents[2] / "data" / "recordings"
FLOWS: list[dict[str, Any]] = json.loads((DATA / "flows.json").read_text("utf-8"))


class QuietFiles(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing on stderr."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[LocalBrowser]:
    async with local_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages() -> Iterator[int]:
    """The port of the flows' pages."""
    with serving(functools.partial(QuietFiles, directory=str(DATA / "pages"))) as port:
        yield port


class serving:  # noqa: N801  it is used as a function
    """A server of this handler on a free port, which is given."""

    def __init__(self, handler: Any) -> None:
        self._server = ThreadedServer(handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> int:
        self._thread.start()
        return int(self._server.server_address[1])

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def as_step(check: dict[str, Any]) -> dict[str, Any]:
    """A check as one more step of the recording."""
    if "frame_url" in check:
        return {"type": "waitForExpression", "target": check["frame_url"], "expression": "true"}
    found, wanted = (check["js"], check["equals"]) if "js" in check else ("location.href", check["url"])
    return {"type": "waitForExpression", "expression": f"({found}) === {json.dumps(wanted)}"}


@pytest.mark.parametrize("flow", FLOWS, ids=[f"{at}-{flow['name']}" for at, flow in enumerate(FLOWS)])
async def test_every_flow_of_puppeteer_ends_as_its_checks_say(
    browser: LocalBrowser, pages: int, flow: dict[str, Any]
) -> None:
    origins = {"{{HTTP}}": f"http://localhost:{pages}", "{{OOPIF}}": f"http://oopifdomain:{pages}"}
    text = json.dumps(flow)
    for place, origin in origins.items():
        text = text.replace(place, origin)
    flow = json.loads(text)
    recording = flow["flow"]
    if {"must_fail": True} in flow["checks"]:
        with pytest.raises(FetchFailed, match=r"steps\[1\] \(click\): no element for \.not-found"):
            await run_replay(browser.services(), recording)
        return
    own = len(recording["steps"])
    recording["steps"] += [as_step(check) for check in flow["checks"]]
    result = await run_replay(browser.services(), recording)
    assert [step["do"] for step in result["steps"][:own]] == [step["type"] for step in recording["steps"][:own]]
    assert all(step["ok"] for step in result["steps"])


async def test_a_failing_step_shows_the_page(browser: LocalBrowser, pages: int) -> None:
    browser.files.clear()
    steps = [
        {"type": "navigate", "url": f"http://localhost:{pages}/input.html"},
        {"type": "change", "selectors": ["#one"], "value": "my-secret"},
        {"type": "waitForElement", "selectors": ["#none"], "timeout": 300},
        {"type": "close"},
    ]
    with pytest.raises(FetchFailed) as failed:
        await run_replay(browser.services(), {"title": "t", "steps": steps})
    assert failed.value.reason == "browser_timeout"
    assert failed.value.details["step"] == "steps[2]"
    assert failed.value.details["url"] == steps[0]["url"]
    assert [step["ok"] for step in failed.value.details["steps"]] == [True, True, False]
    assert browser.files["failure.png"].startswith(b"\x89PNG")
    assert b'id="partially-prefilled"' in browser.files["failure.html"]
    assert "my-secret" not in json.dumps(failed.value.details) + failed.value.message


async def test_another_page_than_recorded_is_a_note_or_a_failure(browser: LocalBrowser, pages: int) -> None:
    main = f"http://localhost:{pages}/main.html"
    moved = [{"type": "navigation", "url": f"{main}?recorded", "title": ""}]
    steps = [
        {"type": "navigate", "url": main},
        {"type": "click", "selectors": [["text/Page 2"]], "offsetX": 3, "offsetY": 3, "assertedEvents": moved},
    ]
    result = await run_replay(browser.services(), {"title": "t", "steps": steps})
    assert result["url"].endswith("/main2.html")
    assert "recorded was" in result["steps"][1]["note"]
    with pytest.raises(FetchFailed, match="the URL is"):
        await run_replay(browser.services(), {"title": "t", "steps": steps, "strict": True})


async def test_a_recorded_navigation_that_does_not_happen_fails(browser: LocalBrowser, pages: int) -> None:
    steps = [
        {"type": "navigate", "url": f"http://localhost:{pages}/main.html"},
        {
            "type": "click",
            "selectors": ["#test"],
            "timeout": 1000,
            "assertedEvents": [{"type": "navigation", "url": "", "title": ""}],
        },
    ]
    with pytest.raises(FetchFailed, match="no other page was opened"):
        await run_replay(browser.services(), {"title": "t", "steps": steps})


ENDS = {
    "WalMart Product.json": "/checkout",
    "WebPageTest Config.json": "/",
    "simple-recording-new-format.json": "/read/2019/good-to-go/",
    "simple-recording.json": "/talks/",
    "singlestep.json": "/",
    "splunk-online-boutique.json": "/cart/checkout",
}


class Sites(QuietFiles):
    """Pages that fit the recordings: a folder for each host."""

    def translate_path(self, path: str) -> str:
        host = self.headers.get("Host", "").partition(":")[0]
        return str(DATA / "sites" / host / f"{urlsplit(path).path.strip('/') or 'index'}.html")


@pytest.fixture(scope="module")
def sites() -> Iterator[int]:
    with serving(Sites) as port:
        yield port


@pytest.mark.parametrize("name", sorted(path.name for path in (DATA / "real").glob("*.json")))
async def test_recordings_of_people_replay_on_pages_that_fit(browser: LocalBrowser, sites: int, name: str) -> None:
    text = (DATA / "real" / name).read_text("utf-8")
    for host in (DATA / "sites").iterdir():
        text = text.replace(f"https://{host.name}", f"http://{host.name}:{sites}")
    result = await run_replay(browser.services(), json.loads(text))
    assert urlsplit(result["url"]).path == ENDS[name]
    assert not [step["note"] for step in result["steps"] if "URL" in step.get("note", "")]
