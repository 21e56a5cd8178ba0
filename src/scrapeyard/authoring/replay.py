"""An engine that knows recorded pages and nothing else: no network, no waiting, and a note of every odd request."""

from collections import defaultdict, deque
from collections.abc import Sequence

from scrapeyard.authoring.cassette import RecordedPage, RecordedRequest, asked_of, nearest
from scrapeyard.authoring.redaction import Veil
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

MAX_UNKNOWN = 20
"""Unknown requests that are told; a script in a loop may ask thousands."""


class ReplayEngine:
    """Answers each recorded request once, in the order in which equal ones were recorded.

    An unknown request, or one asked more often than recorded, fails in the script as `fetch_not_allowed` and is kept in
    `unknown`: a script that goes on regardless has still not done what was recorded.
    """

    def __init__(self, pages: Sequence[RecordedPage]) -> None:
        self._known = tuple(page.entry.asked for page in pages)
        self._waiting: dict[RecordedRequest, deque[RecordedPage]] = defaultdict(deque)
        for page in pages:
            self._waiting[page.entry.asked].append(page)
        self._veil = Veil({})
        self.unknown: list[str] = []

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to stop."""

    async def fetch(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        """The recorded answer, at once. Raises FetchFailed: as recorded, or because there is none."""
        asked = asked_of(request, caller.scraper, self._veil)
        waiting = self._waiting.get(asked)
        if not waiting:
            raise self._refuse(asked)
        page = waiting.popleft()
        entry = page.entry
        if entry.error is not None or entry.status is None:
            raise FetchFailed(entry.error or ExitReason.FETCH_PROTOCOL, entry.message, site_status=entry.site_status)
        if request.max_bytes is not None and len(page.body) > request.max_bytes:
            message = f"{entry.url[:200]} is larger than the {request.max_bytes} bytes that the script takes"
            raise FetchFailed(ExitReason.FETCH_TOO_LARGE, message)
        return _response(page, entry.status)

    def unused(self) -> tuple[RecordedRequest, ...]:
        """Recorded requests that were never asked, in the order recorded."""
        left = [page.entry.asked for waiting in self._waiting.values() for page in waiting]
        return tuple(sorted(left, key=self._known.index))

    def _refuse(self, asked: RecordedRequest) -> FetchFailed:
        message = f"{asked} {self._why(asked)}"
        if len(self.unknown) < MAX_UNKNOWN:
            self.unknown.append(message)
        return FetchFailed(ExitReason.FETCH_NOT_ALLOWED, message[:2000])

    def _why(self, asked: RecordedRequest) -> str:
        times = self._known.count(asked)
        if times:
            return f"is asked more often than the {times} time{'s' if times > 1 else ''} that it is on the cassette"
        near = nearest(asked, self._known)
        return "is not on the cassette" + ("; nearest: " + str(near) if near else ", which is empty")


def _response(page: RecordedPage, status: int) -> FetchResponse:
    entry = page.entry
    return FetchResponse(
        url=entry.final_url or entry.url,
        status=status,
        headers=entry.headers,
        body=page.body,
        encoding=entry.encoding,
        elapsed_ms=0.0,
        redirects=entry.redirects,
        bytes_received=len(page.body),
    )
