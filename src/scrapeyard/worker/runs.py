"""A run: find its scraper, prepare it, make one attempt. Its log and its fetches are published live and all saved."""

import time
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.engines.politeness.verdicts import wait_asked_by
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import (
    Artifact,
    Delivery,
    ExitReason,
    FetchTrace,
    LogLine,
    Outcome,
    RunError,
    RunProgress,
    RunWait,
    StepTrace,
    Timing,
    WaitReason,
    may_pass,
    pinned_ref,
)
from scrapeyard.queues.port import Queue
from scrapeyard.sandbox.port import Verdict
from scrapeyard.telemetry.events import get_log
from scrapeyard.worker.attempts.attempt import ScrapeAttempt
from scrapeyard.worker.attempts.parts import AttemptParts, AttemptPlan
from scrapeyard.worker.attempts.retrying import MOST_SECONDS, NextAttempt, RetryRules
from scrapeyard.worker.attempts.slots import SlotLease
from scrapeyard.worker.attempts.steps import MAX_TRACES, fetch_trace, limits_of, refused, since, step_trace
from scrapeyard.worker.attempts.waiting import SiteWait
from scrapeyard.worker.live_events import TOLD_SECONDS, LiveEvents, NoteProgress

log = get_log("worker")
INLINE_RESULT = 64 * 1024
"""A larger result goes to the blob store and streams back from there."""
MAX_SITE = 255


class Executor:
    """Runs deliveries. Holds no state between them."""

    def __init__(self, parts: AttemptParts, queue: Queue, worker_id: str) -> None:
        self._parts = parts
        self._queue = queue
        self._worker_id = worker_id
        self._live: dict[str, LiveEvents] = {}

    async def execute(self, delivery: Delivery, seat: SlotLease | None = None) -> Outcome:
        """Run a delivery to its outcome. Raises only CancelledError; the child is gone by then.

        With a `seat`, the run releases its slot while its packages are installed.
        """
        outcome = self._begun(delivery)
        retries = RetryRules(max_attempts=delivery.max_attempts, backoff=delivery.fetching.backoff)
        began = time.perf_counter()
        try:
            scraper = await self._parts.find(delivery.scraper, delivery.digest, seat)
            timing = replace(outcome.timing, resolve_ms=round(since(began), 3))
            outcome = replace(outcome, scraper=scraper.ref, timing=timing)
            prepared = await self._parts.prepare(scraper, seat)
        except Exception as error:  # noqa: BLE001 - a fault of ours must end the run, never the worker
            return _ended(outcome, verdict := refused(delivery.run_id, error), retries.after(verdict, delivery.attempt))
        plan = AttemptPlan(
            prepared=prepared,
            limits=limits_of(scraper, delivery.timeout_seconds),
            caller=Caller(scraper=prepared.scraper, client=delivery.owner, policy=delivery.fetching),
            retries=retries,
            site_wait=SiteWait(seat),
            warm=scraper.isolation == "warm" and delivery.fetching.isolation != "run",
        )
        live = self._live[delivery.run_id] = LiveEvents(self._queue, delivery, self._note(delivery))
        latest_turn = delivery.created_at + MOST_SECONDS if seat else 0.0
        try:
            return await RunAttempt(self._parts, plan, delivery, outcome, live, latest_turn).run()
        finally:
            self._live.pop(delivery.run_id, None)
            await plan.site_wait.close()
            await live.stop()

    def replay(self, run_id: str) -> None:
        """Publish the lines that this run has written so far again. Nothing happens if it is another worker's."""
        if live := self._live.get(run_id):
            live.replay()

    def _note(self, delivery: Delivery) -> NoteProgress | None:
        """What writes the progress of a run while it goes on; None if nothing keeps it."""
        runs = self._parts.runs
        if runs is None:
            return None
        return lambda progress, wait: runs.note_progress(delivery.run_id, delivery.attempt, progress, wait)

    def _begun(self, delivery: Delivery) -> Outcome:
        now = time.time()
        return Outcome(
            run_id=delivery.run_id,
            attempt=delivery.attempt,
            exit_reason=ExitReason.INTERNAL_ERROR,
            scraper=pinned_ref(delivery.scraper, delivery.digest),
            worker_id=self._worker_id,
            started_at=now,
            timing=Timing(queue_ms=round(max(0.0, now - delivery.queued_at) * 1000, 2)),
        )


class RunAttempt(ScrapeAttempt[Outcome]):
    """One attempt at a run."""

    def __init__(  # noqa: PLR0917 - in the order in which they come about
        self,
        parts: AttemptParts,
        plan: AttemptPlan,
        delivery: Delivery,
        begun: Outcome,
        live: LiveEvents,
        latest_turn: float,
    ) -> None:
        super().__init__(parts, plan, delivery.run_id, delivery.attempt, delivery.input)
        self._begun = begun
        self._live = live
        self._latest = latest_turn
        self._answer_by = delivery.answer_by
        self._traces: list[FetchTrace] = []
        self._steps: list[StepTrace] = []
        self._fetch_ms = 0.0
        self._record_ms = 0.0

    async def _fetch_page(self, request: FetchRequest) -> FetchResponse:
        """Any status is data here. One that may pass is asked for again, as often as the policy says and as long as
        the caller waits."""
        tries = 1
        response = await self.fetch(request)
        while may_pass(response.status) and (seconds := self._until_retry(response, tries)) is not None:
            words = f"the page is asked for again in {seconds:.0f} s, since the site answered {response.status}"
            self._tell_wait("retry", urlsplit(request.url).hostname or "", seconds, words)
            await self.pause(seconds)
            response = await self.fetch(request)
            tries += 1
        return response

    def _until_retry(self, response: FetchResponse, tries: int) -> float | None:
        """Seconds until the page is asked for again; None if the caller would not wait so long."""
        error = RunError(message="", site_status=response.status)
        after = wait_asked_by(response) or None
        retry = self.plan.retries.after(
            Verdict(exit_reason=ExitReason.FETCH_STATUS, error=error, retry_after=after), tries
        )
        if retry is None:
            return None
        took = response.elapsed_ms / 1000
        left = self.plan.limits.wall_seconds - since(self.began) / 1000
        if self._answer_by is not None:
            left = min(left, self._answer_by - time.time())
        return retry.seconds if retry.seconds + 2 * took < left else None

    def _latest_turn(self) -> float:
        return self._latest

    def _on_wait(self, site: str, seconds: float) -> None:
        self._tell_wait("site_turn", site, seconds, f"the site's turn comes in {seconds:.0f} s")

    def _tell_wait(self, reason: WaitReason, site: str, seconds: float, words: str) -> None:
        """Tell those who watch the run, if it is worth a word."""
        if seconds >= TOLD_SECONDS:
            wait = RunWait(reason=reason, site=site[:MAX_SITE], until=time.time() + seconds, message=words)
            self._live.add_wait(wait, seconds)

    def _add_line(self, line: LogLine) -> None:
        self.logs.append(line)
        self._live.add_line(line)

    def progress(self, progress: RunProgress) -> None:
        """Take note of how far the script is, and tell those who listen."""
        super().progress(progress)
        if self.told is not None:
            self._live.add_progress(self.told)

    def _on_fetched(self, request: FetchRequest, started: float, answer: FetchResponse | FetchFailed) -> None:
        self._fetch_ms += since(started)
        self._live.end_wait()
        if len(self._traces) < MAX_TRACES:
            self._traces.append(fetch_trace(request, started, self.began, answer, self._hide))
            self._live.add_fetch(self._traces[-1])
        elif self._live.has_room:
            self._live.add_fetch(fetch_trace(request, started, self.began, answer, self._hide))

    def stepped(self, name: str, started: float, error: str) -> None:
        """Note a step in a browser, for the trace."""
        if len(self._steps) < MAX_TRACES:
            self._steps.append(step_trace(name, started, self.began, error, self._hide))

    async def _put(self, name: str, content_type: str, data: bytes) -> Artifact:
        key = keys.artifact(self.name, self.number, name)
        await self.parts.blobs.put(key, data, content_type)
        return Artifact(name=name, content_type=content_type, size=len(data), key=key)

    async def _put_stream(self, name: str, content_type: str, pieces: AsyncIterator[bytes]) -> Artifact:
        key = keys.artifact(self.name, self.number, name)
        size = await self.parts.blobs.put_stream(key, pieces, content_type)
        return Artifact(name=name, content_type=content_type, size=size, key=key)

    async def _save(self, verdict: Verdict) -> None:
        if verdict.result is None or self.result_bytes <= INLINE_RESULT:
            return
        began = time.perf_counter()
        key = keys.result(self.name, self.number)
        await self.parts.blobs.put(key, bytes(verdict.result), "application/json")
        self.result_key = key
        self._record_ms = since(began)

    def _outcome(self, verdict: Verdict, retry: NextAttempt | None) -> Outcome:
        timing = replace(
            self._begun.timing,
            environment_ms=round(self.plan.prepared.environment_ms, 3),
            child_start_ms=round(verdict.child_start_ms, 3),
            forked_ahead=verdict.forked_ahead,
            script_ms=round(verdict.wall_ms, 2),
            fetch_ms=round(self._fetch_ms, 2),
            record_ms=round(self._record_ms, 2),
        )
        outcome = replace(
            self._begun,
            result=None if self.result_key else verdict.result,
            result_key=self.result_key,
            result_bytes=self.result_bytes,
            usage=self.usage(verdict),
            timing=timing,
            fetches=tuple(self._traces),
            steps=tuple(self._steps),
            logs=tuple(self.logs),
            logs_cut=verdict.logs_cut,
            artifacts=tuple(self.artifacts.values()),
            progress=self.told,
        )
        return _ended(outcome, verdict, retry)


def _ended(outcome: Outcome, verdict: Verdict, retry: NextAttempt | None) -> Outcome:
    return replace(
        outcome,
        exit_reason=verdict.exit_reason,
        error=verdict.error,
        finished_at=time.time(),
        retry_after=retry.seconds if retry else None,
        postponed=retry is not None and retry.postponed,
    )
