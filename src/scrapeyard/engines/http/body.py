"""A page's bytes: counted on the wire, counted again when decompressed, cut off at the limit in both."""

import asyncio
from collections.abc import AsyncIterator, Iterator

from wreq.wreq import Response

from scrapeyard.engines.http.decompress import Corrupt, OverLimit, Unpacking, encodings_of
from scrapeyard.engines.http.failures import WREQ_ERRORS, explain
from scrapeyard.engines.http.shares import SMALL, BodyShare
from scrapeyard.engines.http.url import Target
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

_SMALL_WIRE = 128 * 1024
"""Bytes that are read in one go, which costs less than a stream."""
_INLINE_PAGE = 512 * 1024
"""Decompressing up to here takes about a millisecond, less than handing it to a thread costs under load."""


async def read_wire(
    target: Target, status: int, response: Response, limit: int, share: BodyShare | None = None
) -> bytes:
    """The body as it came. A large one waits for its `share` of memory first; None: it need not.

    Raises FetchFailed (fetch_too_large, fetch_protocol, fetch_timeout).
    """
    length = response.content_length
    body: bytes | bytearray = b""
    try:
        if length is not None and length <= limit:
            if share is not None and length > SMALL:
                await share.need(2 * length)
            return bytes(await response.bytes())
        if length is not None:
            raise OverLimit
        body = bytearray()
        await _read_within(response, limit, body, share)
        return bytes(body)
    except OverLimit:
        await response.close()
        raise _counted(_too_large(target, status, limit, "sends"), len(body)) from None
    except WREQ_ERRORS as error:
        raise _counted(explain(error, target), len(body)) from None


async def _read_within(response: Response, limit: int, body: bytearray, share: BodyShare | None) -> None:
    async with response.stream() as chunks:
        async for chunk in chunks:
            if isinstance(chunk, memoryview):  # anything else is trailers
                body += chunk
            if len(body) > limit:
                raise OverLimit
            if share is not None and len(body) > SMALL:
                await share.need(2 * limit)


async def read_page(
    target: Target, status: int, header: str | None, response: Response, limit: int, *, share: BodyShare | None = None
) -> tuple[bytes, int]:
    """The page, decompressed as the Content-Encoding `header` says, and how many bytes came. None: it says nothing.
    It is decompressed as it comes, so that a bomb ends the fetch even if it drips. `share` as above.

    Raises FetchFailed (fetch_too_large, fetch_decode, fetch_protocol, fetch_timeout).
    """
    encodings = encodings_of(header or "")
    if not encodings:
        wire = await read_wire(target, status, response, limit, share)
        return wire, len(wire)
    stream, page = Stream(target, status, header, limit), bytearray()
    try:
        if (response.content_length or 0) > limit:
            raise OverLimit
        unpacking = Unpacking(encodings, limit)
        async for chunk in stream.chunks(response):
            await _unpack(unpacking.feed(chunk), page, limit, share)
        unpacking.finish()
        return bytes(page), stream.received
    except OverLimit:
        await response.close()
        raise _counted(_too_large(target, status, limit, "holds, once decompressed,"), stream.received) from None
    except Corrupt as error:
        await response.close()
        raise _counted(_corrupt(target, status, error), stream.received) from None
    except WREQ_ERRORS as error:
        raise _counted(explain(error, target), stream.received) from None


async def _unpack(pieces: Iterator[bytes], page: bytearray, limit: int, share: BodyShare | None) -> None:
    """Add the pieces to the page; from _INLINE_PAGE on in a thread."""
    for piece in pieces:
        page += piece
        if len(page) > _INLINE_PAGE:
            if share is not None:
                await share.need(2 * limit)
            await asyncio.to_thread(_add, pieces, page)


def _add(pieces: Iterator[bytes], page: bytearray) -> None:
    for piece in pieces:
        page += piece


class Stream:
    """A page in pieces, decompressed as they come, never held whole. To be read once.

    `received` counts the wire; `failure` is what ended it, which whoever reads the pieces may have wrapped in an error
    of its own.
    """

    def __init__(self, target: Target, status: int, header: str | None, limit: int) -> None:
        self._target = target
        self._status = status
        self._header = header
        self._limit = limit
        self.received = 0
        self.failure: FetchFailed | None = None

    async def pieces(self, response: Response) -> AsyncIterator[bytes]:
        """Raises FetchFailed (fetch_too_large, fetch_decode, fetch_protocol, fetch_timeout)."""
        try:
            unpacking = Unpacking(encodings_of(self._header or ""), self._limit)
            async for chunk in self.chunks(response):
                for piece in unpacking.feed(chunk):
                    yield piece
            unpacking.finish()
        except OverLimit:
            self.failure = _too_large(self._target, self._status, self._limit, "sends")
        except Corrupt as error:
            self.failure = _corrupt(self._target, self._status, error)
        except WREQ_ERRORS as error:
            self.failure = explain(error, self._target)
        if self.failure is not None:
            raise _counted(self.failure, self.received)

    async def chunks(self, response: Response) -> AsyncIterator[bytes]:
        """The same as it came, counted. Raises OverLimit, or one of WREQ_ERRORS."""
        if response.content_length is not None and response.content_length <= min(_SMALL_WIRE, self._limit):
            whole = bytes(await response.bytes())
            self.received = len(whole)
            yield whole
            return
        async with response.stream() as chunks:
            async for chunk in chunks:
                if not isinstance(chunk, memoryview):  # trailers
                    continue
                self.received += len(chunk)
                if self.received > self._limit:
                    raise OverLimit
                yield bytes(chunk)


def _counted(failure: FetchFailed, received: int) -> FetchFailed:
    """With what came before it failed: that is paid for, too. Unknown for an answer of known length that broke off."""
    failure.details["bytes_received"] = received
    return failure


def _corrupt(target: Target, status: int, error: Corrupt) -> FetchFailed:
    message = f"the page of {target.host} cannot be decompressed ({error}); trying again may help"
    return FetchFailed(ExitReason.FETCH_DECODE, message, site_status=status)


def _too_large(target: Target, status: int, limit: int, verb: str) -> FetchFailed:
    message = f"{target.host} {verb} more than {limit} bytes; raise max_bytes or http.max_body_mb if you need it all"
    return FetchFailed(ExitReason.FETCH_TOO_LARGE, message, site_status=status)
