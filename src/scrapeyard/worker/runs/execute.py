"""One run, step by step: resolve, prepare, run, check, save, report."""

import time
from typing import Any

import msgspec
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.builtin import Builtin
from scrapeyard.engines.port import HttpEngine
from scrapeyard.errors import (
    ScraperNotFound,
    Unavailable,
)
from scrapeyard.model import Delivery, ExitReason, Limits, Outcome, RunError, Scraper, Timing, Usage
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.port import Catalogue
from scrapeyard.sandbox.port import Sandbox, Verdict, Work
from scrapeyard.telemetry.events import get_log
from scrapeyard.worker.runs.environments import Prepared, Preparer
from scrapeyard.worker.runs.retrying import postponed, with_retry
from scrapeyard.worker.runs.services import RunServices
from scrapeyard.worker.runs.slots import SlotLease
from scrapeyard.worker.runs.steps import checked, limits_of, refused, run_builtin, since, without_secrets
from scrapeyard.worker.runs.waiting import SiteWait

log = get_log("worker")
INLINE_RESULT = 64 * 1024
"""A larger result goes to the blob store and streams back from there."""


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

    async def execute(self, delivery: Delivery, seat: SlotLease | None = None) -> Outcome:
        """Run a delivery to its outcome. Raises only CancelledError; the child is gone by then.

        With a `seat`, the run releases its slot while its packages are installed.
        """
        outcome = self._begun(delivery)
        began = time.perf_counter()
        try:
            scraper = await self._find(delivery.scraper, seat)
            outcome = _resolved(outcome, scraper, since(began))
            prepared = await self._preparer.prepare(scraper, seat)
        except Exception as error:  # noqa: BLE001 - a fault of ours must end the run, never the worker
            return _ended(self._refused(outcome, error, delivery))
        limits = limits_of(scraper, delivery.timeout_seconds)
        services = RunServices(
            delivery,
            prepared,
            engine=self._engine,
            blobs=self._blobs,
            tell=lambda message: self._report(delivery.run_id, message),
            pausing=SiteWait(seat, limits.wall_seconds),
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

    async def _find(self, wanted: str, seat: SlotLease | None) -> Scraper:
        """The scraper, from memory. Obtains a version that is not known yet, without holding the slot."""
        try:
            return self._catalogue.resolve(wanted)
        except (ScraperNotFound, Unavailable):
            if seat is None:
                return await self._catalogue.obtain(wanted)
        async with seat.released():
            return await self._catalogue.obtain(wanted)

    async def prepare(self, wanted: str, seat: SlotLease | None) -> Prepared:
        """The scraper, with its config and packages. Raises the errors that `steps.refused` explains."""
        return await self._preparer.prepare(await self._find(wanted, seat), seat)

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
        """The outcome of a run that could not begin."""
        verdict = refused(delivery.run_id, error)
        ended = replace(outcome, exit_reason=verdict.exit_reason, error=verdict.error)
        return with_retry(ended, delivery, verdict.retry_after)

    async def _run(self, delivery: Delivery, prepared: Prepared, limits: Limits, services: RunServices) -> Verdict:
        scraper = prepared.scraper
        try:
            if scraper.is_builtin:
                return await run_builtin(self._builtins[scraper.ref.id], services.fetch, delivery.input, limits)
            work = Work(
                run_id=delivery.run_id,
                attempt=delivery.attempt,
                input=delivery.input,
                limits=limits,
                config=prepared.config,
                environment=prepared.environment,
            )
            return checked(self._checker, scraper, await self._sandbox.run(scraper, work, services))
        except Exception as error:  # noqa: BLE001 - a fault of ours must end the run, never the worker
            return replace(refused(delivery.run_id, error), exit_reason=ExitReason.INTERNAL_ERROR, retry_after=None)

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
        timing = replace(outcome.timing, record_ms=round(since(began), 2))
        return replace(outcome, result=None, result_key=key, timing=timing)

    async def _report(self, run_id: str, message: dict[str, Any]) -> None:
        """Publish a live event, best effort: if the queue is away it is lost, and `/logs` has it later."""
        try:
            await self._queue.send(messages.events(run_id), msgspec.json.encode(message))
        except Unavailable as error:
            log.debug("worker.event_lost", run=run_id, error=error.message)


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
        error=without_secrets(verdict.error, prepared.hidden),
        usage=usage,
        timing=spent,
        fetches=tuple(services.traces),
        logs=tuple(services.logs),
        logs_cut=verdict.logs_cut,
        artifacts=tuple(services.artifacts.values()),
    )


def _ended(outcome: Outcome) -> Outcome:
    return replace(outcome, finished_at=time.time())
