"""Runs as responses; reading runs whose row is not written yet; cancelling runs."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

from msgspec.structs import replace
from starlette.responses import Response, StreamingResponse

from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import NotFound, QueueUnavailable, Swept
from scrapeyard.gateway.http import dialects
from scrapeyard.gateway.http.answers import JSON, respond
from scrapeyard.gateway.runs.documents import RunDocuments, encode, summary, whole
from scrapeyard.gateway.runs.waiting import Waiters
from scrapeyard.model import Cancel, Run, RunError, RunStatus
from scrapeyard.model.instants import instant
from scrapeyard.queues import messages
from scrapeyard.queues.deliveries import announce
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.runs import RunStore
from scrapeyard.store.recorder import Recorder
from scrapeyard.telemetry.events import get_log


async def answer(run: Run, blobs: Blobs, headers: dict[str, str] | None = None, *, also: bool = False) -> Response:
    """The whole run, as a 200; with `also`, its other names as well. Raises Swept if its result was removed."""
    check_swept(run, "results")
    if not _in_blobs(run):
        return respond(whole(run, also=also), 200, headers)
    return StreamingResponse(await _first(_pieces(run, blobs, also=also)), 200, headers, JSON)


async def answer_all(runs: Sequence[Run], blobs: Blobs, headers: dict[str, str] | None = None) -> Response:
    """Several whole runs, as a 200."""
    runs = [_without_result(run) if "results" in run.swept else run for run in runs]
    if not any(map(_in_blobs, runs)):
        return respond(RunDocuments(runs=[whole(run) for run in runs]), 200, headers)
    return StreamingResponse(await _first(_all_pieces(runs, blobs)), 200, headers, JSON)


def check_swept(run: Run, kind: str) -> None:
    """Raises Swept if retention has removed this kind of the run."""
    if kind in run.swept:
        raise Swept(f"retention removed the {kind} of run {run.id} at {instant(run.swept[kind])}")


def _in_blobs(run: Run) -> bool:
    return bool(run.result_key) and run.result is None


async def _all_pieces(runs: Sequence[Run], blobs: Blobs) -> AsyncGenerator[bytes]:
    bare = dialects.current().bare_lists
    yield b"[" if bare else b'{"runs":['
    for index, run in enumerate(runs):
        if index:
            yield b","
        if not _in_blobs(run):
            yield encode(whole(run))
            continue
        try:
            async with aclosing(_pieces(run, blobs)) as pieces:
                async for piece in pieces:
                    yield piece
        except Swept:
            yield encode(whole(_without_result(run)))
    yield b"]" if bare else b"]}"


async def _pieces(run: Run, blobs: Blobs, *, also: bool = False) -> AsyncGenerator[bytes]:
    stream = blobs.stream(run.result_key)
    try:
        first = await anext(stream, b"null")
    except NotFound:
        raise Swept(f"the result of run {run.id} is no longer in the blob store") from None
    yield encode(summary(run, also=also))[:-1] + b',"result":' + first
    async for piece in stream:
        yield piece
    yield b"}"


def _without_result(run: Run) -> Run:
    gone = RunError(message="the result is no longer in the blob store", type="ResultGone")
    return replace(run, error=run.error or gone)


async def _first(pieces: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """The same chunks, with the first already read: an unreachable store then gives a 503, not a truncated response."""
    first = await anext(pieces)

    async def chained() -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return chained()


BEHIND_SECONDS = 1.0
LOOK_SECONDS = 0.02


class Lookup:
    """Reads runs consistently with what this gateway has already answered, waiting up to BEHIND_SECONDS for the row."""

    def __init__(self, runs: RunStore, recorder: Recorder, waiters: Waiters) -> None:
        self._runs = runs
        self._recorder = recorder
        self._waiters = waiters

    async def get(self, run_id: str) -> Run:
        """The whole run. Raises NotFound."""
        run = await self._runs.get(run_id)
        if run is None and self._recorder.pending:
            await self._recorder.flush()
            run = await self._runs.get(run_id)
        if (run is None or not run.status.is_final) and self._waiters.ended_lately(run_id):
            run = await self._ended(run_id, run)
        if run is None:
            raise NotFound(f"no run {run_id}")
        return run

    async def _ended(self, run_id: str, run: Run | None) -> Run | None:
        for _ in range(int(BEHIND_SECONDS / LOOK_SECONDS)):
            if run is not None and run.status.is_final:
                break
            await asyncio.sleep(LOOK_SECONDS)
            run = await self._runs.get(run_id)
        return run


log = get_log("gateway")


class Cancelling:
    """Marks the row and signals the worker. A lost signal only causes delay: the worker sees the mark when it renews
    its lease."""

    def __init__(self, runs: RunStore, queue: Queue, recorder: Recorder) -> None:
        self._runs = runs
        self._queue = queue
        self._recorder = recorder

    async def cancel(self, run_id: str, now: float) -> Run | None:
        """Cancel and return the run; None if unknown. Raises StoreUnavailable, but signals the worker even then."""
        try:
            await self._recorder.flush()
            run = await self._runs.cancel(run_id, now)
        except Exception:
            await self.signal(run_id)
            raise
        if run is None or run.status in (RunStatus.SUCCEEDED, RunStatus.FAILED):
            return run
        await self.signal(run_id)
        if run.status is RunStatus.CANCELLED and run.finished_at == now:
            await announce(self._queue, run)
        return run

    async def signal(self, run_id: str) -> None:
        """Signal every worker."""
        try:
            await self._queue.send(messages.SIGNALS, messages.encode(Cancel(run_id=run_id)))
        except QueueUnavailable as error:
            log.warning("gateway.signal_lost", run=run_id, error=error.message)
