"""`builtin/list` with a button that loads more: what is kept of a page that changes, and why it stops.

A page that answers each operation stands for the browser, whose own road is tried in
`tests/integration/roads/test_browser_road.py`.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from scrapeyard.builtin import pressing
from scrapeyard.builtin.services import Services
from scrapeyard.engines.browser import operations as do
from scrapeyard.engines.browser.port import ContextOptions, Done, Perform
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed, InputInvalid
from scrapeyard.model import ExitReason
from scrapeyard.repository.manifest.json_schemas import InputChecker
from tests.page_builtins import BUILTINS

LIST = BUILTINS["builtin/list"]
URL = "https://shop.example/list"
BUTTON = "<button id=more>Load more</button>"


def shown(*numbers: int, note: str = "new") -> str:
    cards = (
        f"<li><h3><a href=/p/{n}>Thing number {n}</a></h3><b>€{n}.50</b><i class=age>{note} {n}</i></li>"
        for n in numbers
    )
    return f"<ul>{''.join(cards)}</ul>"


class _Page:
    """Shows the next of its states at each press."""

    def __init__(self, *states: str, **answers: Any) -> None:
        self._states = states
        self._answers = {"text": "Load more", **answers}
        self.presses = 0
        self.url = URL

    @property
    def _html(self) -> str:
        return f"<body><main>{self._states[min(self.presses, len(self._states) - 1)]}</main></body>"

    async def perform(self, operation: do.AnyOperation, _raw: bytes = b"") -> Done:
        match operation:
            case do.Goto():
                return _done({"url": URL, "status": 200, "headers": {"content-type": "text/html"}})
            case do.Content():
                return Done(_done({"url": self.url, "status": 200, "type": "text/html"}).value, self._html.encode())
            case do.WaitFor() if "id=more" not in self._html:
                raise FetchFailed(ExitReason.BROWSER_TIMEOUT, "it is not seen")
            case do.Read():
                return _done([self._answers.get(operation.what)])
            case do.Evaluate():
                return _done([10, len(self._html)])
            case do.Click():
                self._press()
        return Done()

    def _press(self) -> None:
        self.presses += 1
        if self.presses >= self._answers.get("fails_at", 1000):
            raise FetchFailed(ExitReason.BROWSER_CRASHED, "the page died")
        self.url = self._answers.get("leads_to", URL)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        return FetchResponse(
            url=request.url,
            status=200,
            headers=(("content-type", "text/html"),),
            body=self._html.encode(),
            encoding="utf-8",
            elapsed_ms=1.0,
        )

    @asynccontextmanager
    async def open(self, _options: ContextOptions) -> AsyncIterator[Perform]:
        yield self.perform

    async def listed(self, **given: Any) -> dict[str, Any]:
        asked = {"url": URL, "more": "auto", **given}
        assert not InputChecker().errors(LIST.scraper, asked)
        found = await LIST.run(Services(fetch=self.fetch, open_browser=self.open), asked)
        assert not InputChecker().output_errors(LIST.scraper, found)
        return found


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page here answers at once or never."""
    monkeypatch.setattr(pressing, "_ANSWER_SECONDS", 0.05)


def _done(value: Any) -> Done:
    return Done(msgspec.Raw(msgspec.json.encode(value)))


def numbers(found: dict[str, Any]) -> list[int]:
    return [int(record["url"].rpartition("/")[2]) for record in found["records"]]


async def test_a_list_that_grows_is_read_once_though_its_records_change() -> None:
    page = _Page(
        shown(1, 2, 3) + BUTTON,
        shown(1, 2, 3, 4, 5, note="older") + BUTTON,
        shown(1, 2, 3, 4, 5, 6, note="oldest"),
    )
    found = await page.listed()
    assert numbers(found) == [1, 2, 3, 4, 5, 6]
    assert {record["age"] for record in found["records"]} == {f"oldest {n}" for n in range(1, 7)}
    assert [each["records"] for each in found["pages"]] == [3, 2, 1]
    assert (found["stopped"], found["complete"], found["warnings"]) == ("button_gone", True, [])


async def test_a_press_that_replaces_the_records_keeps_those_before() -> None:
    page = _Page(shown(1, 2, 3) + BUTTON, shown(4, 5, 6) + BUTTON, shown(4, 5, 6, 7, 8) + BUTTON, shown(8, 9, 10))
    found = await page.listed(more="#more")
    assert numbers(found) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert found["complete"]


async def test_a_record_that_comes_twice_is_kept_once() -> None:
    found = await _Page(shown(1, 2, 3) + BUTTON, shown(1, 2, 3, 3, 4)).listed()
    assert numbers(found) == [1, 2, 3, 4]


STOPS: list[tuple[str, Callable[[], _Page], dict[str, Any], list[int], str]] = [
    ("end", lambda: _Page(shown(1, 2, 3)), {"more": "#more"}, [1, 2, 3], "matches `more`"),
    ("no_new_records", lambda: _Page(shown(1, 2, 3) + BUTTON), {}, [1, 2, 3], "no new records"),
    ("pages", lambda: _Page(shown(1, 2) + BUTTON, shown(1, 2, 3) + BUTTON), {"pages": 2}, [1, 2, 3], "goes on"),
    ("limit", lambda: _Page(shown(1, 2) + BUTTON, shown(1, 2, 3, 4)), {"limit": 3}, [1, 2, 3], "goes on"),
    ("limit", lambda: _Page(shown(1, 2) + BUTTON, shown(1, 2, 3) + BUTTON), {"limit": 3}, [1, 2, 3], "goes on"),
    ("failed", lambda: _Page(shown(1, 2) + BUTTON, shown(1, 2, 3) + BUTTON, fails_at=2), {}, [1, 2, 3], "died"),
    ("failed", lambda: _Page(shown(1, 2) + BUTTON, shown(8, 9), leads_to="https://x.example/"), {}, [1, 2], "another"),
    ("not_pressed", lambda: _Page(shown(1, 2) + BUTTON), {"more": "never"}, [1, 2], "`more`: `auto`"),
]


@pytest.mark.parametrize(("stopped", "page", "given", "expected", "warning"), STOPS)
async def test_why_it_stops(
    stopped: str, page: Callable[[], _Page], given: dict[str, Any], expected: list[int], warning: str
) -> None:
    found = await page().listed(**given)
    assert (found["stopped"], numbers(found)) == (stopped, expected)
    assert (found["complete"], found["next_page"]) == (stopped == "end", None)
    assert warning in " ".join(found["warnings"])


async def test_the_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pressing, "MAX_SECONDS", 0.0)
    found = await _Page(shown(1, 2, 3) + BUTTON, shown(1, 2, 3, 4) + BUTTON).listed()
    assert (found["stopped"], numbers(found)) == ("seconds", [1, 2, 3])


async def test_a_button_that_changed_its_words_is_not_pressed() -> None:
    page = _Page(shown(1, 2, 3) + BUTTON, shown(1, 2, 3, 4), text="Buy now")
    await page.listed()
    assert page.presses == 0


async def test_a_given_button_that_sends_a_form_is_refused() -> None:
    page = _Page(shown(1, 2, 3) + BUTTON, **{".form.tagName": "FORM", ".type": "submit"})
    with pytest.raises(FetchFailed, match="sends a form"):
        await page.listed(more="#more")
    assert page.presses == 0


@pytest.mark.parametrize("given", [{"engine": "http"}, {"engine": "light"}, {"method": "POST"}, {"body": "x"}])
async def test_only_a_browser_that_opens_pages_with_get_presses(given: dict[str, Any]) -> None:
    with pytest.raises(InputInvalid):
        await _Page(shown(1, 2, 3) + BUTTON).listed(**given)
