"""Runs with their results, as answers to a call.

Results are JSON already and are passed on as bytes, never decoded; those in the blob store are streamed through.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from msgspec import Raw
from msgspec.structs import replace
from starlette.responses import Response, StreamingResponse

from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import NotFound
from scrapeyard.gateway.runs import documents
from scrapeyard.model import Run, RunError

_NULL = Raw(b"null")


async def answer(run: Run, blobs: Blobs, headers: dict[str, str] | None = None) -> Response:
    """The run whole, as a 200."""
    if not _in_blobs(run):
        return Response(documents.encode(_whole(run)), 200, headers, documents.JSON)
    return StreamingResponse(await _first(_pieces(run, blobs)), 200, headers, documents.JSON)


async def answer_all(runs: Sequence[Run], blobs: Blobs, headers: dict[str, str] | None = None) -> Response:
    """Several runs whole, as a 200."""
    if not any(map(_in_blobs, runs)):
        return Response(documents.encode({"runs": [_whole(run) for run in runs]}), 200, headers, documents.JSON)
    return StreamingResponse(await _first(_all_pieces(runs, blobs)), 200, headers, documents.JSON)


def _in_blobs(run: Run) -> bool:
    return bool(run.result_key) and run.result is None


def _whole(run: Run) -> dict[str, Any]:
    return {**documents.summary(run), "result": run.result if run.result is not None else _NULL}


async def _all_pieces(runs: Sequence[Run], blobs: Blobs) -> AsyncGenerator[bytes]:
    yield b'{"runs":['
    for index, run in enumerate(runs):
        if index:
            yield b","
        if not _in_blobs(run):
            yield documents.encode(_whole(run))
            continue
        async with aclosing(_pieces(run, blobs)) as pieces:
            async for piece in pieces:
                yield piece
    yield b"]}"


async def _pieces(run: Run, blobs: Blobs) -> AsyncGenerator[bytes]:
    stream = blobs.stream(run.result_key)
    try:
        first = await anext(stream, b"null")
    except NotFound:
        yield documents.encode(_whole(_without_result(run)))
        return
    yield documents.encode(documents.summary(run))[:-1] + b',"result":' + first
    async for piece in stream:
        yield piece
    yield b"}"


def _without_result(run: Run) -> Run:
    gone = RunError(message="the result is no longer in the blob store", type="ResultGone")
    return replace(run, error=run.error or gone)


async def _first(pieces: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, the first already at hand: a blob store that is away is a 503, not a broken answer."""
    first = await anext(pieces)

    async def chained() -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return chained()
