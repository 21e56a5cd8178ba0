"""The built-in scraper `builtin/list`: the records of a list over its pages, without selectors."""

from typing import TYPE_CHECKING, Any

import msgspec

from scrapeyard.builtin.fetching import read
from scrapeyard.builtin.pages.port import Extractor
from scrapeyard.builtin.requests import REQUEST, URL, request_of
from scrapeyard.builtin.scrapers import TABLE, TEXT, told
from scrapeyard.builtin.services import Services
from scrapeyard.engines.browser.operations import MAX_SELECTOR
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed, InputInvalid

if TYPE_CHECKING:
    from scrapeyard.builtin.pressing import Presses

MAX_PAGES = 200
MAX_RECORDS = 20_000
MAX_BYTES = 16 * 2**20
"""Of all records, as JSON."""
LIST_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": told(URL, "The first page of the list."),
        "pages": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_PAGES,
            "default": 10,
            "description": "Maximum pages: the first and those after it. A press of a button that loads more is one.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_RECORDS,
            "default": 1000,
            "description": "Maximum records.",
        },
        "more": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_SELECTOR,
            "description": "Selector of a button that loads more and has no address, for a browser to press; `auto`: "
            "the one that is found; `never`. Default: `auto` with `engine` `browser`. A button that sends a form is "
            "never pressed.",
        },
        **REQUEST,
    },
    "required": ["url"],
    "additionalProperties": False,
}
LIST_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "description": "As asked."},
        "status": {"type": "integer", "description": "What the site answered for the first page."},
        "records": {
            "type": "array",
            "items": TABLE,
            "description": "In the order of the pages, without what an earlier page had. What a record lacks is null.",
        },
        "columns": told(TABLE, "By field: its kind, and its place in a record."),
        "pages": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"url": {"type": "string"}, "records": {"type": "integer"}},
                "required": ["url", "records"],
            },
            "description": "The pages that were read, each with its number of new records.",
        },
        "next_page": told(TEXT, "Where the list goes on; null if it was read to its end."),
        "complete": {"type": "boolean", "description": "Whether the list was read to its end."},
        "stopped": {
            "type": "string",
            "enum": [
                *("end", "button_gone", "no_new_records", "not_pressed", "pages", "limit", "seconds", "failed"),
            ],
            "description": "Why it stopped: no page follows; the button that loads more is gone; a page or a press "
            "brought nothing new; there is a button, and `more` does not say to press it; a limit of pages, records "
            "or time; a page or a press failed.",
        },
        "warnings": {"type": "array", "items": {"type": "string"}, "description": "What could not be read, and why."},
    },
    "required": ["url", "status", "records", "columns", "pages", "next_page", "complete", "stopped", "warnings"],
}


class ListScraper:
    """Fetches page after page, or presses the button that loads more."""

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    async def __call__(self, services: Services, given: dict[str, Any]) -> dict[str, Any]:
        """`given` fits LIST_INPUT. Raises FetchFailed if the first page cannot be had, and InputInvalid. If a later
        page cannot be had, the result has the records before it, says so, and names the page as the next."""
        request = _request(given)
        found = _ListSoFar(given.get("limit", 1000))
        more = given.get("more", "auto" if request.engine == "browser" else "never")
        if more not in ("auto", "never"):
            first = await self._press(services, request, found, given)
            return {"url": given["url"], "status": first.status, **found.told()}
        first = await services.fetch(request)
        page = await self._add(found, first)
        button = (page.get("records") or {}).get("more_button")
        if not button or found.next_page or found.is_full:
            await self._follow(services, found, given)
        elif more == "auto":
            found = _ListSoFar(given.get("limit", 1000))  # the page is opened anew, and may show other records
            await self._press(services, request, found, given)
        else:
            found.complete, found.stopped = False, "not_pressed"
            found.warnings.append(_NOT_PRESSED)
        return {"url": given["url"], "status": first.status, **found.told()}

    async def _follow(self, services: Services, found: "_ListSoFar", given: dict[str, Any]) -> None:
        """Read the pages after the first, by their addresses."""
        while found.next_page and len(found.pages) < given.get("pages", 10) and not found.is_full:
            try:
                response = await services.fetch(_request({**given, "url": found.next_page}))
                if response.status >= 400:
                    found.fail(f"{found.next_page} answers {response.status}: the list ends before it")
                    return
                await self._add(found, response)
            except FetchFailed as error:
                found.fail(f"{found.next_page} could not be read: {error.message}")
                return
        if found.next_page:
            found.stopped = "limit" if found.is_full else "pages"

    async def _press(
        self, services: Services, request: FetchRequest, found: "_ListSoFar", given: dict[str, Any]
    ) -> FetchResponse:
        """Open the page in a browser and press the button that loads more, as often as that helps."""
        from scrapeyard.builtin.pressing import Presses  # noqa: PLC0415 - loads slowly, and few lists have a button

        selector = given.get("more", "auto")
        presses = Presses(
            self._read,
            None if selector == "auto" else selector,
            pages=given.get("pages", 10),
            limit=given.get("limit", 1000),
        )
        first, stopped = await presses.run(services, request)
        for batch in presses.batches:
            found.add(presses.url, batch)
        found.end_presses(stopped, presses)
        if first.screenshot:
            await services.artifact("screenshot.png", "image/png", first.screenshot)
        return first

    async def _read(self, response: FetchResponse) -> dict[str, Any]:
        return await read(self._extractor, response, include=("records", "next_page"))

    async def _add(self, found: "_ListSoFar", response: FetchResponse) -> dict[str, Any]:
        page = await self._read(response)
        found.add(response.url, page)
        return page


def _request(given: dict[str, Any]) -> FetchRequest:
    """The request for a page. A press needs a browser. Raises InputInvalid and FetchFailed."""
    if given.get("more", "never") == "never":
        return request_of(given)
    if given.get("engine", "browser") not in ("auto", "browser"):
        raise InputInvalid(f"`more` needs a browser: leave out `engine`, which is {given['engine']}")
    if "body" in given or given.get("method", "GET") != "GET":
        raise InputInvalid("a browser opens pages with GET: `more` does not go with a method or a body")
    return request_of({**given, "engine": "browser"})


class _ListSoFar:
    """The records of the pages so far."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._room = MAX_BYTES
        self._known: set[bytes] = set()
        self._names: dict[str, str] = {}
        self._visited: set[str] = set()
        self._records: list[dict[str, Any]] = []
        self.pages: list[dict[str, Any]] = []
        self.next_page: str | None = None
        self.is_full = False
        self.complete: bool | None = None
        """None: as `next_page` says."""
        self.stopped = "end"
        self.warnings: list[str] = []

    def add(self, url: str, page: dict[str, Any]) -> None:
        """Take a page's records that are new, and where the list goes on."""
        self._visited.add(url)
        listed = page.get("records") or {"records": [], "columns": {}}
        names = self._same_names(listed["columns"])
        before = len(self._records)
        earlier = frozenset(self._known)
        for record in listed["records"]:
            self._take({names[name]: value for name, value in record.items()}, earlier)
            if self.is_full:
                break
        new = len(self._records) - before
        self.pages.append({"url": url, "records": new})
        self.warnings += page.get("warnings", ())
        after = page.get("next_page")
        if after in self._visited:
            after = None
        elif after and not new and not self.is_full:
            self.warnings.append(f"{url} has no new records: the list ends there")
            self.stopped = "no_new_records"
            after = None
        self.next_page = url if self.is_full else after

    def fail(self, warning: str) -> None:
        """Say why a later page is missing."""
        self.stopped = "failed"
        self.warnings.append(warning)

    def end_presses(self, stopped: str, presses: "Presses") -> None:
        """Say why no further press followed."""
        self.stopped = "limit" if self.is_full else stopped
        self.next_page = None  # the list has one address
        self.complete = self.stopped in ("end", "button_gone")
        self.warnings += presses.warnings
        if words := _WHY.get(self.stopped):
            self.warnings.append(words.format(presses="1 press" if presses.count == 1 else f"{presses.count} presses"))

    def _same_names(self, columns: dict[str, str]) -> dict[str, str]:
        """The names of a page's fields: those that their places had on the pages before."""
        names = {name: known for name, place in columns.items() if (known := self._names.get(place))}
        taken = set(names.values())
        for name, place in columns.items():
            if name in names:
                continue
            chosen, number = name, 2
            while chosen in taken or (chosen in self._names.values() and name not in _ROLES):
                chosen, number = f"{name}_{number}", number + 1
            names[name] = chosen
            taken.add(chosen)
            self._names.setdefault(place, chosen)
        return names

    def _take(self, record: dict[str, Any], earlier: frozenset[bytes]) -> None:
        written = msgspec.json.encode(record)
        if written in earlier:
            return
        if len(self._records) >= self._limit or len(written) > self._room:
            self.is_full = True
            return
        self._room -= len(written)
        self._known.add(written)
        self._records.append(record)

    def told(self) -> dict[str, Any]:
        """As the result has it."""
        columns: dict[str, str] = {}
        for place, name in self._names.items():
            columns.setdefault(name, place)
        records = [{name: record.get(name) for name in columns} for record in self._records]
        if not records and not self.warnings:
            self.warnings.append("the page shows no list of records; give `fields` to builtin/select instead")
        return {
            "records": records,
            "columns": columns,
            "pages": self.pages,
            "next_page": self.next_page,
            "complete": self.next_page is None if self.complete is None else self.complete,
            "stopped": self.stopped,
            "warnings": self.warnings[:100],
        }


_ROLES = frozenset({"title", "url", "image", "price", "currency", "old_price", "date", "rating", "description"})
"""Names that mean the same on every page, wherever the field stands."""
_NOT_PRESSED = (
    "the page has a button that loads more: this is only the beginning of the list; give `more`: `auto`, and a "
    "browser presses it"
)
_WHY = {
    "no_new_records": "after {presses}, the button that loads more brought no new records: the list ends "
    "there, or the site did not answer",
    "pages": "the list goes on: after {presses}, `pages` is reached",
    "limit": "the list goes on: after {presses}, the limit of records is reached",
    "seconds": "the list goes on: after {presses}, the time is up",
}
