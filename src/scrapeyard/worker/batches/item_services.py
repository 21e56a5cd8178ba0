"""What the worker does for one item of a job: fetches, artifacts, a short log. Most parts are created on first use,
because most items of a large job need hardly any."""

import time
from collections.abc import AsyncIterator

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.blobs.port import Blobs
from scrapeyard.engines.ledger import Ledger, Spent
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, HttpEngine
from scrapeyard.errors import FetchFailed
from scrapeyard.model import Artifact, ExitReason, FetchPolicy, LogLine
from scrapeyard.model.job import BatchItem, Job
from scrapeyard.repository.trust.secrets import redact
from scrapeyard.results import artifacts
from scrapeyard.worker.runs.environments import Prepared
from scrapeyard.worker.runs.waiting import SiteWait, too_long

MAX_LOG = 4096
"""Maximum bytes saved of a failed item's log: the last ones."""
_LINE_COST = 32
_NOTHING = Spent()


class BatchContext(Struct, frozen=True, kw_only=True):
    """The same for all items of a batch."""

    job: Job
    prepared: Prepared
    policy: FetchPolicy
    wall_seconds: float
    engine: HttpEngine
    blobs: Blobs
    pausing: SiteWait
    """For the whole batch: gives up its slot while every fetching item waits."""


class ItemServices:
    """Serves one child, or one built-in, for the length of one item."""

    def __init__(self, around: BatchContext, item: BatchItem) -> None:
        self._around = around
        self._item = item
        self._ends = time.monotonic() + around.wall_seconds
        self._caller: Caller | None = None
        self._log_bytes = 0
        self.logs: list[LogLine] = []
        self.artifacts: dict[str, Artifact] = {}
        self.fetches = 0
        self.bytes_received = 0
        self.page: FetchResponse | None = None
        """The last text page fetched, if pages are to be saved."""
        self.come_back: float | None = None
        """Seconds until the last site that was too busy has a turn; None if every site had one in time."""

    @property
    def spent(self) -> Spent:
        """What its fetches used up."""
        return _NOTHING if self._caller is None else self._caller.ledger.spent

    @property
    def bytes_by_class(self) -> dict[str, int]:
        """Bytes received, by proxy class; `direct` without a proxy."""
        return {} if self._caller is None else dict(self._caller.ledger.bytes_by_class)

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Through the engine. Raises FetchFailed."""
        self.fetches += 1
        try:
            async with self._around.pausing.fetching():
                response = await self._around.engine.fetch(request, self._item_caller())
        except FetchFailed as error:
            if error.reason is ExitReason.FETCH_RATE_LIMITED and error.site_status is None:
                self.come_back = error.details.get("retry_after")
            raise
        self.bytes_received += response.bytes_received
        if self._around.job.policy.keep_html and response.kept is None and _is_text(response):
            self.page = response
        return response

    async def download(self, request: FetchRequest, name: str) -> FetchResponse:
        """As `fetch`, but streams the page into an artifact. Raises FetchFailed or BlobsUnavailable."""

        async def keep(pieces: AsyncIterator[bytes], content_type: str) -> int:
            kind = content_type[:200] or "application/octet-stream"
            around = self._around
            kept = await artifacts.keep_stream(around.blobs, around.job.id, self._item.key, name, pieces, kind)
            self.artifacts[name] = kept
            return kept.size

        page = await self.fetch(replace(request, keep=keep))
        if page.kept is not None or not 200 <= page.status < 300:
            return page
        kept = await keep(_whole(page.body), dict(page.headers).get("content-type", ""))  # from a replay engine
        return replace(page, body=b"", kept=kept)

    async def artifact(self, name: str, content_type: str, data: bytes) -> None:
        """Save an artifact. Raises BlobsUnavailable."""
        around = self._around
        self.artifacts[name] = await artifacts.keep(
            around.blobs, around.job.id, self._item.key, name, data, content_type, script=True
        )

    def log(self, line: LogLine) -> None:
        """Add a line of the script, without secret values; drops the oldest lines if there are too many."""
        hidden = self._around.prepared.hidden
        if hidden:
            line = replace(line, text=redact(line.text, hidden), fields=redact(line.fields, hidden))
        line = replace(line, text=line.text[-MAX_LOG:])
        self.logs.append(line)
        self._log_bytes += _size(line)
        while self._log_bytes > MAX_LOG and len(self.logs) > 1:
            self._log_bytes -= _size(self.logs.pop(0))

    async def pause(self, seconds: float) -> None:
        """Wait for a site's turn. Raises FetchFailed at once if the item would time out before that."""
        if seconds >= self._ends - time.monotonic():
            raise too_long(seconds, "the site's turn comes after the item's time is over")
        await self._around.pausing.pause(seconds)

    def _item_caller(self) -> Caller:
        if self._caller is None:
            around = self._around
            self._caller = Caller(
                scraper=around.prepared.scraper,
                run_id=f"{around.job.id}/{self._item.key}",
                job_id=around.job.id,
                policy=around.policy,
                job_budget=around.job.policy.budget,
                ledger=Ledger(),
                pause=self.pause,
            )
        return self._caller


def _size(line: LogLine) -> int:
    return len(line.text) + _LINE_COST + (len(str(line.fields)) if line.fields else 0)


def _is_text(response: FetchResponse) -> bool:
    media = next((value for key, value in response.headers if key.lower() == "content-type"), "text/html")
    return media.startswith("text/") or "html" in media or "xml" in media


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body
