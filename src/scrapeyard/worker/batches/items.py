"""One item of a job, from its input to its outcome, with the steps of a run: check, run, save, judge."""

import re
import time
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.builtin import Builtin
from scrapeyard.engines.http.site import Sites
from scrapeyard.errors import Unavailable
from scrapeyard.model import Artifact, ExitReason, Limits, RunError, Usage
from scrapeyard.model.job import BatchItem, ItemOutcome, Job
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.results import artifacts
from scrapeyard.sandbox.port import Sandbox, Series, Verdict, Work
from scrapeyard.worker.batches.item_services import BatchContext, ItemServices
from scrapeyard.worker.runs.retrying import LEAST_SECONDS, MOST_SECONDS, retry_seconds
from scrapeyard.worker.runs.steps import checked, refused, run_builtin, without_secrets

INLINE_RESULT = 16 * 1024
"""A larger result is stored as a blob."""
MAX_WORDS = 4096
"""Maximum characters stored of an error's message, and of its traceback."""
_PLAIN = re.compile(r"https?://([A-Za-z0-9.-]+)(?::[0-9]+)?(?:[/?#]|$)")
"""A plain URL: no user, no brackets, only ASCII before the path."""
_GOOD = frozenset({ExitReason.SUCCEEDED, ExitReason.SKIPPED})
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


class Items:
    """Runs the items of one batch. Several may run at once where the scraper is built in."""

    def __init__(
        self,
        around: BatchContext,
        *,
        limits: Limits,
        sandbox: Sandbox,
        builtins: dict[str, Builtin],
        checker: InputChecker,
        sites: Sites,
    ) -> None:
        self._around = around
        self._limits = limits
        self._scraper = around.prepared.scraper
        self._policy = around.job.policy
        self._backoff = self._policy.backoff.over(around.policy.backoff)
        self._sandbox = sandbox
        self._builtin = builtins[self._scraper.ref.id] if self._scraper.is_builtin else None
        self._checker = checker
        self._sites = sites
        self._series: Series | None = None

    @property
    def is_builtin(self) -> bool:
        """Whether several may run at once."""
        return self._builtin is not None

    def close(self) -> None:
        """Release its child. May be called twice."""
        if self._series is not None:
            self._series.close()

    async def run(self, item: BatchItem) -> ItemOutcome:
        """Run an item to its outcome. Raises only CancelledError; its child is gone by then."""
        started = time.time()
        services = ItemServices(self._around, item)
        site = ""
        try:
            given = _decode(item.input)
            site = self._site(given)
            verdict = self._fit(given) or await self._run(item, services)
        except Exception as error:  # noqa: BLE001 - a fault of ours must end the item, never the worker
            told = refused(self._name(item), error)
            verdict = replace(told, exit_reason=ExitReason.INTERNAL_ERROR)
        outcome = self._outcome(item, verdict, services, site, started)
        if outcome.exit_reason not in _GOOD:
            outcome = self._again(outcome, verdict, services)
        if outcome.not_before is None:
            outcome = await self._keep(item, outcome, services)
        return outcome

    def _name(self, item: BatchItem) -> str:
        return f"{self._around.job.id}/{item.key}"

    def _fit(self, given: object) -> Verdict | None:
        """The verdict on an invalid input; None if the input fits the scraper's schema."""
        faults = self._checker.errors(self._scraper, given)
        if not faults:
            return None
        where = faults[0]["path"] or "the input"
        message = f"the input does not fit the scraper: {where}: {faults[0]['message']}"
        return Verdict(exit_reason=ExitReason.BAD_INPUT, error=RunError(message=message, details={"errors": faults}))

    def _site(self, given: object) -> str:
        """The site of the input's `url`; empty if it has none."""
        url = given.get("url") if isinstance(given, dict) else None
        if not isinstance(url, str):
            return ""
        host = host_of(url)
        return self._sites.of(host)[:253] if host else ""

    async def _run(self, item: BatchItem, services: ItemServices) -> Verdict:
        if self._builtin is not None:
            return await run_builtin(self._builtin, services.fetch, item.input, self._limits)
        prepared = self._around.prepared
        work = Work(
            run_id=self._name(item),
            attempt=item.attempt,
            input=item.input,
            limits=self._limits,
            config=prepared.config,
            environment=prepared.environment,
        )
        return checked(self._checker, self._scraper, await self._run_script(work, services))

    async def _run_script(self, work: Work, services: ItemServices) -> Verdict:
        if self._policy.isolation != "job":
            return await self._sandbox.run(self._scraper, work, services)
        if self._series is None:
            self._series = self._sandbox.series(self._scraper)
        return await self._series.run(work, services)

    def _outcome(
        self, item: BatchItem, verdict: Verdict, services: ItemServices, site: str, started: float
    ) -> ItemOutcome:
        result = verdict.result
        failed = verdict.exit_reason not in _GOOD
        return ItemOutcome(
            seq=item.seq,
            attempt=item.attempt,
            exit_reason=verdict.exit_reason,
            result=result,
            result_bytes=0 if result is None else verdict.output_bytes or len(bytes(result)),
            error=_short(without_secrets(verdict.error, self._around.prepared.hidden)),
            site=site,
            usage=_usage(verdict, services),
            logs=tuple(services.logs) if failed else (),
            artifacts=tuple(services.artifacts.values()),
            started_at=started,
            finished_at=time.time(),
        )

    def _again(self, outcome: ItemOutcome, verdict: Verdict, services: ItemServices) -> ItemOutcome:
        """The outcome, with the time of the next attempt if one may help."""
        wait = services.come_back
        if outcome.exit_reason is ExitReason.FETCH_RATE_LIMITED and wait is not None and wait <= MOST_SECONDS:
            return replace(outcome, not_before=outcome.finished_at + max(wait, LEAST_SECONDS), postponed=True)
        if outcome.attempt >= self._policy.max_attempts:
            return outcome
        site_status = outcome.error.site_status if outcome.error else None
        after = retry_seconds(
            outcome.exit_reason, site_status, self._backoff, outcome.attempt, verdict.retry_after, awaited=False
        )
        return outcome if after is None else replace(outcome, not_before=outcome.finished_at + after)

    async def _keep(self, item: BatchItem, outcome: ItemOutcome, services: ItemServices) -> ItemOutcome:
        """Store what does not fit the item's row as blobs."""
        objects = self._policy.results == "objects"
        if not objects and services.page is None and outcome.result_bytes <= INLINE_RESULT:
            return outcome
        try:
            if outcome.result is not None and (objects or outcome.result_bytes > INLINE_RESULT):
                data = await self._put(item, keys.DATA, bytes(outcome.result), "application/json")
                outcome = replace(outcome, result=None, result_key=data.key)
            if services.page is not None:
                html = await self._put(item, keys.HTML, services.page.body, _media(services.page.encoding))
                outcome = replace(outcome, artifacts=(*outcome.artifacts, html))
            if objects:
                told = await self._put(item, keys.METADATA, _encode(self._metadata(item, outcome)), "application/json")
                outcome = replace(outcome, artifacts=(*outcome.artifacts, told))
        except Unavailable as error:
            return self._not_kept(outcome, error)
        return outcome

    async def _put(self, item: BatchItem, name: str, data: bytes, content_type: str) -> Artifact:
        return await artifacts.keep(self._around.blobs, self._around.job.id, item.key, name, data, content_type)

    def _not_kept(self, outcome: ItemOutcome, error: Unavailable) -> ItemOutcome:
        failed = RunError(message=f"what the item left could not be kept: {error.message}")
        lost = replace(
            outcome,
            exit_reason=ExitReason.INTERNAL_ERROR,
            result=None,
            result_key="",
            result_bytes=0,
            error=failed,
            artifacts=(),
        )
        if outcome.attempt >= self._policy.max_attempts:
            return lost
        return replace(lost, not_before=outcome.finished_at + error.retry_after)

    def _metadata(self, item: BatchItem, outcome: ItemOutcome) -> _Metadata:
        return _Metadata(
            job_id=self._around.job.id,
            key=item.key,
            scraper=str(self._scraper.ref),
            exit_reason=outcome.exit_reason,
            attempt=outcome.attempt,
            site=outcome.site,
            started_at=outcome.started_at,
            finished_at=outcome.finished_at,
            result_bytes=outcome.result_bytes,
            usage=outcome.usage,
            error=outcome.error,
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


def refused_outcome(job: Job, verdict: Verdict, item: BatchItem, now: float) -> ItemOutcome:
    """The outcome of an item whose batch could not begin: the scraper is gone, invalid, or not to be had now."""
    outcome = ItemOutcome(
        seq=item.seq,
        attempt=item.attempt,
        exit_reason=verdict.exit_reason,
        error=verdict.error,
        started_at=now,
        finished_at=now,
    )
    if item.attempt >= job.policy.max_attempts:
        return outcome
    after = retry_seconds(
        verdict.exit_reason, None, job.policy.backoff, item.attempt, verdict.retry_after, awaited=False
    )
    return outcome if after is None else replace(outcome, not_before=now + after)


def _usage(verdict: Verdict, services: ItemServices) -> Usage:
    if not services.fetches:
        return Usage(
            wall_ms=round(verdict.wall_ms, 3),
            cpu_ms=verdict.cpu_ms,
            memory_mb=round(verdict.memory_mb, 1),
            output_bytes=verdict.output_bytes,
            log_bytes=verdict.log_bytes,
            records=verdict.records,
        )
    return Usage(
        wall_ms=round(verdict.wall_ms, 3),
        cpu_ms=verdict.cpu_ms,
        memory_mb=round(verdict.memory_mb, 1),
        fetches=services.fetches,
        requests=services.spent.requests,
        # An engine that replays recorded pages keeps no books.
        bytes_received=max(services.spent.bytes, services.bytes_received),
        bytes_by_class=services.bytes_by_class,
        output_bytes=verdict.output_bytes,
        log_bytes=verdict.log_bytes,
        records=verdict.records,
    )


def _short(error: RunError | None) -> RunError | None:
    if error is None or (len(error.message) <= MAX_WORDS and len(error.traceback) <= MAX_WORDS):
        return error
    return replace(error, message=error.message[:MAX_WORDS], traceback=error.traceback[-MAX_WORDS:])


def _media(encoding: str) -> str:
    return f"text/html; charset={encoding}"
