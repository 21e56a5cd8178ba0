"""What every blob store promises: a folder, a bucket, and memory as a second store that keeps content types."""

import asyncio
import os
import shutil
from array import array
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore
from pydantic import SecretStr

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.blobs.port import Blobs
from scrapeyard.blobs.sealed import CHUNK, HEAD, SealedBlobs
from scrapeyard.errors import BadRequest, BlobsUnavailable, NotFound
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.settings import BlobSettings
from tests.leaks import PATIENCE
from tests.services.seaweed import ACCESS_KEY, SECRET_KEY, SeaweedServer


@pytest.fixture(params=["folder", "memory", "bucket", "azure", "sealed"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    """An empty store of each kind."""
    if request.param == "bucket":
        server: SeaweedServer = request.getfixturevalue("seaweed_server")
        return ObjectBlobs.in_bucket(bucket_settings(server, server.make_bucket()))
    if request.param == "azure":
        return ObjectBlobs.in_bucket(request.getfixturevalue("azurite").blobs())
    if request.param == "sealed":
        return SealedBlobs(ObjectBlobs(MemoryStore(), content_types=True), a_sealer(), encrypts=True)
    if request.param == "folder":
        return ObjectBlobs.in_folder(tmp_path / "new" / "blobs")
    return ObjectBlobs(MemoryStore(), content_types=True)


def a_sealer(*numbers: int) -> Sealer:
    sealer = Sealer()
    sealer.load({number: bytes([number]) * 32 for number in numbers or (1,)})
    return sealer


def bucket_settings(server: SeaweedServer, bucket: str) -> BlobSettings:
    return BlobSettings(
        url=f"s3://{bucket}/all/of.it",
        endpoint=server.endpoint,
        region="us-east-1",
        access_key=SecretStr(ACCESS_KEY),
        secret_key=SecretStr(SECRET_KEY),
    )


async def whole(blobs: Blobs, key: str) -> bytes:
    return b"".join([piece async for piece in blobs.stream(key)])


async def test_what_is_put_is_got(blobs: Blobs) -> None:
    key = keys.artifact("run_1", 1, "page.html")
    for data in (b"first", b"", b"\x00\xff" * 700_000):
        await blobs.put(key, data, "text/html")
        assert await blobs.get(key) == data
        assert await whole(blobs, key) == data
        assert await blobs.size(key) == len(data)


async def test_a_large_object_comes_in_pieces(blobs: Blobs) -> None:
    await blobs.put("a/large", b"x" * 3_000_000, "text/plain")
    async for piece in blobs.stream("a/large"):
        assert isinstance(piece, bytes)
        assert 0 < len(piece) <= 3_000_000
    assert len(await whole(blobs, "a/large")) == 3_000_000


async def pieces(count: int, fails: bool = False) -> AsyncIterator[bytes]:
    for number in range(count):
        yield bytes([number % 256]) * 100_000
    if fails:
        raise LookupError("the source broke off")


@pytest.mark.parametrize("count", [0, 1, 3, 120])
async def test_what_comes_in_pieces_is_put_whole(blobs: Blobs, count: int) -> None:
    assert await blobs.put_stream("a/piecewise", pieces(count), "text/plain") == count * 100_000
    assert await blobs.get("a/piecewise") == b"".join([piece async for piece in pieces(count)])
    await blobs.put_stream("a/piecewise", pieces(2), "text/plain")
    assert await blobs.size("a/piecewise") == 200_000


@pytest.mark.parametrize("count", [0, 1, 120])
async def test_pieces_that_break_off_leave_what_was_there(blobs: Blobs, count: int) -> None:
    with pytest.raises(LookupError):
        await blobs.put_stream("a/broken", pieces(count, fails=True), "text/plain")
    assert await blobs.size("a/broken") is None
    await blobs.put("a/broken", b"whole", "text/plain")
    with pytest.raises(LookupError):
        await blobs.put_stream("a/broken", pieces(count, fails=True), "text/plain")
    assert await blobs.get("a/broken") == b"whole"


@pytest.mark.parametrize("count", [0, 120])
async def test_a_cancelled_writer_leaves_nothing_and_its_pieces_can_be_closed(blobs: Blobs, count: int) -> None:
    waits = asyncio.Event()

    async def endless() -> AsyncGenerator[bytes, None]:
        async for piece in pieces(count):
            yield piece
        waits.set()
        await asyncio.Event().wait()

    source = endless()
    writer = asyncio.create_task(blobs.put_stream("a/given-up", source, "text/plain"))
    await waits.wait()
    writer.cancel()
    await asyncio.wait([writer])
    assert writer.cancelled()
    await source.aclose()
    assert await blobs.size("a/given-up") is None


async def test_no_file_appears_after_a_writer_was_cancelled(tmp_path: Path) -> None:
    folder = tmp_path / "blobs"
    blobs, other = ObjectBlobs.in_folder(folder), ObjectBlobs.in_folder(tmp_path / "other")
    for number in range(20):
        writer = asyncio.create_task(blobs.put(f"a/{number}", bytes(4_000_000), "text/plain"))
        await asyncio.sleep(0)
        writer.cancel()
        await asyncio.wait([writer])
        shutil.rmtree(folder)
        await other.put("b", bytes(4_000_000), "text/plain")
        assert not folder.exists(), f"it was written after writer {number} had ended"
        folder.mkdir()


async def test_a_bad_key_for_pieces(blobs: Blobs) -> None:
    with pytest.raises(BadRequest):
        await blobs.put_stream("../x", pieces(1), "text/plain")


async def test_what_is_not_there(blobs: Blobs) -> None:
    assert await blobs.size("runs/none") is None
    with pytest.raises(NotFound):
        await blobs.get("runs/none")
    with pytest.raises(NotFound):
        await whole(blobs, "runs/none")


async def test_single_objects_are_removed(blobs: Blobs) -> None:
    for key in ("a/1", "a/2", "a/3"):
        await blobs.put(key, b"x", "text/plain")
    await blobs.delete(["a/1", "a/none", "a/3"])
    assert [await blobs.size(key) for key in ("a/1", "a/2", "a/3")] == [None, 1, None]
    with pytest.raises(BadRequest):
        await blobs.delete(["../a"])


async def test_more_than_one_window_is_read_in_order(blobs: Blobs) -> None:
    data = array("I", range(4_400_000)).tobytes()
    await blobs.put("a/windows", data, "text/plain")
    assert await whole(blobs, "a/windows") == data


async def test_a_prefix_takes_its_own_objects_only(blobs: Blobs) -> None:
    kept = [keys.result("run_11", 1), keys.result("run_2", 1), "runs/run_1x"]
    gone = [keys.result("run_1", 1), keys.artifact("run_1", 2, "a.png"), keys.result("run_3", 1)]
    for key in kept + gone:
        await blobs.put(key, b"x", "text/plain")
    await blobs.delete_prefix([keys.run_prefix(run_id) for run_id in ("run_1", "run_3", "run_none")])
    assert [await blobs.size(key) for key in kept] == [1, 1, 1]
    assert [await blobs.size(key) for key in gone] == [None, None, None]


async def test_a_prefix_of_very_many(blobs: Blobs) -> None:
    await asyncio.gather(*(blobs.put(f"runs/many/{number}", b"x", "text/plain") for number in range(150)))
    await blobs.delete_prefix(["runs/many/"])
    sizes = await asyncio.gather(*(blobs.size(f"runs/many/{number}") for number in range(150)))
    assert set(sizes) == {None}


async def test_writers_of_one_key_never_mix(blobs: Blobs) -> None:
    contents = [bytes([number]) * 200_000 for number in range(8)]
    await asyncio.gather(*(blobs.put("runs/same", data, "x/y") for data in contents))
    readers = asyncio.gather(*(blobs.get("runs/same") for _ in range(16)))
    await asyncio.gather(*(blobs.put("runs/same", data, "x/y") for data in contents))
    assert all(seen in contents for seen in await readers)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/etc/passwd",
        "../secret",
        "runs/../../secret",
        "runs/./x",
        "runs//x",
        "runs/",
        "runs/a b",
        "runs/\x00",
        "runs/é",
        "runs/x#1",
        "runs/x\n",
        "runs\\x",
        "a/" * 600 + "b",
    ],
)
async def test_a_key_that_could_lead_elsewhere_is_refused(blobs: Blobs, key: str) -> None:
    with pytest.raises(BadRequest):
        await blobs.put(key, b"x", "text/plain")
    with pytest.raises(BadRequest):
        await blobs.get(key)
    with pytest.raises(BadRequest):
        await blobs.size(key)
    with pytest.raises(BadRequest):
        await whole(blobs, key)


@pytest.mark.parametrize("prefix", ["", "/", "../", "runs/../"])
async def test_a_prefix_that_could_lead_elsewhere_is_refused(blobs: Blobs, prefix: str) -> None:
    with pytest.raises(BadRequest):
        await blobs.delete_prefix([prefix])


async def test_ping_leaves_nothing(tmp_path: Path) -> None:
    blobs = ObjectBlobs.in_folder(tmp_path / "blobs")
    assert 0 < await blobs.ping() < PATIENCE * 1000
    assert list((tmp_path / "blobs").rglob("*")) == []


async def test_deleting_leaves_no_empty_folders(tmp_path: Path) -> None:
    blobs = ObjectBlobs.in_folder(tmp_path / "blobs")
    await blobs.put(keys.result("run_1", 1), b"{}", "application/json")
    await blobs.delete_prefix([keys.run_prefix("run_1")])
    assert list((tmp_path / "blobs").rglob("*")) == []


async def test_several_may_remove_the_same_at_once(blobs: Blobs) -> None:
    for number in range(30):
        await blobs.put(f"job_1/list/{number}", b"x", "text/plain")
    await asyncio.gather(*(blobs.delete_prefix(["job_1/list/"]) for _ in range(8)))
    assert [await blobs.size(f"job_1/list/{number}") for number in range(30)] == [None] * 30


async def test_what_a_killed_write_left_goes_with_its_prefix(tmp_path: Path) -> None:
    blobs = ObjectBlobs.in_folder(tmp_path / "blobs")
    for job in ("job_1", "job_2"):
        await blobs.put(f"{job}/exports/e/full.csv", b"x", "text/csv")
        (tmp_path / "blobs" / job / "exports" / "e" / "full.csv#1").write_bytes(b"half")
    await blobs.delete_prefix(["job_1/"])
    kept = sorted(
        str(path.relative_to(tmp_path / "blobs")) for path in (tmp_path / "blobs").rglob("*") if path.is_file()
    )
    assert kept == ["job_2/exports/e/full.csv", "job_2/exports/e/full.csv#1"]


async def test_the_content_type_is_kept_where_the_store_can() -> None:
    store = MemoryStore()
    await ObjectBlobs(store, content_types=True).put("a/b", b"{}", "application/json")
    found = await obstore.get_async(store, "a/b")
    assert found.attributes["Content-Type"] == "application/json"


async def test_a_bucket_keeps_type_and_encoding(seaweed_server: SeaweedServer) -> None:
    bucket = seaweed_server.make_bucket()
    blobs = ObjectBlobs.in_bucket(bucket_settings(seaweed_server, bucket))
    await blobs.put("a/b", b"coded", "text/html", "gzip")
    await blobs.put_stream("a/c", pieces(1), "text/csv", "gzip")
    for key, kind in (("a/b", "text/html"), ("a/c", "text/csv")):
        found = await obstore.get_async(seaweed_server.store(bucket, "all/of.it"), key)
        assert dict(found.attributes) == {"Content-Type": kind, "Content-Encoding": "gzip"}


async def test_a_bucket_that_does_not_answer(unused_tcp_port: int) -> None:
    settings = BlobSettings(
        url="s3://nothing-there",
        endpoint=f"http://127.0.0.1:{unused_tcp_port}",
        region="us-east-1",
        access_key=SecretStr("a"),
        secret_key=SecretStr("b"),
    )
    with pytest.raises(BlobsUnavailable, match=r"blobs\.url"):
        await ObjectBlobs.in_bucket(settings).put("a/b", b"x", "text/plain")


async def test_a_folder_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BlobsUnavailable, match="data directory"):
        ObjectBlobs.in_folder(tmp_path / "file")


async def test_a_folder_that_goes_away(tmp_path: Path) -> None:
    blobs = ObjectBlobs.in_folder(tmp_path / "blobs")
    await blobs.put("a/b", b"x", "text/plain")
    (tmp_path / "blobs" / "a" / "b").unlink()
    (tmp_path / "blobs" / "a").rmdir()
    (tmp_path / "blobs" / "a").touch()
    with pytest.raises(BlobsUnavailable):
        await blobs.put("a/b", b"x", "text/plain")


async def test_folders_are_listed_and_many_objects_removed(blobs: Blobs) -> None:
    names = ["runs/run_2/1/a", "runs/run_1/1/a", "job_1/b", "job_1/c"]
    for name in names:
        await blobs.put(name, b"x", "text/plain")
    assert await blobs.folders("") == ["job_1", "runs"]
    assert await blobs.folders("runs/") == ["run_1", "run_2"]
    await blobs.delete([*names, "runs/missing"])
    assert [await blobs.size(name) for name in names] == [None] * 4
    assert await blobs.folders("nothing/") == []


class TestSealed:
    @pytest.fixture
    def inner(self) -> ObjectBlobs:
        return ObjectBlobs(MemoryStore(), content_types=True)

    @pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 7])
    async def test_any_range_of_any_size_is_read(self, inner: ObjectBlobs, size: int) -> None:
        blobs, data = SealedBlobs(inner, a_sealer(), encrypts=True), os.urandom(size)
        await blobs.put("a/put", data, "text/html")

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, size, 10_001):
                yield data[start : start + 10_001]

        assert await blobs.put_stream("a/streamed", pieces(), "text/html") == size
        cuts = sorted({0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, size // 2, size - 1, size} & set(range(size + 1)))
        for key in ("a/put", "a/streamed"):
            assert (await blobs.size(key), await blobs.get(key), await whole(blobs, key)) == (size, data, data)
            assert data[:40] not in await inner.get(key) or size < 8
            for start in cuts:
                for end in (cut for cut in cuts if cut > start):
                    part = b"".join([piece async for piece in blobs.stream(key, start, end)])
                    assert part == data[start:end]

    async def test_what_was_changed_cut_or_moved_is_told(self, inner: ObjectBlobs) -> None:
        blobs = SealedBlobs(inner, a_sealer(), encrypts=True)
        await blobs.put("a/b", b"x" * (2 * CHUNK + 5), "text/plain")
        stored = await inner.get("a/b")
        chunk = CHUNK + 16
        wrong = {
            "changed": stored[:-1] + bytes([stored[-1] ^ 1]),
            "cut": stored[: HEAD + chunk],
            "cut more": stored[: HEAD - 9],
            "swapped": stored[:HEAD] + stored[HEAD + chunk : HEAD + 2 * chunk] + stored[HEAD : HEAD + chunk],
        }
        for name, data in wrong.items():
            await inner.put("a/b", data, "text/plain")
            with pytest.raises(BlobsUnavailable):
                await whole(blobs, "a/b")
            assert name
        await inner.put("a/moved", stored, "text/plain")
        with pytest.raises(BlobsUnavailable):
            await blobs.get("a/moved")

    async def test_older_objects_and_keys_stay_readable(self, inner: ObjectBlobs) -> None:
        await inner.put("clear", b"as it was", "text/plain")
        first = SealedBlobs(inner, a_sealer(1), encrypts=True)
        await first.put("sealed", b"secret", "text/plain")
        newer = SealedBlobs(inner, a_sealer(1, 2), encrypts=False)
        assert [await newer.get("clear"), await newer.get("sealed")] == [b"as it was", b"secret"]
        assert [await newer.size("clear"), await newer.size("sealed")] == [9, 6]
        await newer.put("later", b"clear again", "text/plain")
        assert await inner.get("later") == b"clear again"
        without = SealedBlobs(inner, a_sealer(2), encrypts=True)
        with pytest.raises(BlobsUnavailable, match="data key"):
            await without.get("sealed")
