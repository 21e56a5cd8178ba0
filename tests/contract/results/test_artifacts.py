"""Objects of items: the key layout, compression, and reading back, on a folder and on a bucket."""

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path

import obstore
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import BlobsUnavailable, NotFound
from scrapeyard.results import artifacts
from tests.contract.blobs.test_blobs import bucket_settings
from tests.services.seaweed import SeaweedServer


@pytest.fixture(params=["folder", "bucket"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "folder":
        return ObjectBlobs.in_folder(tmp_path)
    server: SeaweedServer = request.getfixturevalue("seaweed_server")
    return ObjectBlobs.in_bucket(bucket_settings(server, server.make_bucket()))


async def in_pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def test_the_layout_is_exactly_as_documented(blobs: Blobs) -> None:
    for name in ("html.html", "data.json", "metadata.json", "screenshot.png"):
        kept = await artifacts.keep(blobs, "job_1", "item~1", name, b"x", "text/plain")
        assert kept.key == f"job_1/items/item~1/{name}"
        assert await blobs.get(kept.key) == b"x"
    assert keys.manifest("job_1", "full", 3) == "job_1/manifests/full/part-3.json"
    assert keys.job_metadata("job_1") == "job_1/job_metadata.json"
    assert keys.export("job_1", "e", "full.csv").startswith("job_1/exports/")


async def test_a_script_cannot_take_the_place_of_its_data(blobs: Blobs) -> None:
    await artifacts.keep(blobs, "job_1", "a", "data.json", b"{}", "application/json")
    await artifacts.keep(blobs, "job_1", "a", "data.json", b"[]", "application/json", script=True)
    assert await artifacts.read(blobs, keys.item_object("job_1", "a", "data.json")) == b"{}"


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 65_537, 3_000_000])
@pytest.mark.parametrize("start", [b"", gzip.compress(b"already", mtime=0)], ids=["plain", "packed"])
async def test_what_is_kept_is_read(blobs: Blobs, size: int, start: bytes) -> None:
    data = start + bytes(number % 251 for number in range(size))
    kept = await artifacts.keep(blobs, "job_1", "a", "html.html", data, "text/html")
    assert kept.size == len(data)
    assert await artifacts.read(blobs, kept.key) == data
    streamed = await artifacts.keep_stream(blobs, "job_1", "b", "big.bin", in_pieces(data, 70_000), "x/y")
    assert (streamed.size, streamed.key) == (len(data), "job_1/items/b/artifacts/big.bin")
    assert await artifacts.read(blobs, streamed.key) == data


async def test_above_a_kilobyte_it_is_compressed(blobs: Blobs) -> None:
    small = await artifacts.keep(blobs, "job_1", "a", "html.html", b"x" * 1024, "text/html")
    large = await artifacts.keep(blobs, "job_1", "b", "html.html", b"x" * 1025, "text/html")
    assert await blobs.get(small.key) == b"x" * 1024
    assert gzip.decompress(await blobs.get(large.key)) == b"x" * 1025
    assert (await artifacts.opened(blobs, small.key)).encoding == ""
    assert (await artifacts.opened(blobs, large.key)).encoding == "gzip"


async def test_other_readers_of_a_bucket_are_told(seaweed_server: SeaweedServer) -> None:
    bucket = seaweed_server.make_bucket()
    blobs = ObjectBlobs.in_bucket(bucket_settings(seaweed_server, bucket))
    data = json.dumps(list(range(1000))).encode()
    kept = await artifacts.keep(blobs, "job_1", "a", "data.json", data, "application/json")
    found = await obstore.get_async(seaweed_server.store(bucket, "all/of.it"), kept.key)
    assert dict(found.attributes) == {"Content-Type": "application/json", "Content-Encoding": "gzip"}


async def test_equal_data_gives_equal_bytes(blobs: Blobs) -> None:
    first = await artifacts.keep(blobs, "job_1", "a", "html.html", b"page" * 1000, "text/html")
    second = await artifacts.keep(blobs, "job_1", "b", "html.html", b"page" * 1000, "text/html")
    assert await blobs.get(first.key) == await blobs.get(second.key)


async def test_what_is_not_there_and_what_is_damaged(blobs: Blobs) -> None:
    with pytest.raises(NotFound):
        await artifacts.read(blobs, "job_1/items/none/html.html")
    whole = gzip.compress(b"page" * 10_000)
    for broken in (whole[:-9], whole[:20] + b"\0\0\0" + whole[23:]):
        await blobs.put("job_1/broken", broken, "text/html")
        with pytest.raises(BlobsUnavailable):
            await artifacts.read(blobs, "job_1/broken")


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=5000), size=st.integers(1, 3000))
async def test_any_bytes_in_any_pieces(tmp_path: Path, data: bytes, size: int) -> None:
    blobs = ObjectBlobs.in_folder(tmp_path)
    kept = await artifacts.keep_stream(blobs, "job_1", "a", "x.bin", in_pieces(data, size), "x/y")
    assert await artifacts.read(blobs, kept.key) == data
