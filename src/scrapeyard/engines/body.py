"""A page's bytes: counted on the wire, counted again when decompressed, and cut off at the limit in both."""

import asyncio

from wreq.wreq import Response

from scrapeyard.engines.decompress import Corrupt, OverLimit, decompress, encodings_of
from scrapeyard.engines.failures import WREQ_ERRORS, explain
from scrapeyard.engines.target import Target
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

_INLINE_WIRE = 128 * 1024
_INLINE_PAGE = 512 * 1024
"""Decompressing up to here takes about a millisecond, less than handing it to a thread costs under load."""


async def read_wire(target: Target, status: int, response: Response, limit: int) -> bytes:
    """The body as it came. Raises FetchFailed (fetch_too_large, fetch_protocol, fetch_timeout)."""
    length = response.content_length
    try:
        if length is not None and length <= limit:
            return bytes(await response.bytes())
        if length is not None:
            raise OverLimit
        return await _read_within(response, limit)
    except OverLimit:
        await response.close()
        raise _too_large(target, status, limit, "sends") from None
    except WREQ_ERRORS as error:
        raise explain(error, target) from None


async def _read_within(response: Response, limit: int) -> bytes:
    body = bytearray()
    async with response.stream() as chunks:
        async for chunk in chunks:
            if isinstance(chunk, memoryview):  # anything else is trailers
                body += chunk
            if len(body) > limit:
                raise OverLimit
    return bytes(body)


async def undo_encoding(target: Target, status: int, header: str | None, wire: bytes, limit: int) -> bytes:
    """The page, decompressed as the Content-Encoding `header` says; None means it says nothing.

    Raises FetchFailed (fetch_too_large, fetch_decode).
    """
    encodings = encodings_of(header or "")
    if not encodings or not wire:
        return wire
    try:
        if len(wire) <= _INLINE_WIRE:
            try:
                return decompress(wire, encodings, min(limit, _INLINE_PAGE))
            except OverLimit:
                pass  # a large page, or a bomb: find out in a thread
        return await asyncio.to_thread(decompress, wire, encodings, limit)
    except OverLimit:
        raise _too_large(target, status, limit, "holds, once decompressed,") from None
    except Corrupt as error:
        message = f"the page of {target.host} cannot be decompressed ({error}); trying again may help"
        raise FetchFailed(ExitReason.FETCH_DECODE, message, site_status=status) from None


def _too_large(target: Target, status: int, limit: int, verb: str) -> FetchFailed:
    message = f"{target.host} {verb} more than {limit} bytes; raise max_bytes or http.max_body_mb if you need it all"
    return FetchFailed(ExitReason.FETCH_TOO_LARGE, message, site_status=status)
