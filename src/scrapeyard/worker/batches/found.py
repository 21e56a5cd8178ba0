"""Items that a script finds while it runs, for its own job. The store adds them with the outcome of the item."""

from typing import Any

import msgspec
from msgspec.structs import replace

from scrapeyard.engines.http.url import MAX_URL, parse_target
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.model import Scraper
from scrapeyard.model.job import BatchItem, Job, NewItem
from scrapeyard.repository.manifest.items import InputUnfit, is_key, item_of, key_of
from scrapeyard.repository.manifest.json_schemas import InputChecker

MAX_FOUND = 10_000
"""Maximum items that one attempt may find."""
MAX_BYTES = 8 * 1024 * 1024
"""Maximum bytes of their inputs together."""


class FoundItems:
    """What one attempt found, each key once, in order."""

    def __init__(self, job: Job, item: BatchItem, scraper: Scraper, checker: InputChecker) -> None:
        self._job = job
        self._item = item
        self._scraper = scraper
        self._checker = checker
        self._items: dict[str, NewItem] = {}
        self._bytes = 0

    def add(self, given: bytes, item_id: str) -> None:
        """Take an input, or a URL, as JSON. Raises BadRequest if it does not fit, or if there are too many."""
        if item_id and not is_key(item_id):
            raise BadRequest("an item_id has 1 to 128 letters, digits, dots, dashes, tildes and underscores")
        try:
            item = self._shaped(msgspec.json.decode(given), item_id)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            raise BadRequest("the input of an item must be JSON") from None
        except InputUnfit as unfit:
            raise BadRequest(f"this is no input of {self._scraper.ref}: {unfit}") from None
        if item.key in self._items:
            return
        self._bytes += len(bytes(item.input))
        if len(self._items) >= MAX_FOUND or self._bytes > MAX_BYTES:
            raise BadRequest(f"an item may add {MAX_FOUND} items, with {MAX_BYTES} bytes of input together")
        self._items[item.key] = item

    def taken(self) -> tuple[NewItem, ...]:
        """The items, with the depth that they have and the page that they were found on."""
        depth, referrer = (self._item.depth or 0) + 1, _url_in(msgspec.json.decode(self._item.input))
        return tuple(replace(item, depth=depth, referrer=referrer) for item in self._items.values())

    def _shaped(self, row: Any, item_id: str) -> NewItem:
        """As a row of a list: a URL stands for an input with this URL, and the job's own fields are added."""
        common = self._job.source.get("shape", {}).get("input", {})
        if isinstance(row, str):
            url = self._plain(row)
            is_followed = self._job.source.get("kind") == "follow"
            key = item_id or (key_of(url.encode()) if is_followed else "")
            return item_of(self._scraper, self._checker, key, {**common, "url": url})
        if not isinstance(row, dict):
            raise BadRequest("an item is a URL or an input")
        return item_of(self._scraper, self._checker, item_id, {**common, **row})

    def _plain(self, url: str) -> str:
        try:
            return parse_target(url).url
        except FetchFailed as failure:
            raise BadRequest(f"{url[:200]!r} is no URL to add: {failure.message}") from None


def _url_in(given: Any) -> str:
    url = given.get("url") if isinstance(given, dict) else None
    return url[:MAX_URL] if isinstance(url, str) else ""
