"""Pages that are kept as they come."""

import asyncio
import gzip
import resource
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import brotli
import pytest

from scrapeyard import zstd
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.errors import BlobsUnavailable
from scrapeyard.model import ExitReason
from tests.integration.http.stand import MB, reason_of
from tests.leaks import PATIENCE
from tests.sites.site import Site, chunks, page, reset, stalled

KEY = "runs/r/1/artifacts/file.bin"


@pytest.fixture
def blobs(tmp_path: Path) -> ObjectBlobs:
    return ObjectBlobs.in_folder(tmp_path / "blobs")


class Keeper:
    """Keeps in a real blob store."""

    def __init__(self, blobs: ObjectBlobs) -> None:
        self._blobs = blobs
        self.kinds: list[str] = []

    async def __call__(self, pieces: AsyncIterator[bytes], content_type: str) -> int:
        self.kinds.append(content_type)
        return await self._blobs.put_stream(KEY, pieces, content_type)


async def test_a_large_page_goes_through_without_being_held(
    site: Site, make_engine: Callable[..., WreqEngine], blobs: ObjectBlobs
) -> None:
    site.routes["/big"] = chunks(b"x" * MB, 200, content_type="video/mp4")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    keep = Keeper(blobs)
    request = FetchRequest(url=site.url("/big"), keep=keep, max_bytes=300 * MB)
    answer = await make_engine(max_body_mb=1).fetch(request, Caller())
    assert (answer.kept, answer.body, answer.bytes_received) == (200 * MB, b"", 200 * MB)
    assert await blobs.size(KEY) == 200 * MB
    assert keep.kinds == ["video/mp4"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


@pytest.mark.parametrize(
    ("name", "encode"), [("gzip", gzip.compress), ("br", brotli.compress), ("zstd", zstd.compress)]
)
async def test_it_is_decompressed_on_the_way(
    site: Site, fetch: Any, blobs: ObjectBlobs, name: str, encode: Any
) -> None:
    body = bytes(range(256)) * 20_000
    site.routes["/"] = page(encode(body), content_encoding=name)
    answer = await fetch(site.url("/"), keep=Keeper(blobs), max_bytes=10 * MB)
    assert answer.kept == len(body)
    assert await blobs.get(KEY) == body


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        (page(b"x" * 2 * MB), ExitReason.FETCH_TOO_LARGE),
        (chunks(b"x" * 65_536, 32), ExitReason.FETCH_TOO_LARGE),
        (page(gzip.compress(b"\0" * 50 * MB, 1), content_encoding="gzip"), ExitReason.FETCH_TOO_LARGE),
        (page(gzip.compress(b"data" * 1000)[:-9], content_encoding="gzip"), ExitReason.FETCH_DECODE),
        (page(b"nonsense", content_encoding="br"), ExitReason.FETCH_DECODE),
        (reset, ExitReason.FETCH_PROTOCOL),
    ],
)
async def test_what_fails_leaves_nothing(
    site: Site, fetch: Any, blobs: ObjectBlobs, route: Any, reason: ExitReason
) -> None:
    site.routes["/"] = route
    assert await reason_of(fetch(site.url("/"), keep=Keeper(blobs), max_bytes=MB)) is reason
    assert await blobs.size(KEY) is None


async def test_a_site_that_falls_silent_times_out(
    site: Site, make_engine: Callable[..., WreqEngine], blobs: ObjectBlobs
) -> None:
    site.routes["/"] = stalled
    engine = make_engine(read_seconds=0.2, total_seconds=60)
    request = FetchRequest(url=site.url("/"), keep=Keeper(blobs), max_bytes=MB)
    assert await reason_of(engine.fetch(request, Caller())) is ExitReason.FETCH_TIMEOUT
    assert await blobs.size(KEY) is None


async def test_a_cancelled_download_leaves_nothing_and_lets_the_connection_go(
    site: Site, fetch: Any, blobs: ObjectBlobs
) -> None:
    site.routes["/"] = stalled
    task = asyncio.create_task(fetch(site.url("/"), keep=Keeper(blobs), max_bytes=MB))
    await site.until(lambda: len(site.asked) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(PATIENCE):
        await site.until(lambda: site.open == 0)
    assert await blobs.size(KEY) is None


async def test_a_bad_status_is_not_kept(site: Site, fetch: Any, blobs: ObjectBlobs) -> None:
    site.routes["/"] = page(b"gone", status=404)
    answer = await fetch(site.url("/"), keep=Keeper(blobs), max_bytes=MB)
    assert (answer.status, answer.kept, answer.body) == (404, None, b"gone")
    assert await blobs.size(KEY) is None


async def test_a_keeper_that_fails_is_heard(site: Site, fetch: Any) -> None:
    async def full(pieces: AsyncIterator[bytes], content_type: str) -> int:
        raise BlobsUnavailable("the disk is full")

    site.routes["/"] = page(b"data")
    with pytest.raises(BlobsUnavailable):
        await fetch(site.url("/"), keep=full, max_bytes=MB)
