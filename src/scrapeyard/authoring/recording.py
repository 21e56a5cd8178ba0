"""Makes a case from one real run, with an engine that records what it fetches."""

import json
import re
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from scrapeyard.authoring.cases import FOLDER, NAME, REPLAYABLE, Options, read_options, write_case
from scrapeyard.authoring.cassette import (
    MAX_BODY_BYTES,
    MAX_BYTES,
    MAX_PAGES,
    CassetteEntry,
    RecordedPage,
    RecordedRequest,
    asked_of,
)
from scrapeyard.authoring.redaction import Veil, clean_url, kept_headers
from scrapeyard.engines.browser.port import BrowserContext
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, HttpEngine
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.model import ExitReason, Outcome


class RecordingEngine:
    """Passes requests on to `inner`, which it neither starts nor stops, and records them in request order.

    A request that the engine refuses before it sends anything is not recorded: a replay refuses it in the same way.
    """

    def __init__(self, inner: HttpEngine, veil: Veil) -> None:
        self._inner = inner
        self._veil = veil
        self._pages: dict[int, RecordedPage] = {}
        self._asked = 0
        self._bytes = 0

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to stop."""

    async def fetch(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        """As the inner engine. Raises FetchFailed."""
        asked = asked_of(request, caller.scraper, self._veil)
        self._asked += 1
        number = self._asked
        try:
            # A download is recorded like any page, so it is held in memory and the caller stores it.
            response = await self._inner.fetch(msgspec.structs.replace(request, keep=None), caller)
        except FetchFailed as failure:
            self._keep(number, RecordedPage(entry=_failed(asked, failure, self._veil)))
            raise
        entry = _answered(asked, response, self._veil)
        self._keep(number, RecordedPage(entry=entry, body=self._veil.data(response.body)))
        return response

    def pages(self) -> tuple[RecordedPage, ...]:
        """The recorded pages. Raises BadRequest if they are more than a cassette may hold."""
        if self._asked > MAX_PAGES or self._bytes > MAX_BYTES:
            raise BadRequest(
                f"the run fetched {self._asked} pages and {self._bytes >> 20} MB; a cassette holds at most {MAX_PAGES} "
                f"pages and {MAX_BYTES >> 20} MB; record a smaller input"
            )
        for page in self._pages.values():
            if len(page.body) > MAX_BODY_BYTES:
                raise BadRequest(
                    f"{page.entry.url[:200]} is larger than {MAX_BODY_BYTES >> 20} MB; record another page"
                )
        return tuple(self._pages[number] for number in sorted(self._pages))

    def _keep(self, number: int, page: RecordedPage) -> None:
        """Record a page; beyond the limits, only count it: the run goes on, and `pages` refuses later."""
        self._bytes += len(page.body)
        if number <= MAX_PAGES and self._bytes <= MAX_BYTES:
            self._pages[number] = page


class UnrecordedBrowser:
    """A BrowserEngine for runs whose pages are recorded or replayed: what a browser loads is not recorded."""

    open_now = 0

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to stop."""

    def open(self, *_: Any, **__: Any) -> AbstractAsyncContextManager[BrowserContext]:
        """Raises FetchFailed."""
        message = "recorded cases have no browser: only the pages of ctx.fetch are recorded; try it with scrapeyard run"
        raise FetchFailed(ExitReason.BROWSER_UNAVAILABLE, message)


def _answered(asked: RecordedRequest, response: FetchResponse, veil: Veil) -> CassetteEntry:
    final = clean_url(veil.text(response.url))
    return CassetteEntry(
        method=asked.method,
        url=asked.url,
        body_sha256=asked.body_sha256,
        follow_redirects=asked.follow_redirects,
        status=response.status,
        final_url="" if final == asked.url else final,
        redirects=tuple(clean_url(veil.text(url)) for url in response.redirects),
        headers=kept_headers((name, veil.text(value)) for name, value in response.headers),
        encoding=response.encoding,
    )


def _failed(asked: RecordedRequest, failure: FetchFailed, veil: Veil) -> CassetteEntry:
    return CassetteEntry(
        method=asked.method,
        url=asked.url,
        body_sha256=asked.body_sha256,
        follow_redirects=asked.follow_redirects,
        error=failure.reason,
        message=veil.text(failure.message)[:2000],
        site_status=failure.site_status,
    )


"""Exit reasons that are recorded without an explicit `ends`."""


def case_folder(scraper: Path, name: str | None, given: dict[str, Any], *, force: bool) -> Path:
    """The folder for a case; without a name, the first free one named after the input's URL. Raises BadRequest."""
    tests = scraper / FOLDER
    if name is None:
        return _free(tests, _suggested(given))
    if NAME.fullmatch(name) is None:
        raise BadRequest(
            f'{name[:100]!r} is not a name for a case: lower-case letters, digits, ".", "_", "-", at most 64'
        )
    if (tests / name).exists() and not force:
        raise BadRequest(f"{tests / name} is already there; --force records it again")
    return tests / name


def check_end(outcome: Outcome, ends: str | None) -> None:
    """Raises BadRequest unless the run ended well, or as `ends` says that it should."""
    reason = outcome.exit_reason
    wanted = reason.is_good if ends is None else reason.value == ends
    if wanted and reason in REPLAYABLE:
        return
    message = f"the run ended as {reason}, and nothing was recorded"
    if reason in REPLAYABLE:
        raise BadRequest(f"{message}; --ends {reason} records it so")
    raise BadRequest(f"{message}; such an end cannot be replayed")


def keep_case(
    folder: Path, given: dict[str, Any], outcome: Outcome, result: bytes, pages: tuple[RecordedPage, ...]
) -> None:
    """Write the case; keeps the `ignore` list of an earlier recording. Raises BadRequest or ScraperInvalid."""
    before = read_options(folder)
    names = tuple(sorted(artifact.name for artifact in outcome.artifacts))
    options = Options(ends=outcome.exit_reason, ignore=before.ignore, artifacts=names)
    write_case(folder, given, json.loads(result), options, pages)


def _suggested(given: dict[str, Any]) -> str:
    url = given.get("url")
    if not isinstance(url, str):
        return "case"
    try:
        parts = urlsplit(url)
    except ValueError:
        return "case"
    words = re.sub(r"[^a-z0-9]+", "-", f"{parts.path} {parts.query}".lower()).strip("-")
    return words[:50].strip("-") or "index"


def _free(tests: Path, name: str) -> Path:
    number = 1
    while (tests / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return tests / (name if number == 1 else f"{name}-{number}")
