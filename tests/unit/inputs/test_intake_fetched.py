"""What the engine may do with a file that is kept as it comes: hand it out again, have it whole, fail."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import pytest

from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.inputs.fetched import FetchedAgain, stream_file
from scrapeyard.inputs.sitemaps import Sitemaps
from scrapeyard.inputs.source import SitemapSource
from scrapeyard.model import ExitReason

URL = "https://shop.example/sitemap.txt"


class Scripted:
    """An engine that plays a script, one entry for each fetch: the files it hands out in turn, or a failure.

    The real one hands a file out twice only when a site blocks it half-way, which no server of ours can be made to do.
    """

    def __init__(self, *script: Sequence[Sequence[bytes]] | FetchFailed, whole: bool = False) -> None:
        self._script = list(script)
        self._whole = whole
        self.ended = asyncio.Event()

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def fetch(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        assert request.keep is not None
        files = self._script.pop(0)
        try:
            if isinstance(files, FetchFailed):
                raise files
            kept = None
            for file in files if not self._whole else ():
                kept = await request.keep(_pieces(file), "text/plain")
        finally:
            self.ended.set()
        body = b"".join(files[-1]) if self._whole else b""
        return FetchResponse(url=URL, status=200, headers=(), body=body, encoding="utf-8", elapsed_ms=1, kept=kept)


async def _pieces(file: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in file:
        yield piece


async def read(engine: Scripted) -> list[bytes]:
    return [piece async for piece in stream_file(engine, URL, Caller(), 10_000)]


LONG = [b"x"] * 50


async def test_a_file_comes_in_its_pieces() -> None:
    assert await read(Scripted([LONG])) == LONG
    assert await read(Scripted([[]])) == []
    assert await read(Scripted([[b"a", b"b"]], whole=True)) == [b"ab"]


@pytest.mark.parametrize("files", [[LONG, LONG], [[b"x"], [b"x"]], [LONG, []]])
async def test_a_file_that_is_handed_out_again_is_said_so(files: list[list[bytes]]) -> None:
    with pytest.raises(FetchedAgain):
        await read(Scripted(files))


async def test_a_failure_leaves_as_it_is() -> None:
    with pytest.raises(FetchFailed, match="no name"):
        await read(Scripted(FetchFailed(ExitReason.FETCH_DNS, "no name")))


async def test_a_reader_that_leaves_ends_the_fetch() -> None:
    engine = Scripted([LONG])
    async with aclosing(stream_file(engine, URL, Caller(), 10_000)) as pieces:
        assert await anext(pieces) == b"x"
        assert not engine.ended.is_set()
    assert engine.ended.is_set()


async def test_a_sitemap_that_is_handed_out_again_is_read_again() -> None:
    good = [b"https://shop.example/1\n", b"https://shop.example/2\n"]
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    engine = Scripted([good[:1], good], FetchFailed(ExitReason.FETCH_CONNECT, "refused"), [good])
    sitemaps = Sitemaps(engine, SitemapSource(url=URL), Caller(), pause=pause)
    found = [url async for piece in sitemaps.rows() for _, url in piece.rows]
    assert set(found) == {"https://shop.example/1", "https://shop.example/2"}
    assert (sitemaps.read, len(waits)) == (1, 1)
