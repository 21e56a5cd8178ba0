"""Scrapers as classes, and plain functions to read HTML: a thin layer over `run(ctx, …)`.

    from scrapeyard_sdk import BaseHttpScraper, ScraperError, extract_text, parse_html

    class Assessor(BaseHttpScraper):
        async def scrape(self, input: dict) -> dict:
            page = await self.get("https://assessor.example/parcel", params={"id": input["parcel_id"]})
            status = extract_text(parse_html(page), ".parcel .status")
            if status is None:
                raise ScraperError("no such parcel", "non_retryable")
            return {"status": status}

The manifest names the class: `entry = "scraper.py:Assessor"`. Each run gets a new object.
"""

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from scrapeyard_sdk.checks import CheckFailed
from scrapeyard_sdk.node import Node
from scrapeyard_sdk.page import Page

if TYPE_CHECKING:
    from typing import Unpack

    from scrapeyard_sdk.browser.calls import BrowserOptions
    from scrapeyard_sdk.fetch import FetchOptions


WHOLE_INPUT = ("input", "inputs")
"""Names of the only parameter of `scrape` that gets the whole input."""


class BaseScraper:
    """A scraper as a class. `scrape` is a method of any kind that `run` may be: `async def` or `def`, with `return` or
    `yield`. If its only parameter is called `input`, it gets the whole input; otherwise the input's fields by name.
    """

    ctx: Any
    """The run's `Context`, or its `SyncContext` if `scrape` is a plain `def`. It is set before anything is called."""

    @property
    def config(self) -> dict[str, Any]:
        """The manifest's `[config]`."""
        return dict(self.ctx.config)

    def log(self, message: str, level: str = "info", **fields: Any) -> None:
        """Write a line to the run's log, with fields."""
        self.ctx.log(message, level, **fields)

    def validate_input(self, input: dict[str, Any]) -> bool | None:  # noqa: A002 - the field's own word
        """Called before `scrape`. Return False or raise ValueError to end the run as `bad_input`."""

    def scrape(self, *given: Any, **fields: Any) -> Any:
        """Get the data. Every scraper has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no method scrape")

    def validate_result(self, result: Any) -> Any:
        """Called with the result, or with each record of a generator. Return a corrected one, or None to leave it as it
        is; raise to end the run as `bad_result`."""


class BaseHttpScraper(BaseScraper):
    """A scraper that gets its pages by HTTP. Await the calls in an `async def scrape`."""

    def fetch(self, url: str, **options: "Unpack[FetchOptions]") -> Any:
        """Get a page of any status. Options and errors as in `Context.fetch`."""
        return self.ctx.fetch(url, **options)

    def get(self, url: str, **options: "Unpack[FetchOptions]") -> Any:
        """Get a page of a status below 400. Any other status raises FetchError: 408, 425, 429 and from 500 on the run
        is tried again, otherwise it ends."""
        return _good(self.ctx.fetch(url, **options))

    def post(self, url: str, **options: "Unpack[FetchOptions]") -> Any:
        """As `get`, with the method POST: pass `form=`, `json=` or `body=`."""
        return _good(self.ctx.fetch(url, **{**options, "method": "POST"}))


class BasePlaywrightScraper(BaseHttpScraper):
    """A scraper that opens pages in a browser, whose methods have Playwright's names."""

    browser_options: ClassVar["BrowserOptions"] = {}
    """What every page of this scraper is opened with; the options of a call come on top."""

    def browser(self, **options: "Unpack[BrowserOptions]") -> Any:
        """A page: `async with self.browser() as page:`, or `with` in a plain `scrape`. Options and errors as in
        `Context.browser`."""
        return self.ctx.browser(**{**self.browser_options, **options})


def _good(answer: Page | Awaitable[Page]) -> Page | Awaitable[Page]:
    return answer.raise_for_status() if isinstance(answer, Page) else _awaited(answer)


async def _awaited(answer: Awaitable[Page]) -> Page:
    return (await answer).raise_for_status()


def parse_html(html: Page | str | bytes, url: str = "") -> Page:
    """A page to select from. `url` makes its relative links absolute; a fetched page stays as it is."""
    if isinstance(html, Page):
        return html
    body = html.encode("utf-8", "replace") if isinstance(html, str) else bytes(html)
    return Page(url=url, status=200, body=body)


@overload
def select_one(root: Page | Node, selector: str, *, required: Literal[True]) -> Node: ...


@overload
def select_one(root: Page | Node, selector: str, *, required: bool = False) -> Node | None: ...


def select_one(root: Page | Node, selector: str, *, required: bool = False) -> Node | None:
    """The first element that the CSS selector matches; None if there is none. Raises CheckFailed instead if it is
    `required`."""
    found = root.css_first(selector)
    if found is None and required:
        raise CheckFailed(f"no element matches {selector[:100]!r}", [selector])
    return found


def extract_text(root: Page | Node | None, selector: str | None = None, default: str | None = None) -> str | None:
    """The text of the first match on one line, or of the element itself without a selector; `default` if there is none.

    None for `root` gives the default, so `extract_text(select_one(page, ".a"), ".b")` needs no check in between.
    """
    if root is None:
        return default
    if selector is None:
        text = root.text()
        return default if text is None else text
    found = root.css_first(selector)
    return default if found is None else found.text()


class ClassEntry:
    """Calls a scraper class as if it were a function: a new object for each run. One run at a time."""

    def __init__(self, scraper: type[Any]) -> None:
        self._class = scraper
        self._current: Any = None

    def __call__(self, ctx: Any, *given: Any, **fields: Any) -> Any:
        """What its `scrape` returns."""
        scraper = self._begin(ctx)
        return scraper.scrape(*given, **fields)

    def whole(self, ctx: Any) -> Any:
        """The same, for a `scrape` that takes the whole input."""
        scraper = self._begin(ctx)
        return scraper.scrape(dict(ctx.input))

    def validate(self, result: Any) -> Any:
        """The object's own `validate_result`."""
        return self._current.validate_result(result)

    def _begin(self, ctx: Any) -> Any:
        scraper = self._current = self._class()
        scraper.ctx = ctx
        _check_input(scraper, ctx.input)
        return scraper


class InputRefused(Exception):
    """The scraper's `validate_input` refused the input."""


def _check_input(scraper: Any, given: Mapping[str, Any]) -> None:
    check = getattr(scraper, "validate_input", None)
    if check is None:
        return
    try:
        answer = check(dict(given))
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise InputRefused(f"validate_input: {type(error).__name__}: {error}") from error
    if answer is False:
        raise InputRefused("validate_input refused the input")
