"""An engine that keeps what it fetched."""

import msgspec

from scrapeyard.authoring.cassette import MAX_BODY_BYTES, MAX_BYTES, MAX_PAGES, Entry, Page
from scrapeyard.authoring.redaction import Veil, clean_url, kept_headers
from scrapeyard.authoring.requests import Asked, asked_of
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, HttpEngine
from scrapeyard.errors import BadRequest, FetchFailed


class RecordingEngine:
    """Passes requests on to `inner`, which it neither starts nor stops, and remembers them in the order asked.

    What the engine would refuse before it sends anything is not kept: a replay refuses it in the same way.
    """

    def __init__(self, inner: HttpEngine, veil: Veil) -> None:
        self._inner = inner
        self._veil = veil
        self._pages: dict[int, Page] = {}
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
            # What a script downloads is recorded like any page, so it is held here and handed on by whoever asked.
            response = await self._inner.fetch(msgspec.structs.replace(request, keep=None), caller)
        except FetchFailed as failure:
            self._keep(number, Page(entry=_failed(asked, failure, self._veil)))
            raise
        entry = _answered(asked, response, self._veil)
        self._keep(number, Page(entry=entry, body=self._veil.data(response.body)))
        return response

    def pages(self) -> tuple[Page, ...]:
        """What was kept. Raises BadRequest when that is more than a cassette may hold."""
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

    def _keep(self, number: int, page: Page) -> None:
        """Beyond the bounds only counted: the run goes on, and `pages` refuses."""
        self._bytes += len(page.body)
        if number <= MAX_PAGES and self._bytes <= MAX_BYTES:
            self._pages[number] = page


def _answered(asked: Asked, response: FetchResponse, veil: Veil) -> Entry:
    final = clean_url(veil.text(response.url))
    return Entry(
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


def _failed(asked: Asked, failure: FetchFailed, veil: Veil) -> Entry:
    return Entry(
        method=asked.method,
        url=asked.url,
        body_sha256=asked.body_sha256,
        follow_redirects=asked.follow_redirects,
        error=failure.reason,
        message=veil.text(failure.message)[:2000],
        site_status=failure.site_status,
    )
