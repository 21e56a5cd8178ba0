"""One run, as a recipe: resolve, prepare, run, check, keep, tell."""

import asyncio
import time
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.builtin import Builtin
from scrapeyard.engines.port import HttpEngine
from scrapeyard.errors import (
    BadRequest,
    FetchFailed,
    SandboxError,
    ScraperInvalid,
    ScraperNotFound,
    ScrapeyardError,
    Unavailable,
)
from scrapeyard.model import Delivery, ExitReason, Limits, Outcome, RunError, Scraper, Timing, Usage
from scrapeyard.queues import channels
from scrapeyard.queues.port import Queue
from scrapeyard.repository.port import Catalogue
from scrapeyard.repository.schemas import InputChecker
from scrapeyard.repository.secrets import redact
from scrapeyard.sandbox.port import Sandbox, Verdict, Work
from scrapeyard.telemetry.events import get_log
from scrapeyard.worker.pausing import Pausing
from scrapeyard.worker.prepare import Prepared, Preparer
from scrapeyard.worker.retrying import postponed, with_retry
from scrapeyard.worker.services import RunServices
from scrapeyard.worker.slots import Seat

log = get_log("worker")
INLINE_RESULT = 64 * 1024
"""A larger result goes to the blob store and streams back from there."""
_REFUSALS: dict[type[ScrapeyardError], ExitReason] = {
    ScraperNotFound: ExitReason.SCRAPER_NOT_FOUND,
    BadRequest: ExitReason.SCRAPER_NOT_FOUND,
    ScraperInvalid: ExitReason.SCRAPER_INVALID,
}


class Executor:
    """Runs deliveries. Holds no state between them."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        preparer: Preparer,
        sandbox: Sandbox,
        engine: HttpEngine,
        blobs: Blobs,
        queue: Queue,
        builtins: dict[str, Builtin],
        checker: InputChecker,
        worker_id: str,
    ) -> None:
        self._catalogue = catalogue
        self._preparer = preparer
        self._sandbox = sandbox
        self._engine = engine
        self._blobs = blobs
        self._queue = queue
        self._builtins = builtins
        self._checker = checker
        self._worker_id = worker_id

    async def execute(self, delivery: Delivery, seat: Seat | None = None) -> Outcome:
        """From delivery to outcome. Never raises but CancelledError; by then the child is gone.

        With a `seat`, the run leaves it while its packages are installed.
        """
        outcome = self._begun(delivery)
        began = time.perf_counter()
        try:
            scraper = await self._find(delivery.scraper, seat)
            outcome = _resolved(outcome, scraper, _since(began))
            prepared = await self._preparer.prepare(scraper, seat)
        except Exception as error:  # noqa: BLE001 - a fault of ours must end the run, never the worker
            return _ended(self._refused(outcome, error, delivery))
        limits = _limits(delivery, scraper)
        services = RunServices(
            delivery,
            prepared,
            engine=self._engine,
            blobs=self._blobs,
            tell=lambda message: self._tell(delivery.run_id, message),
            pausing=Pausing(seat, limits.wall_seconds),
        )
        try:
            verdict = await self._run(delivery, prepared, limits, services)
        finally:
            await services.close()
        outcome = _account(outcome, prepared, verdict, services)
        outcome = await self._keep_large(outcome)
        outcome = _ended(outcome)
        later = postponed(outcome, delivery, services.come_back, outcome.finished_at) if seat else None
        return later or with_retry(outcome, delivery, verdict.retry_after)

    async def _find(self, wanted: str, seat: Seat | None) -> Scraper:
        """From memory. A version that is not known here yet is asked for, outside the slot."""
        try:
            return self._catalogue.resolve(wanted)
        except (ScraperNotFound, Unavailable):
            if seat is None:
                return await self._catalogue.obtain(wanted)
        async with seat.left():
            return await self._catalogue.obtain(wanted)

    def _begun(self, delivery: Delivery) -> Outcome:
        now = time.time()
        return Outcome(
            run_id=delivery.run_id,
            attempt=delivery.attempt,
            exit_reason=ExitReason.INTERNAL_ERROR,
            worker_id=self._worker_id,
            started_at=now,
            timing=Timing(queue_ms=round(max(0.0, now - delivery.queued_at) * 1000, 2)),
        )

    def _refused(self, outcome: Outcome, error: Exception, delivery: Delivery) -> Outcome:
        """A run that could not begin."""
        if not isinstance(error, ScrapeyardError):
            error = self._fault(delivery, error)
        reason = _REFUSALS.get(type(error), ExitReason.INTERNAL_ERROR)
        ended = replace(outcome, exit_reason=reason, error=RunError(message=error.message))
        return with_retry(ended, delivery, error.retry_after if isinstance(error, Unavailable) else None)

    def _fault(self, delivery: Delivery, error: Exception) -> SandboxError:
        log.error("worker.fault", run=delivery.run_id, error=repr(error), exc_info=error)
        return SandboxError(f"a fault in the worker: {type(error).__name__}; its log has the rest")

    async def _run(self, delivery: Delivery, prepared: Prepared, limits: Limits, services: RunServices) -> Verdict:
        scraper = prepared.scraper
        try:
            if scraper.is_builtin:
                return await self._run_builtin(delivery, scraper, limits, services)
            work = Work(
                run_id=delivery.run_id,
                attempt=delivery.attempt,
                input=delivery.input,
                limits=limits,
                config=prepared.config,
                environment=prepared.environment,
            )
            return self._check(scraper, await self._sandbox.run(scraper, work, services))
        except SandboxError as error:
            return Verdict(exit_reason=ExitReason.INTERNAL_ERROR, error=RunError(message=error.message))
        except Exception as error:  # noqa: BLE001 - a fault of ours must end the run, never the worker
            message = self._fault(delivery, error).message
            return Verdict(exit_reason=ExitReason.INTERNAL_ERROR, error=RunError(message=message))

    async def _run_builtin(
        self, delivery: Delivery, scraper: Scraper, limits: Limits, services: RunServices
    ) -> Verdict:
        began = time.perf_counter()
        builtin = self._builtins[scraper.ref.id]
        try:
            async with asyncio.timeout(limits.wall_seconds):
                result = await builtin.run(services.fetch, msgspec.json.decode(delivery.input))
        except TimeoutError:
            error = RunError(message=f"the run took longer than {limits.wall_seconds:g} s")
            return Verdict(exit_reason=ExitReason.TIMEOUT, error=error, wall_ms=_since(began))
        except FetchFailed as failure:
            error = RunError(message=failure.message, type="FetchError", site_status=failure.site_status)
            after = failure.details.get("retry_after")
            return Verdict(exit_reason=failure.reason, error=error, wall_ms=_since(began), retry_after=after)
        raw = msgspec.json.encode(result)
        return Verdict(exit_reason=ExitReason.SUCCEEDED, result=Raw(raw), wall_ms=_since(began), output_bytes=len(raw))

    def _check(self, scraper: Scraper, verdict: Verdict) -> Verdict:
        """A result that breaks its scraper's own schema is not a success."""
        if verdict.result is None or scraper.output_schema is None:
            return verdict
        faults = self._checker.output_errors(scraper, msgspec.json.decode(verdict.result))
        if not faults:
            return verdict
        first = faults[0]
        where = first["path"] or "the result"
        error = RunError(
            message=f"the result breaks the output schema: {where}: {first['message']}", details={"errors": faults}
        )
        return replace(verdict, exit_reason=ExitReason.BAD_RESULT, result=None, error=error)

    async def _keep_large(self, outcome: Outcome) -> Outcome:
        if outcome.result is None or outcome.result_bytes <= INLINE_RESULT:
            return outcome
        began = time.perf_counter()
        key = keys.result(outcome.run_id, outcome.attempt)
        try:
            await self._blobs.put(key, bytes(outcome.result), "application/json")
        except Unavailable as error:
            failed = RunError(message=f"the result could not be kept: {error.message}")
            return replace(outcome, exit_reason=ExitReason.INTERNAL_ERROR, result=None, result_bytes=0, error=failed)
        timing = replace(outcome.timing, record_ms=round(_since(began), 2))
        return replace(outcome, result=None, result_key=key, timing=timing)

    async def _tell(self, run_id: str, message: dict[str, Any]) -> None:
        """Live events are a courtesy: when the queue is away nobody hears them, and `/logs` has them later."""
        try:
            await self._queue.send(channels.events(run_id), msgspec.json.encode(message))
        except Unavailable as error:
            log.debug("worker.event_lost", run=run_id, error=error.message)


def _limits(delivery: Delivery, scraper: Scraper) -> Limits:
    if delivery.timeout_seconds is None:
        return scraper.limits
    return replace(scraper.limits, wall_seconds=min(scraper.limits.wall_seconds, delivery.timeout_seconds))


def _resolved(outcome: Outcome, scraper: Scraper, ms: float) -> Outcome:
    return replace(outcome, scraper=scraper.ref, timing=replace(outcome.timing, resolve_ms=round(ms, 3)))


def _account(outcome: Outcome, prepared: Prepared, verdict: Verdict, services: RunServices) -> Outcome:
    usage = Usage(
        wall_ms=round(verdict.wall_ms, 2),
        cpu_ms=round(verdict.cpu_ms, 2),
        memory_mb=round(verdict.memory_mb, 1),
        fetches=services.fetches,
        requests=services.ledger.spent.requests,
        # An engine that replays recorded pages keeps no books.
        bytes_received=max(services.ledger.spent.bytes, services.bytes_received),
        bytes_by_class=dict(services.ledger.bytes_by_class),
        output_bytes=verdict.output_bytes,
        log_bytes=verdict.log_bytes,
        records=verdict.records,
    )
    spent = replace(
        outcome.timing,
        environment_ms=round(prepared.environment_ms, 3),
        child_start_ms=round(verdict.child_start_ms, 3),
        forked_ahead=verdict.forked_ahead,
        script_ms=round(verdict.wall_ms, 2),
        fetch_ms=round(services.fetch_ms, 2),
    )
    return replace(
        outcome,
        exit_reason=verdict.exit_reason,
        result=verdict.result,
        result_bytes=0 if verdict.result is None else len(bytes(verdict.result)),
        error=_told(verdict.error, prepared.hidden),
        usage=usage,
        timing=spent,
        fetches=tuple(services.traces),
        logs=tuple(services.logs),
        logs_cut=verdict.logs_cut,
        artifacts=tuple(services.artifacts.values()),
    )


def _told(error: RunError | None, hidden: tuple[str, ...]) -> RunError | None:
    """The same without the values of secrets."""
    if error is None or not hidden:
        return error
    return replace(
        error,
        message=redact(error.message, hidden),
        traceback=redact(error.traceback, hidden),
        details=redact(error.details, hidden),
    )


def _ended(outcome: Outcome) -> Outcome:
    return replace(outcome, finished_at=time.time())


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1000
