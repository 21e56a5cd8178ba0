"""One item of a job: where its result, its log and its artifacts go. The store holds what is small, the blob store the
rest."""

import re
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.builtin.fetching import media_type
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.politeness.verdicts import wait_asked_by
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import (
    GONE_STATUSES,
    Artifact,
    ExitReason,
    FetchTrace,
    LogLine,
    Outcome,
    RunError,
    StepTrace,
    Timing,
    Usage,
)
from scrapeyard.model.job import BatchItem, ItemOutcome, ItemStatus, Job
from scrapeyard.results.exports.cells import as_time
from scrapeyard.results.item_objects import ItemEnd, ItemObjects
from scrapeyard.sandbox.port import Verdict
from scrapeyard.worker.attempts.attempt import ScrapeAttempt
from scrapeyard.worker.attempts.parts import AttemptParts, AttemptPlan
from scrapeyard.worker.attempts.retrying import MOST_SECONDS, NextAttempt, RetryRules
from scrapeyard.worker.attempts.steps import MAX_TRACES, fetch_trace, step_trace
from scrapeyard.worker.batches.found import FoundItems

INLINE_RESULT = 16 * 1024
"""A larger result is stored as a blob."""
MAX_WORDS = 4096
"""Maximum characters stored of an error's message, and of its traceback."""
MAX_LOG = 4096
"""Maximum bytes saved of a failed item's log: the last ones."""
BUDGET_SECONDS = 10.0
"""When an item begins anew at the earliest that met the end of its job's budget. The job is paused meanwhile."""
_LINE_COST = 32
_PLAIN = re.compile(r"https?://([A-Za-z0-9.-]+)(?::[0-9]+)?(?:[/?#]|$)")
"""A plain URL: no user, no brackets, only ASCII before the path."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class _Metadata(Struct, frozen=True, kw_only=True):
    """The content of an item's `metadata.json`."""

    job_id: str
    key: str
    scraper: str
    exit_reason: ExitReason
    attempt: int
    site: str
    started_at: float
    finished_at: float
    result_bytes: int
    usage: Usage
    error: RunError | None


class ItemAttempt(ScrapeAttempt[ItemOutcome]):
    """One attempt at an item. Saves the end of its log if it failed, and what its job's policy says."""

    def __init__(
        self,
        parts: AttemptParts,
        plan: AttemptPlan,
        sites: Sites,
        job: Job,
        item: BatchItem,
        *,
        is_first: bool,
        is_traced: bool = False,
    ) -> None:
        """`is_first`: the item was never handed out before."""
        super().__init__(parts, plan, f"{job.id}/{item.key}", item.attempt, item.input)
        self._sites = sites
        self._job = job
        self._item = item
        self._site = ""
        self._is_gone = False
        self.spent: dict[str, Any] | None = None
        """The job's budget that is used up, as its event tells it; None if none is. Other items would fare alike."""
        self._page: FetchResponse | None = None
        """The last text page fetched, if pages are to be saved."""
        self._http_status: int | None = None
        """Of the last page fetched; None if there was none, or no answer to it."""
        self._strategy, self._proxy = "", ""
        """How the last page was had, and through which exit."""
        self._saved: tuple[Artifact, ...] = ()
        listed = job.policy.results == "objects"
        self._objects = ItemObjects(parts.blobs, job.id, item.key, listed=listed, is_first=is_first)
        self._log_bytes = 0
        self._is_traced = is_traced
        self._fetch_traces: list[FetchTrace] = []
        self._step_traces: list[StepTrace] = []
        self.trace: Outcome | None = None
        """What its spans are made of, once it has ended; None if it is not traced."""
        self._found: FoundItems | None = None

    def _check_input(self) -> Verdict | None:
        given = _decode(self.given)
        self._site = self._site_of(given)
        faults = self.parts.checker.errors(self.plan.prepared.scraper, given)
        if not faults:
            return None
        where = faults[0]["path"] or "the input"
        message = f"the input does not fit the scraper: {where}: {faults[0]['message']}"
        return Verdict(exit_reason=ExitReason.BAD_INPUT, error=RunError(message=message, details={"errors": faults}))

    def _site_of(self, given: object) -> str:
        """The site of the input's `url`; empty if it has none."""
        url = given.get("url") if isinstance(given, dict) else None
        if not isinstance(url, str):
            return ""
        host = host_of(url)
        return self._sites.of(host)[:253] if host else ""

    async def _perform(self) -> Verdict:
        verdict = await super()._perform()
        if self._is_gone and verdict.exit_reason is ExitReason.SUCCEEDED:
            return replace(verdict, exit_reason=ExitReason.GONE)
        return verdict

    async def _fetch_page(self, request: FetchRequest) -> FetchResponse:
        """An error page is not what a job wants for data, unless its policy accepts the status. What a built-in asks
        for after the first page is not the item's own page, as a robots.txt is not."""
        response = await self.fetch(request)
        status = response.status
        if status < 400 or status in self._job.policy.accept_status or self.fetches > 1:
            return response
        if status in GONE_STATUSES:
            self._is_gone = True
            return response
        after = wait_asked_by(response) or None
        message = f"the site answered {status}; policy.accept_status can make that a result"
        raise FetchFailed(ExitReason.FETCH_STATUS, message, site_status=status, retry_after=after)

    def enqueue(self, given: bytes, item_id: str) -> None:
        """Take an item that the script found. Raises BadRequest."""
        if self._found is None:
            self._found = FoundItems(self._job, self._item, self.plan.prepared.scraper, self.parts.checker)
        self._found.add(given, item_id)

    def _turn_after(self, error: FetchFailed) -> float | None:
        if error.reason is ExitReason.FETCH_SITE_DOWN:
            return error.details.get("retry_after")
        if error.reason is ExitReason.FETCH_BUDGET and error.details.get("whose") == "job":
            self.spent = {"state": "used_up", **{name: error.details[name] for name in ("budget", "used", "allowed")}}
            return BUDGET_SECONDS
        return super()._turn_after(error)

    def _latest_turn(self) -> float:
        return self.finished_at + MOST_SECONDS

    def _add_line(self, line: LogLine) -> None:
        """Drops the oldest lines if there are too many."""
        line = replace(line, text=line.text[-MAX_LOG:])
        self.logs.append(line)
        self._log_bytes += _size(line)
        while self._log_bytes > MAX_LOG and len(self.logs) > 1:
            self._log_bytes -= _size(self.logs.pop(0))

    def stepped(self, name: str, started: float, error: str) -> None:
        """Note a step in a browser, for the trace."""
        if self._is_traced and len(self._step_traces) < MAX_TRACES:
            self._step_traces.append(step_trace(name, started, self.began, error, self._hide))

    def _on_fetched(self, request: FetchRequest, started: float, answer: FetchResponse | FetchFailed) -> None:
        if self._is_traced and len(self._fetch_traces) < MAX_TRACES:
            self._fetch_traces.append(fetch_trace(request, started, self.began, answer, self._hide))
        status = answer.status if isinstance(answer, FetchResponse) else answer.site_status
        self._http_status = status if status is not None and 100 <= status <= 999 else None
        if not isinstance(answer, FetchResponse):
            return
        self._strategy = answer.strategy
        self._proxy = f"{answer.proxy_class} {answer.proxy}" if answer.proxy else ""
        if self._job.policy.keep_html and answer.kept is None and _is_text(answer):
            self._page = answer

    async def _put(self, name: str, content_type: str, data: bytes) -> Artifact:
        """A picture of the page is one of the item's own objects, whoever took it."""
        return await self._objects.put(name, content_type, data, script=name != keys.SCREENSHOT)

    async def _put_stream(self, name: str, content_type: str, pieces: AsyncIterator[bytes]) -> Artifact:
        return await self._objects.put_stream(name, content_type, pieces)

    async def _save(self, verdict: Verdict) -> None:
        """Store what does not fit the item's row as blobs."""
        objects = self._job.policy.results == "objects"
        large = verdict.result is not None and (objects or self.result_bytes > INLINE_RESULT)
        if not objects and not large and self._page is None:
            return
        key, saved = "", []
        if large and verdict.result is not None:
            key = (await self._objects.put(keys.DATA, "application/json", bytes(verdict.result))).key
        if self._page is not None:
            media = f"text/html; charset={self._page.encoding}"
            body = self._page.body if self._masker is None else await self._masker.artifact(self._page.body, media)
            saved.append(await self._objects.put(keys.HTML, media, body))
        if objects:
            metadata = _encode(self._metadata(verdict))
            saved.append(await self._objects.put(keys.METADATA, "application/json", metadata))
            await self._objects.write_manifest(self._item.seq, self._end(verdict))
        self.result_key, self._saved = key, tuple(saved)

    def _end(self, verdict: Verdict) -> ItemEnd:
        status = ItemStatus.SUCCESS if verdict.exit_reason.is_good else ItemStatus.ERROR
        return ItemEnd(
            status=status.value,
            exit_reason=verdict.exit_reason.value,
            attempts=self.number,
            scraper=str(self.plan.prepared.scraper.ref),
            site=self._site,
            started_at=as_time(self.started_at),
            finished_at=as_time(self.finished_at),
            result_bytes=self.result_bytes,
            partial=status is ItemStatus.ERROR and self.result_bytes > 0,
        )

    def _metadata(self, verdict: Verdict) -> _Metadata:
        return _Metadata(
            job_id=self._job.id,
            key=self._item.key,
            scraper=str(self.plan.prepared.scraper.ref),
            exit_reason=verdict.exit_reason,
            attempt=self.number,
            site=self._site,
            started_at=self.started_at,
            finished_at=self.finished_at,
            result_bytes=self.result_bytes,
            usage=self.usage(verdict),
            error=_short(verdict.error),
        )

    def _traced(self, verdict: Verdict) -> Outcome:
        scraper = self.plan.prepared.scraper.ref
        timing = Timing(
            child_start_ms=round(verdict.child_start_ms, 3),
            forked_ahead=verdict.forked_ahead,
            script_ms=round(verdict.wall_ms, 2),
        )
        return Outcome(
            run_id=self.name,
            attempt=self.number,
            exit_reason=verdict.exit_reason,
            scraper=scraper,
            error=_short(verdict.error),
            usage=self.usage(verdict),
            timing=timing,
            fetches=tuple(self._fetch_traces),
            steps=tuple(self._step_traces),
            started_at=self.started_at,
            finished_at=self.finished_at,
        )

    def _outcome(self, verdict: Verdict, retry: NextAttempt | None) -> ItemOutcome:
        if self._is_traced:
            self.trace = self._traced(verdict)
        return ItemOutcome(
            seq=self._item.seq,
            attempt=self.number,
            exit_reason=verdict.exit_reason,
            result=None if self.result_key else verdict.result,
            result_key=self.result_key,
            result_bytes=self.result_bytes,
            error=_short(verdict.error),
            site=self._site,
            usage=self.usage(verdict),
            strategy=self._strategy,
            proxy=self._proxy,
            logs=() if verdict.exit_reason.is_good else tuple(self.logs),
            artifacts=(*self.artifacts.values(), *self._saved),
            started_at=self.started_at,
            finished_at=self.finished_at,
            not_before=self.finished_at + retry.seconds if retry else None,
            postponed=retry is not None and retry.postponed,
            http_status=self._http_status,
            found=self._found.taken() if self._found is not None and retry is None else (),
        )


def refused_outcome(verdict: Verdict, retries: RetryRules, item: BatchItem) -> ItemOutcome:
    """The outcome of an item whose batch could not begin: the scraper is gone, invalid, or not to be had now."""
    now = time.time()
    retry = retries.after(verdict, item.attempt)
    return ItemOutcome(
        seq=item.seq,
        attempt=item.attempt,
        exit_reason=verdict.exit_reason,
        error=verdict.error,
        started_at=now,
        finished_at=now,
        not_before=now + retry.seconds if retry else None,
    )


def host_of(url: str) -> str:
    """The host as `urlsplit` finds it; empty if there is none. Plain URLs take a fast path, for jobs of a million."""
    plain = _PLAIN.match(url)
    if plain is not None:
        return plain[1].lower()
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _short(error: RunError | None) -> RunError | None:
    if error is None or (len(error.message) <= MAX_WORDS and len(error.traceback) <= MAX_WORDS):
        return error
    return replace(error, message=error.message[:MAX_WORDS], traceback=error.traceback[-MAX_WORDS:])


def _size(line: LogLine) -> int:
    return len(line.text) + _LINE_COST + (len(str(line.fields)) if line.fields else 0)


def _is_text(response: FetchResponse) -> bool:
    media = media_type(response) or "text/html"
    return media.startswith("text/") or "html" in media or "xml" in media
