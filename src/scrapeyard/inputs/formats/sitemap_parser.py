"""Incremental parser of a sitemap file: XML (urlset, sitemapindex, RSS, Atom) or plain text. Fixes stray ampersands."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from xml.parsers import expat

from msgspec import Struct

from scrapeyard.engines.http.url import MAX_URL
from scrapeyard.inputs.formats.json_rows import UrlParser
from scrapeyard.inputs.formats.rows import BadRow

_KNOWN = re.compile(rb"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_SPOT = re.compile(rb"&|<!\[CDATA\[|<!--")
_ENDS = {b"<![CDATA[": b"]]>", b"<!--": b"-->"}
_LONGEST = 12
"""Bytes of the longest token searched for."""


class Ampersands:
    """Escapes ampersands that do not start a reference, in any encoding whose markup is ASCII.

    CDATA and comments stay unchanged.
    """

    def __init__(self) -> None:
        self._held = b""
        self._end = b""
        """End marker of the open section; empty if none is open."""

    def feed(self, data: bytes, *, final: bool = False) -> bytes:
        """Output that is certain so far; a few bytes may be held back."""
        data, self._held = self._held + data, b""
        parts: list[bytes] = []
        at = 0
        while at < len(data):
            at = self._section(data, at, parts, final) if self._end else self._plain(data, at, parts, final)
        return b"".join(parts)

    def _section(self, data: bytes, at: int, parts: list[bytes], final: bool) -> int:
        found = data.find(self._end, at)
        if found >= 0:
            found += len(self._end)
            parts.append(data[at:found])
            self._end = b""
            return found
        return self._hold(data, at, len(data) if final else max(at, len(data) - 2), parts)

    def _plain(self, data: bytes, at: int, parts: list[bytes], final: bool) -> int:
        spot = _SPOT.search(data, at)
        sure = len(data) if final else max(at, len(data) - _LONGEST)
        if spot is None or spot.start() >= sure:
            return self._hold(data, at, sure, parts)
        parts.append(data[at : spot.start()])
        if spot[0] != b"&":
            self._end = _ENDS[spot[0]]
            parts.append(spot[0])
        elif _KNOWN.match(data, spot.start()):
            parts.append(b"&")
        else:
            parts.append(b"&amp;")
        return spot.end()

    def _hold(self, data: bytes, at: int, sure: int, parts: list[bytes]) -> int:
        parts.append(data[at:sure])
        self._held = data[sure:]
        return len(data)


MAX_TOKEN = 1024 * 1024
"""Maximum bytes of one tag or comment."""
MAX_DEPTH = 64
_RECORDS = {"urlset": "url", "sitemapindex": "sitemap", "rss": "item", "rdf": "item", "feed": "entry"}
_ADDRESSES = {"url": "loc", "sitemap": "loc", "item": "link", "entry": "link"}
_DATES = {"url": ("lastmod",), "sitemap": ("lastmod",), "item": ("pubdate",), "entry": ("updated", "modified")}
_BLANK = " \t\r\n"
_ENOUGH = 32
"""Bytes needed to detect the kind of file."""
_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16."""


class SitemapBroken(Exception):
    """The rest of the file cannot be parsed; `line` is 0 if none of it can. `found` has what came before."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line
        self.found: list[SitemapEntry] = []


class SitemapEntry(Struct, frozen=True):
    """An address in a sitemap."""

    line: int
    url: str
    is_sitemap: bool = False
    """Whether it points to another sitemap."""
    modified: float | None = None
    """Unix seconds; None if not given."""


class Entries(Struct, frozen=True):
    """Some entries of a file, in order."""

    found: list[SitemapEntry]
    bad: list[BadRow]


class SitemapFile:
    """Parses a file's decompressed bytes, fed in pieces of at most some kilobytes. Raises SitemapBroken."""

    def __init__(self) -> None:
        self._head = b""
        self._reader: _Xml | _Plain | None = None

    def feed(self, data: bytes) -> Entries:
        """Returns the entries that are now complete."""
        if self._reader is not None:
            return self._reader.feed(data)
        self._head += data
        return self._begin() if len(self._begun()) >= _ENOUGH else Entries([], [])

    def finish(self) -> Entries:
        """Returns the last entries."""
        if self._reader is not None:
            return self._reader.finish()
        if not self._begun():
            raise SitemapBroken("is empty")
        first, last = self._begin(), self.finish()
        return Entries(first.found + last.found, first.bad + last.bad)

    def _begun(self) -> bytes:
        """The input so far without leading whitespace, which some files have; a byte order mark is no whitespace."""
        self._head = self._head.removeprefix(b"\xef\xbb\xbf").lstrip()
        return self._head

    def _begin(self) -> Entries:
        if self._head[:_ENOUGH].lower().startswith((b"<!doctype html", b"<html")):
            raise SitemapBroken("is a web page, not a sitemap")
        wide = self._head[:2] in _WIDE or b"\0" in self._head[:4]
        self._reader = _Xml(mend=not wide) if wide or self._head[:1] == b"<" else _Plain()
        return self._reader.feed(self._head)


class _Plain:
    def __init__(self) -> None:
        self._parser = UrlParser()
        self._held = b""

    def feed(self, data: bytes) -> Entries:
        cut = (self._held + data).rfind(b"\n") + 1
        whole, self._held = (self._held + data)[:cut], (self._held + data)[cut:]
        if len(self._held) > MAX_TOKEN:
            raise SitemapBroken("is neither XML nor a list of addresses")
        return self._read(whole)

    def finish(self) -> Entries:
        rest, self._held = self._held, b""
        return self._read(rest + b"\n")

    def _read(self, data: bytes) -> Entries:
        piece = self._parser.feed(data.decode("utf-8-sig", "replace"))
        return Entries([SitemapEntry(line, url) for line, url in piece.rows], piece.bad)


class _Xml:
    def __init__(self, *, mend: bool) -> None:
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = _refuse_entities
        parser.ExternalEntityRefHandler = _refuse_entities
        self._ampersands = Ampersands() if mend else None
        self._found: list[SitemapEntry] = []
        self._fed = 0
        self._depth = 0
        self._record = ""
        """Local name of entry elements; empty before the root is parsed."""
        self._prefix = ""
        """Namespace prefix of the current entry, with its colon."""
        self._inside = 0
        """Depth of the current entry; 0 outside entries."""
        self._field = ""
        self._words: dict[str, str] = {}
        """Text of the current entry by field; its own text under the empty name."""

    def feed(self, data: bytes) -> Entries:
        if self._ampersands is not None:
            data = self._ampersands.feed(data)
        self._parse(data, final=False)
        self._fed += len(data)
        if self._fed - max(self._parser.CurrentByteIndex, 0) > MAX_TOKEN:
            raise SitemapBroken(f"has a tag or comment longer than {MAX_TOKEN} bytes", self._parser.CurrentLineNumber)
        return self._taken()

    def finish(self) -> Entries:
        self._parse(b"" if self._ampersands is None else self._ampersands.feed(b"", final=True), final=True)
        return self._taken()

    def _parse(self, data: bytes, *, final: bool) -> None:
        try:
            self._parser.Parse(data, final)
        except expat.ExpatError as error:
            said = expat.ErrorString(error.code)
            raise self._broken(SitemapBroken(f"is not well-formed XML ({said})", error.lineno)) from None
        except SitemapBroken as broken:
            raise self._broken(broken) from None

    def _broken(self, broken: SitemapBroken) -> SitemapBroken:
        broken.line = broken.line or self._parser.CurrentLineNumber
        broken.found = self._found
        return broken

    def _taken(self) -> Entries:
        found, self._found = self._found, []
        return Entries(found, [])

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SitemapBroken(f"has elements within elements, deeper than {MAX_DEPTH}")
        prefix, local = _split(name)
        if self._depth == 1:
            self._begin(local)
        elif not self._inside:
            if local == self._record:
                self._inside, self._prefix, self._words, self._field = self._depth, prefix, {}, ""
        elif self._depth == self._inside + 1 and prefix == self._prefix:
            self._field = local
            if local == "link" and self._record == "entry":
                self._take_link(attributes)
        else:
            self._field = ":"

    def _begin(self, root: str) -> None:
        if root not in _RECORDS:
            raise SitemapBroken(f"is <{root[:50]}>, not a sitemap")
        self._record = _RECORDS[root]

    def _take_link(self, attributes: Mapping[str, str]) -> None:
        if attributes.get("rel", "alternate") == "alternate":
            self._words.setdefault("link", attributes.get("href", "")[: MAX_URL + 1])
        self._field = ":"

    def _text(self, text: str) -> None:
        if self._inside and self._field != ":":
            held = self._words.get(self._field, "")
            if len(held) <= MAX_URL:
                self._words[self._field] = held + text[: MAX_URL + 1]

    def _end(self, _: str) -> None:
        if self._inside == self._depth:
            self._close()
        elif self._inside and self._depth <= self._inside + 1:
            self._field = ""
        self._depth -= 1

    def _close(self) -> None:
        words, record = self._words, self._record
        url = words.get(_ADDRESSES[record], "").strip(_BLANK)
        if not url and record in ("url", "sitemap"):
            url = words.get("", "").strip(_BLANK)  # some leave <loc> out
        if not url and record == "item":
            url = words.get("guid", "").strip(_BLANK)
            url = url if url.lower().startswith("http") else ""
        if url:
            modified = next((moment(words[name]) for name in _DATES[record] if name in words), None)
            self._found.append(SitemapEntry(self._parser.CurrentLineNumber, url, record == "sitemap", modified))
        self._inside, self._words, self._field = 0, {}, ""


def moment(text: str) -> float | None:
    """Unix seconds of a date as in sitemaps and feeds, in UTC if it has no zone; None if it cannot be parsed."""
    text = text.strip(_BLANK)
    readers: tuple[Callable[[], datetime], ...] = (
        lambda: datetime.fromisoformat(text + "-01" * (2 - text.count("-")) if len(text) <= 7 else text),
        lambda: parsedate_to_datetime(text),
    )
    for read in readers:
        try:
            found = read()
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError, IndexError):
            continue  # another format may fit; without a date an entry counts as new
    return None


def _split(name: str) -> tuple[str, str]:
    prefix, colon, local = name.rpartition(":")
    return prefix + colon, local.lower()


def _refuse_entities(*_: Any) -> int:
    raise SitemapBroken("declares entities, which are not read")
