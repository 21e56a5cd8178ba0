"""The built-in scraper `builtin/list`: the records of a list over its pages, without selectors."""

from typing import Any

import msgspec

from scrapeyard.builtin.fetching import Fetch, read
from scrapeyard.builtin.pages.port import Extractor
from scrapeyard.builtin.requests import REQUEST, URL, request_of
from scrapeyard.builtin.scrapers import TABLE, TEXT, told
from scrapeyard.engines.port import FetchResponse
from scrapeyard.errors import FetchFailed

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
            "description": "Maximum pages: the first and those after it.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_RECORDS,
            "default": 1000,
            "description": "Maximum records.",
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
        "warnings": {"type": "array", "items": {"type": "string"}, "description": "What could not be read, and why."},
    },
    "required": ["url", "status", "records", "columns", "pages", "next_page", "complete", "warnings"],
}


class ListScraper:
    """Fetches page after page."""

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    async def __call__(self, fetch: Fetch, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002  the manifest's word
        """`input` fits LIST_INPUT. Raises FetchFailed if the first page cannot be had. If a later one cannot, the
        result has the records before it, says so, and names the page as the next."""
        first = await fetch(request_of(input))
        found = _ListSoFar(input.get("limit", 1000))
        await self._add(found, first)
        while found.next_page and len(found.pages) < input.get("pages", 10) and not found.is_full:
            try:
                response = await fetch(request_of({**input, "url": found.next_page}))
                if response.status >= 400:
                    found.warnings.append(f"{found.next_page} answers {response.status}: the list ends before it")
                    break
                await self._add(found, response)
            except FetchFailed as error:
                found.warnings.append(f"{found.next_page} could not be read: {error.message}")
                break
        return {"url": input["url"], "status": first.status, **found.told()}

    async def _add(self, found: "_ListSoFar", response: FetchResponse) -> None:
        page = await read(self._extractor, response, include=("records", "next_page"))
        found.add(response.url, page)


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
            after = None
        self.next_page = url if self.is_full else after

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
            "complete": self.next_page is None,
            "warnings": self.warnings[:100],
        }


_ROLES = frozenset({"title", "url", "image", "price", "currency", "old_price", "date", "rating", "description"})
"""Names that mean the same on every page, wherever the field stands."""
