"""The main path: a call becomes runs, the runs are published to the queue, and their outcomes become the response.

A waiting call writes to no disk first: its runs are published, and their rows follow in the recorder's next batch. A
call that is answered with a handle is durable before the answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response
from starlette.types import Receive

from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import (
    IdempotencyConflict,
    QueueUnavailable,
    QueueUncertain,
    ScrapeyardError,
    StoreUnavailable,
    StoreUncertain,
    Unavailable,
)
from scrapeyard.gateway.http import problems
from scrapeyard.gateway.http.answers import respond
from scrapeyard.gateway.http.problems import Problem, remedy_of
from scrapeyard.gateway.runs import answers, documents
from scrapeyard.gateway.runs.admission import Backlog, Lanes, QueueShare, RunBuilder
from scrapeyard.gateway.runs.answers import Cancelling, Lookup
from scrapeyard.gateway.runs.calls import ScrapeRequest
from scrapeyard.gateway.runs.documents import Handle, Handles, Links
from scrapeyard.gateway.runs.receivers import WebhookValidator
from scrapeyard.gateway.runs.waiting import Call, Waiters, Wake
from scrapeyard.model import ExitReason, Outcome, Run, RunError, RunStatus, may_help_later
from scrapeyard.queues.deliveries import deliver
from scrapeyard.queues.port import Queue
from scrapeyard.repository.port import Catalogue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.runs import Ending, KeyedAnswer
from scrapeyard.store.ports.store import Store
from scrapeyard.store.recorder import Recorder
from scrapeyard.telemetry.events import bind, get_log
from scrapeyard.telemetry.spans import parse_traceparent
from scrapeyard.telemetry.traces import TraceExporter

log = get_log("gateway")


class RunProblem(Problem, frozen=True, kw_only=True):
    """A run that ended badly, told to the call that waited for it."""

    id: Annotated[str, Meta(description="The run.")] | UnsetType = UNSET
    scraper: str | UnsetType = UNSET
    version: str | UnsetType | None = UNSET
    digest: str | UnsetType | None = UNSET
    exit_reason: ExitReason | UnsetType = UNSET
    partial: (
        Annotated[bool, Meta(description="Whether the run left records: GET `links.self` has them.")] | UnsetType
    ) = UNSET
    error: RunError | UnsetType | None = UNSET
    links: Links | UnsetType = UNSET
    runs: Annotated[list[Handle], Meta(description="Of a call with `urls`.")] | UnsetType = UNSET


class Scraping:
    """Handles scrape calls. An accepted call ends in a recorded outcome. A refused one leaves nothing behind, unless
    queue or database went away before they answered: then its runs are cancelled, and the answer names them, since
    nobody can know whether the cancel comes in time."""

    def __init__(
        self,
        *,
        settings: Settings,
        queue: Queue,
        store: Store,
        recorder: Recorder,
        blobs: Blobs,
        catalogue: Catalogue,
        gateway_id: str,
        clock: Callable[[], float],
        waiters: Waiters,
        lookup: Lookup,
        cancelling: Cancelling,
        traces: TraceExporter | None = None,
    ) -> None:
        self._queue = queue
        self._store = store
        self._recorder = recorder
        self._blobs = blobs
        self._gateway_id = gateway_id
        self._clock = clock
        self._waiters = waiters
        self._lookup = lookup
        self._cancelling = cancelling
        self._traces = traces
        self._receivers = WebhookValidator(settings.webhooks, store.sealer)
        lanes = Lanes(store.workers, settings)
        self._builder = RunBuilder(catalogue, lanes, settings.repository.default, queue)
        self._backlog = Backlog(queue, settings.gateway.max_backlog)
        self._shares = QueueShare(store.runs, settings.gateway.max_backlog, settings.clients.queue_share)

    async def answer(self, asked: ScrapeRequest, receive: Receive) -> Response:
        """Carry out a call. `receive` is the request's, its body read: it reports when the caller disconnects."""
        caller = parse_traceparent(asked.traceparent)
        bind(trace=caller.trace_id if caller is not None else "")
        if self._traces is None or caller is None or not caller.sampled:
            return await self._carry_out(asked, receive)
        own, began, status = caller.child(), self._clock(), 500
        try:
            response = await self._carry_out(replace(asked, span=own.header()), receive)
            status = response.status_code
        except ScrapeyardError as error:
            status = getattr(error, "status", status)
            raise
        finally:
            runs = len(asked.call.urls or ("",))
            self._traces.call_ended(own, caller.span_id, began, self._clock(), status=status, runs=runs)
        return response

    async def _carry_out(self, asked: ScrapeRequest, receive: Receive) -> Response:
        runs = await self._builder.build(asked, self._gateway_id if asked.wait else "", self._clock())
        lane = runs[0].lane
        await self._backlog.admit(lane, len(runs))
        await self._shares.admit(lane, runs[0].owner, len(runs), self._backlog.waiting(lane))
        await self._watch(asked, runs)
        if asked.key is not None:
            return await self._keyed(asked, asked.key, runs, receive)
        if asked.wait == 0:
            return await self._at_once(asked, runs)
        return await self._waited(asked, runs, receive)

    async def _watch(self, asked: ScrapeRequest, runs: Sequence[Run]) -> None:
        """Write the watch before the runs, so that no end is missed. A watch of runs never written is dropped later."""
        if asked.call.webhook is not None:
            webhook = self._receivers.accept(asked.call.webhook)
            await self._store.webhooks.watch_runs([run.id for run in runs], webhook, self._clock())

    async def _waited(self, asked: ScrapeRequest, runs: Sequence[Run], receive: Receive) -> Response:
        with self._waiters.join(runs) as call:
            try:
                await self._publish(runs, asked.wait)
            except QueueUncertain as error:
                self._withdraw(runs)
                return _maybe_accepted(asked, runs, error)
            try:
                await self._record(runs)
            except StoreUnavailable as error:
                return _maybe_accepted(asked, runs, error)
            return await self._conclude(asked, call, await call.wait(asked.wait, receive))

    async def _at_once(self, asked: ScrapeRequest, runs: Sequence[Run]) -> Response:
        """The runs are durable once they are in the store, so a queue that is away only delays them."""
        try:
            await self._store.runs.add(runs)
        except StoreUncertain as error:
            self._withdraw(runs)
            return _maybe_accepted(asked, runs, error)
        await self._publish_durable(runs)
        return self._accepted(asked, runs)

    async def _keyed(self, asked: ScrapeRequest, key: str, runs: Sequence[Run], receive: Receive) -> Response:
        """Claim the key first. That also makes the runs durable, so a queue that is away only delays them."""
        ours = KeyedAnswer(
            key=key, body_digest=asked.digest, run_ids=tuple(run.id for run in runs), created_at=self._clock()
        )
        if asked.wait:
            await self._queue.ping()  # without a queue the caller would wait in vain; the key stays free
        with self._waiters.join(runs if asked.wait else ()) as call:
            try:
                held = await self._store.keys.remember(ours, runs)
            except StoreUncertain as error:
                return _maybe_accepted(asked, runs, error)
            if held.run_ids == ours.run_ids:
                await self._publish_durable(runs, asked.wait)
                if not asked.wait:
                    return self._accepted(asked, runs)
                return await self._conclude(asked, call, await call.wait(asked.wait, receive))
        return await self._replay(asked, held, receive)

    async def _replay(self, asked: ScrapeRequest, held: KeyedAnswer, receive: Receive) -> Response:
        if held.body_digest != asked.digest:
            raise IdempotencyConflict("this Idempotency-Key was used with another body")
        runs = [await self._lookup.get(run_id) for run_id in held.run_ids]
        if not asked.wait:
            return self._accepted(asked, runs, replayed=True)
        with self._waiters.join(runs) as call:
            return await self._conclude(asked, call, await call.wait(asked.wait, receive), replayed=True)

    async def _publish(self, runs: Sequence[Run], wait: float = 0) -> None:
        answer_by = self._clock() + wait if wait else None
        waiting = await self._queue.publish([deliver(run, answer_by=answer_by) for run in runs])
        self._backlog.note(runs[0].lane, waiting)

    async def _publish_durable(self, runs: Sequence[Run], wait: float = 0) -> None:
        try:
            await self._publish(runs, wait)
        except QueueUnavailable as error:
            self._backlog.defer(runs[0].lane, len(runs))
            log.warning("gateway.publish_deferred", count=len(runs), error=error.message)

    def _withdraw(self, runs: Sequence[Run]) -> None:
        """Record runs of a refused call as cancelled: a worker may have them nevertheless, and its outcome must not
        count for a call that was told to come again."""
        now = self._clock()
        error = RunError(message="queue or database went away while the call was taken; the caller was told so")
        for run in runs:
            outcome = Outcome(
                run_id=run.id, attempt=run.attempt, exit_reason=ExitReason.CANCELLED, error=error, finished_at=now
            )
            self._recorder.finish(Ending(run=run, outcome=outcome))

    async def _record(self, runs: Sequence[Run]) -> None:
        """Buffer the rows of published runs. If the buffer is full the call is refused and its runs are cancelled."""
        try:
            for run in runs:
                self._recorder.accept(run)
        except StoreUnavailable:
            for run in runs:
                await self._cancelling.signal(run.id)
            raise

    async def _conclude(self, asked: ScrapeRequest, call: Call, wake: Wake, replayed: bool = False) -> Response:
        if wake is Wake.ENDED:
            return await self._ended(asked, call.runs, replayed)
        asked_then = {Wake.GONE: asked.call.on_disconnect, Wake.TIMEOUT: asked.call.on_timeout}
        if asked_then.get(wake) == "cancel":
            return await self._give_up(asked, call, replayed)
        if asked.key is None and (error := await self._not_durable(call)) is not None:
            return _maybe_accepted(asked, call.runs, error)
        if call.open:
            return self._accepted(asked, await self._standing(asked, call), replayed)
        return await self._ended(asked, call.runs, replayed)

    async def _give_up(self, asked: ScrapeRequest, call: Call, replayed: bool) -> Response:
        try:
            runs = await self._cancel(call)
        except StoreUnavailable as error:
            self._withdraw(call.open)
            return _maybe_accepted(asked, call.runs, error)
        if all(run.status.is_final and run.status is not RunStatus.CANCELLED for run in runs):
            return await self._ended(asked, runs, replayed)
        return self._cancelled(asked, runs, replayed)

    async def _standing(self, asked: ScrapeRequest, call: Call) -> Sequence[Run]:
        """A single run in its current state, or as last known if the database is away: it is durable, so its caller
        gets its handle. Of several runs only the outcomes are known here."""
        if asked.many:
            return call.runs
        try:
            return [await self._lookup.get(run.id) for run in call.runs]
        except StoreUnavailable:
            return call.runs

    async def _not_durable(self, call: Call) -> StoreUnavailable | None:
        """None once the runs are in the database or have ended. Otherwise why they are not, and they are cancelled."""
        try:
            await self._recorder.flush()
        except StoreUnavailable as error:
            lost = call.open  # the database may be away for so long that runs end meanwhile
            self._withdraw(lost)
            for run in lost:
                await self._cancelling.signal(run.id)
            return error if lost else None
        return None

    async def _cancel(self, call: Call) -> tuple[Run, ...]:
        now = self._clock()
        for run in call.open:
            stands = await self._cancelling.cancel(run.id, now)
            if stands is not None and stands.status.is_final:
                call.settle(stands)
        return call.runs

    async def _ended(self, asked: ScrapeRequest, runs: Sequence[Run], replayed: bool) -> Response:
        headers = _headers(asked, replayed)
        if asked.many:
            return await answers.answer_all(runs, self._blobs, headers)
        if documents.ended_badly(runs[0]):
            return problems.respond(_bad_end(runs[0]), headers)
        return await answers.answer(runs[0], self._blobs, headers)

    def _accepted(self, asked: ScrapeRequest, runs: Sequence[Run], replayed: bool = False) -> Response:
        headers = _headers(asked, replayed)
        handles = [documents.handle(run) for run in runs]
        if asked.many:
            return respond(Handles(runs=handles), 202, headers)
        return respond(handles[0], 202, headers | {"Location": handles[0].links.self})

    def _cancelled(self, asked: ScrapeRequest, runs: Sequence[Run], replayed: bool) -> Response:
        detail = f"not finished within {asked.wait:g} s, and cancelled as asked"
        of_runs = (
            {"runs": [documents.handle(run) for run in runs]}
            if asked.many
            else {"id": runs[0].id, "exit_reason": ExitReason.CANCELLED, "links": documents.links(runs[0].id)}
        )
        told = problems.problem("wait_timeout", 504, detail, retryable=True, kind=RunProblem, **of_runs)
        return problems.respond(told, _headers(asked, replayed))


def _maybe_accepted(asked: ScrapeRequest, runs: Sequence[Run], error: Unavailable) -> Response:
    """503: it is not known whether the call was taken. A call with a key keeps its runs, for the call that repeats it;
    an earlier call may hold the key, so they are not named."""
    detail = f"{error.message}; the call may have been taken"
    of_runs: dict[str, Any] = {}
    if asked.key is None:
        detail += ". Its runs are cancelled where that comes in time"
        one = {"id": runs[0].id, "links": documents.links(runs[0].id)}
        of_runs = {"runs": [documents.handle(run) for run in runs]} if asked.many else one
    told = problems.problem("maybe_accepted", 503, detail, retryable=True, kind=RunProblem, **of_runs)
    return problems.respond(told, _headers(asked, replayed=False) | problems.retry_after(error.retry_after))


def _bad_end(run: Run) -> RunProblem:
    reason = documents.exit_reason(run)
    scraper, version, digest = documents.what_ran(run)
    return RunProblem(
        type=problems.TYPE + reason.value,
        title=f"The run ended badly: {reason.value}",
        status=504 if reason.is_time_limit else 502,
        detail=run.error.message if run.error else f"the run ended: {reason.value}",
        code=reason.value,
        retryable=may_help_later(reason, run.error.site_status if run.error else None),
        remedy=remedy_of(reason),
        id=run.id,
        scraper=scraper,
        version=version,
        digest=digest,
        exit_reason=reason,
        partial=run.partial,
        error=run.error,
        links=documents.links(run.id),
    )


def _headers(asked: ScrapeRequest, replayed: bool) -> dict[str, str]:
    headers = {"traceparent": asked.traceparent}
    if asked.preference:
        headers["Preference-Applied"] = asked.preference
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    return headers
