"""Sitemaps with everything they refer to: indexes, gzip, plain text, feeds, and those named in robots.txt.

Files are streamed one after another. Only the URLs of files are held in memory, a bounded number.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from urllib.parse import urljoin

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.port import Caller, FetchRequest, HttpEngine
from scrapeyard.engines.robots.copies import MAX_BYTES, tidy
from scrapeyard.errors import FetchFailed
from scrapeyard.inputs.fetched import FetchedAgain, stream_file
from scrapeyard.inputs.formats.rows import MAX_REASON, BadRow, ListUnreadable, Piece
from scrapeyard.inputs.formats.sitemap_parser import Entries, SitemapBroken, SitemapEntry, SitemapFile
from scrapeyard.inputs.formats.text import unpacked
from scrapeyard.inputs.patterns import Chooser
from scrapeyard.inputs.source import MAX_ITEMS, SitemapSource
from scrapeyard.model import may_help_later

ATTEMPTS = 3
PAUSE_SECONDS = 5.0
_MAX_GAPS = 1000


class SitemapBounds(Struct, frozen=True, kw_only=True):
    """Limits on reading a sitemap."""

    files: int = 50_000
    depth: int = 5
    """Depth of nested indexes."""
    file_bytes: int = 500 * 1024**2
    """Maximum of one file, decompressed; the protocol allows 50 MB."""
    bytes: int = 20 * 1024**3
    """Maximum of all files, decompressed."""
    urls: int = MAX_ITEMS


class _File(Struct, frozen=True):
    url: str
    depth: int


class Sitemaps:
    """Reads one sitemap to its end. Use it once."""

    def __init__(
        self,
        engine: HttpEngine,
        source: SitemapSource,
        caller: Caller,
        *,
        bounds: SitemapBounds | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Raises BadRequest for invalid patterns."""
        self._engine = engine
        self._source = source
        self._caller = caller
        self._bounds = bounds or SitemapBounds()
        self._pause = pause
        self._chooser = Chooser(source.choice)
        self._limit = min(source.limit or self._bounds.urls, self._bounds.urls)
        self._waiting: deque[_File] = deque()
        self._known: set[str] = set()
        self._bytes = 0
        self._taken = 0
        self._is_cut = False
        """Whether there are more pages than the limit."""
        self.gaps: list[str] = []
        """What was not read and why: whole files, the rest of a file, pages beyond the limit."""
        self.read = 0
        """Files that were read to their end."""
        self.file = ""
        """URL of the file that the last rows are from."""

    async def rows(self) -> AsyncGenerator[Piece, None]:
        """Yield the matching URLs as rows, and what could not be read.

        Raises FetchFailed or ListUnreadable if there is no sitemap at all.
        """
        refused = [self._enqueue(_File(url, 0)) for url in await self._starts()]
        faults = [bad for bad in refused if bad is not None]
        self.gaps += [f"a part of the sitemap could not be read: {fault}" for fault in faults]
        yield Piece([], faults)
        while self._waiting and not self._is_cut:
            file = self._waiting.popleft()
            self.file = file.url
            async with aclosing(self._read(file)) as pieces:
                async for piece in pieces:
                    faults = faults or piece.bad
                    yield piece
        if self._is_cut:
            self._note(f"the limit of {self._limit} pages was reached, and the sitemap has more")
        if not self.read and not self._taken and faults:
            raise ListUnreadable(f"the sitemap cannot be read: {faults[0]}")

    async def _starts(self) -> list[str]:
        """The given URL; for a robots.txt or a site, the sitemaps it names."""
        target = parse_target(self._source.url)
        if target.resource not in ("/", "/robots.txt"):
            return [target.url]
        named = await self._named_by_robots(replace(target, resource="/robots.txt").url)
        if not named and target.resource == "/robots.txt":
            raise ListUnreadable(f"{target.url} names no sitemap; give the sitemap's own address")
        return named or [replace(target, resource="/sitemap.xml").url]

    async def _named_by_robots(self, url: str) -> list[str]:
        response = await self._engine.fetch(FetchRequest(url=url, max_bytes=MAX_BYTES * 4), self._caller)
        if not 200 <= response.status < 300:
            return []
        named = [line.value for line in tidy(response.body) if line.field == "sitemap" and line.value]
        return [_joined(response.url, value) for value in named[: self._bounds.files]]

    def _enqueue(self, file: _File) -> BadRow | None:
        """Enqueue a file; returns why it is not read, or None."""
        try:
            url = parse_target(file.url).url
        except FetchFailed as failure:
            return BadRow(line=0, file=file.url[:200], reason=failure.message[:MAX_REASON])
        if url in self._known:
            return None
        if file.depth > self._bounds.depth:
            return BadRow(line=0, file=url, reason=f"is deeper than {self._bounds.depth} indexes within indexes")
        if len(self._known) >= self._bounds.files:
            return BadRow(line=0, file=url, reason=f"comes after {self._bounds.files} files, and is not read")
        self._known.add(url)
        self._waiting.append(_File(url, file.depth))
        return None

    async def _read(self, file: _File) -> AsyncGenerator[Piece, None]:
        """Read one file, with retries where they may help; a retry yields the earlier entries again."""
        taken = self._taken
        for attempt in range(1, ATTEMPTS + 1):
            self._taken, self._is_cut = taken, False  # the same pages again are counted once
            try:
                async with aclosing(self._entries(file)) as found:
                    async for entries in found:
                        yield self._sifted(file, entries)
                self.read += 1
                return
            except FetchedAgain:
                continue  # from the start; the last time is told below
            except FetchFailed as failure:
                if attempt < ATTEMPTS and may_help_later(failure.reason, failure.site_status):
                    await self._pause(PAUSE_SECONDS * attempt)
                    continue
                yield self._broken(file, failure.message)
                return
            except SitemapBroken as broken:
                yield self._sifted(file, Entries(broken.found, []))
                yield self._broken(file, str(broken), broken.line)
                return
            except ListUnreadable as unreadable:
                yield self._broken(file, unreadable.message)
                return
        yield self._broken(file, "was fetched anew again and again")

    async def _entries(self, file: _File) -> AsyncGenerator[Entries, None]:
        parser = SitemapFile()
        limit = min(self._bounds.file_bytes, self._bounds.bytes - self._bytes)
        if limit <= 0:
            raise SitemapBroken(f"comes after {self._bounds.bytes} bytes of other files, and is not read")
        async with aclosing(stream_file(self._engine, file.url, self._caller, limit)) as chunks:
            async for piece in unpacked(chunks, limit):
                self._bytes += len(piece)
                yield parser.feed(piece)
                if self._is_cut:
                    return
                await asyncio.sleep(0)
        yield parser.finish()

    def _sifted(self, file: _File, entries: Entries) -> Piece:
        piece = Piece([], [replace(bad, file=file.url) for bad in entries.bad])
        for entry in entries.found:
            url = _joined(file.url, entry.url)
            if not self._is_new_enough(entry):
                continue
            if entry.is_sitemap:
                refused = self._enqueue(_File(url, file.depth + 1))
                if refused is not None:
                    self._note(f"a part of the sitemap could not be read: {refused}")
                    piece.bad.append(refused)
            elif self._chooser.takes(url):
                self._take(file, entry, url, piece)
        return piece

    def _take(self, file: _File, entry: SitemapEntry, url: str, piece: Piece) -> None:
        try:
            parse_target(url)
        except FetchFailed as failure:
            piece.bad.append(BadRow(line=entry.line, file=file.url, reason=failure.message[:MAX_REASON]))
            return
        if self._taken >= self._limit:
            self._is_cut = True
            return
        self._taken += 1
        piece.rows.append((entry.line, url))

    def _broken(self, file: _File, reason: str, line: int = 0) -> Piece:
        """The rest of a file cannot be read: what it lists is not known."""
        row = BadRow(line=line, file=file.url, reason=reason[:MAX_REASON])
        self._note(f"a part of the sitemap could not be read: {row}")
        return Piece([], [row])

    def _note(self, gap: str) -> None:
        if len(self.gaps) < _MAX_GAPS:
            self.gaps.append(gap)

    def _is_new_enough(self, entry: SitemapEntry) -> bool:
        since = self._source.modified_since
        return since is None or entry.modified is None or entry.modified >= since


def _joined(base: str, url: str) -> str:
    """The absolute URL, if it can be resolved."""
    try:
        return url if "://" in url else urljoin(base, url)
    except ValueError:  # such as //[
        return url
