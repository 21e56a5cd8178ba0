"""A page's bytes and charset: counted on the wire, counted again when decompressed, cut off at the limit in both."""

import asyncio
import re
from collections.abc import AsyncIterator

from wreq.wreq import Response

from scrapeyard.engines.http.decompress import Corrupt, OverLimit, Unpacking, decompress, encodings_of
from scrapeyard.engines.http.failures import WREQ_ERRORS, explain
from scrapeyard.engines.http.shares import SMALL, BodyShare
from scrapeyard.engines.http.url import Target
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_META_WITHIN = 1024

_LABELS = {
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8",
    "utf-16-le": "utf-16 utf-16le ucs-2 unicode",
    "utf-16-be": "utf-16be",
    "cp1252": "windows-1252 cp1252 x-cp1252 iso-8859-1 iso8859-1 iso88591 iso_8859-1 latin1 latin-1 l1 ascii us-ascii",
    "iso8859-2": "iso-8859-2 iso8859-2 iso88592 iso_8859-2 latin2 l2",
    "iso8859-3": "iso-8859-3",
    "iso8859-4": "iso-8859-4",
    "iso8859-5": "iso-8859-5 iso8859-5 iso88595 cyrillic",
    "iso8859-6": "iso-8859-6 arabic",
    "iso8859-7": "iso-8859-7 greek",
    "iso8859-8": "iso-8859-8 iso-8859-8-i hebrew",
    "iso8859-10": "iso-8859-10 latin6",
    "iso8859-13": "iso-8859-13",
    "iso8859-14": "iso-8859-14",
    "iso8859-15": "iso-8859-15 iso8859-15 iso885915 latin9 l9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "koi8-r koi8 koi",
    "koi8-u": "koi8-u",
    "mac-roman": "macintosh x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic",
    "cp866": "ibm866 cp866",
    "cp874": "windows-874 tis-620 iso-8859-11 iso8859-11 dos-874",
    "cp1250": "windows-1250 cp1250 x-cp1250",
    "cp1251": "windows-1251 cp1251 x-cp1251",
    "cp1253": "windows-1253 cp1253",
    "cp1254": "windows-1254 cp1254 x-cp1254 iso-8859-9 iso8859-9 latin5 l5",
    "cp1255": "windows-1255 cp1255",
    "cp1256": "windows-1256 cp1256",
    "cp1257": "windows-1257 cp1257",
    "cp1258": "windows-1258 cp1258",
    "gb18030": "gb18030 gbk gb2312 gb_2312 gb_2312-80 x-gbk chinese csgb2312 iso-ir-58",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc_jp": "euc-jp eucjp x-euc-jp",
    "iso2022_jp": "iso-2022-jp",
    "cp932": "shift_jis shift-jis sjis x-sjis windows-31j ms932 ms_kanji csshiftjis cp932",
    "cp949": "euc-kr euckr cseuckr ks_c_5601-1987 ksc5601 ksc_5601 korean iso-ir-149 windows-949 uhc cp949",
}
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}


def find_charset(content_type: str, body: bytes) -> str:
    """The codec to decode `body` with. It always names a codec that Python has."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return codec
    return _said(content_type) or _meta(body) or _guess(body)


def _said(content_type: str) -> str | None:
    match = _HEADER.search(content_type)
    return _CODECS.get(match[1].lower()) if match else None


def _meta(body: bytes) -> str | None:
    match = _META.search(body, 0, _META_WITHIN) or _XML.match(body, 0, _META_WITHIN)
    codec = _CODECS.get(match[1].decode("ascii").lower()) if match else None
    # A declaration that could be read byte by byte is not in UTF-16, whatever it says.
    return "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec


def _guess(body: bytes) -> str:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


_INLINE_WIRE = 128 * 1024
_INLINE_PAGE = 512 * 1024
"""Decompressing up to here takes about a millisecond, less than handing it to a thread costs under load."""


async def read_wire(
    target: Target, status: int, response: Response, limit: int, share: BodyShare | None = None
) -> bytes:
    """The body as it came. A large one waits for its `share` of memory first; None: it need not.

    Raises FetchFailed (fetch_too_large, fetch_protocol, fetch_timeout).
    """
    length = response.content_length
    body = bytearray()
    try:
        if length is not None and length <= limit:
            if share is not None and length > SMALL:
                await share.need(2 * length)
            return bytes(await response.bytes())
        if length is not None:
            raise OverLimit
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


async def undo_encoding(
    target: Target, status: int, header: str | None, wire: bytes, limit: int, *, share: BodyShare | None = None
) -> bytes:
    """The page, decompressed as the Content-Encoding `header` says; None means it says nothing. `share` as above.

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
        if share is not None:
            await share.need(2 * limit)
        return await asyncio.to_thread(decompress, wire, encodings, limit)
    except OverLimit:
        raise _counted(_too_large(target, status, limit, "holds, once decompressed,"), len(wire)) from None
    except Corrupt as error:
        raise _counted(_corrupt(target, status, error), len(wire)) from None


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
            async for chunk in self._wire(response):
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

    async def _wire(self, response: Response) -> AsyncIterator[bytes]:
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
