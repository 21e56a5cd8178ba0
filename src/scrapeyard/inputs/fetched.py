"""Streams files from the web through the engine: never whole in memory, never from a private address."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress

from scrapeyard.engines.port import Caller, FetchRequest, HttpEngine, Keep
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.model.job import Job

_AHEAD = 4
"""Chunks that may wait for the reader."""
_SECONDS = 3600.0
"""Timeout for one file."""


class FetchedAgain(Exception):
    """The engine fetched the file again after part of it was read: start over."""


def caller_of(job: Job) -> Caller:
    """On whose behalf the files of a job's source are fetched."""
    policy = job.policy
    return Caller(job_id=job.id, has_rate=policy.rate is not None, policy=policy.fetching, job_budget=policy.budget)


async def keep_file(engine: HttpEngine, url: str, caller: Caller, keep: Keep, limit: int) -> None:
    """Pass a file's chunks to `keep`, inside the fetch; it may be called twice. Raises FetchFailed."""
    request = FetchRequest(url=url, timeout_seconds=_SECONDS, max_bytes=limit, max_age_seconds=0.0, keep=keep)
    response = await engine.fetch(request, caller)
    if not 200 <= response.status < 300:
        raise FetchFailed(
            ExitReason.FETCH_STATUS,
            f"{url[:200]} answers {response.status}; check the address",
            site_status=response.status,
        )
    if response.kept is None:  # an engine that returns the whole page
        await keep(_whole(response.body), "")


async def stream_file(engine: HttpEngine, url: str, caller: Caller, limit: int) -> AsyncGenerator[bytes, None]:
    """Yield a file's chunks. Raises FetchFailed, or FetchedAgain. Closing the generator aborts the fetch."""
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
    calls = 0

    async def keep(given: AsyncIterator[bytes], _: str) -> int:
        nonlocal calls
        calls += 1
        size = 0
        async for piece in given:
            size += len(piece)
            await pieces.put(piece)
        return size

    async def fetch() -> None:
        try:
            await keep_file(engine, url, caller, keep, limit)
        finally:
            with suppress(asyncio.QueueFull):  # if full, the reader checks whether the task has ended
                pieces.put_nowait(None)

    task = asyncio.create_task(fetch(), name="intake-fetch")
    try:
        while (piece := await _next(pieces, task)) is not None:
            if calls > 1:
                raise FetchedAgain
            yield piece
        await task
        if calls > 1:
            raise FetchedAgain
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _next(pieces: asyncio.Queue[bytes | None], task: asyncio.Task[None]) -> bytes | None:
    """The next chunk; None at the end or after an error."""
    if task.done() and pieces.empty():
        return None
    return await pieces.get()


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body
