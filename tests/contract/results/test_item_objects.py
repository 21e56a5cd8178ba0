"""Manifests of single items: whatever is killed when, they name only what is there."""

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.errors import NotFound
from scrapeyard.results import artifacts
from scrapeyard.results.item_objects import ItemEnd, ItemObjects

JOB, ITEM = "job_1", "item-1"
GOOD = ItemEnd(
    status="success", exit_reason="succeeded", attempts=1, scraper="shop/product@1.0.0", site="shop.example",
    started_at="2026-01-01T00:00:00Z", finished_at="2026-01-01T00:00:01Z", result_bytes=9, partial=False,
)  # fmt: skip


class Killed(BaseException):
    """The worker is gone."""


class MortalBlobs:
    """Dies before one of its writes, counted from 0."""

    def __init__(self, blobs: ObjectBlobs, dies_at: int | None = None) -> None:
        self._blobs = blobs
        self._left = dies_at
        self.deleted: list[str] = []

    async def put(self, *given: Any) -> None:
        self._step()
        await self._blobs.put(*given)

    async def put_stream(self, *given: Any) -> int:
        self._step()
        return await self._blobs.put_stream(*given)

    def stream(self, *given: Any) -> AsyncIterator[bytes]:
        return self._blobs.stream(*given)

    async def delete(self, names: list[str]) -> None:
        self._step()
        self.deleted += names
        await self._blobs.delete(names)

    def _step(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise Killed


@pytest.fixture
def blobs(tmp_path: Path) -> ObjectBlobs:
    return ObjectBlobs.in_folder(tmp_path / "blobs")


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


def objects(blobs: Any, *, listed: bool = True, is_first: bool = True) -> ItemObjects:
    return ItemObjects(blobs, JOB, ITEM, listed=listed, is_first=is_first)


async def attempt(store: ItemObjects, words: str) -> None:
    """What a worker does for one item: artifacts of the script, its data and page, then the manifest."""
    await store.put("notes.txt", "text/plain", words.encode() * 500, script=True)
    await store.put_stream("list.csv", "text/csv", pieces(words.encode(), b"\n" * 2000))
    await store.put(keys.DATA, "application/json", json.dumps({"words": words}).encode())
    await store.put(keys.METADATA, "application/json", b"{}")
    await store.write_manifest(3, GOOD)


async def manifest(blobs: ObjectBlobs) -> dict[str, Any] | None:
    """As it is, after every object that it names was looked at; None if there is none."""
    try:
        found: dict[str, Any] = json.loads(await artifacts.read(blobs, keys.item_manifest(JOB, ITEM)))
    except NotFound:
        return None
    for each in found["objects"]:
        data = await artifacts.read(blobs, each["key"])
        assert (len(data), hashlib.sha256(data).hexdigest()) == (each["bytes"], each["sha256"]), each["key"]
    return found


async def test_it_lists_every_object_with_size_and_digest(blobs: ObjectBlobs) -> None:
    await attempt(objects(blobs), "first")
    found = await manifest(blobs)
    assert found is not None
    assert [each["key"] for each in found.pop("objects")] == [
        f"{JOB}/items/{ITEM}/artifacts/notes.txt",
        f"{JOB}/items/{ITEM}/artifacts/list.csv",
        f"{JOB}/items/{ITEM}/data.json",
        f"{JOB}/items/{ITEM}/metadata.json",
    ]
    assert found == {
        "job_id": JOB, "item_id": ITEM, "seq": 3, "status": "success", "exit_reason": "succeeded", "attempts": 1,
        "scraper": "shop/product@1.0.0", "site": "shop.example", "started_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T00:00:01Z", "result_bytes": 9, "partial": False,
    }  # fmt: skip


async def killed_everywhere(
    tmp_path: Path, before: Callable[[ObjectBlobs], Awaitable[None]], is_first: bool
) -> list[bool]:
    """An attempt is killed before each of its writes; whether there was a manifest then."""
    seen = []
    for dies_at in range(20):
        blobs = ObjectBlobs.in_folder(tmp_path / f"blobs-{dies_at}")
        await before(blobs)
        try:
            await attempt(objects(MortalBlobs(blobs, dies_at), is_first=is_first), "second")
        except Killed:
            seen.append(await manifest(blobs) is not None)
            continue
        found = await manifest(blobs)
        assert found is not None
        assert len(found["objects"]) == 4
        return seen
    raise AssertionError("it always died")


async def test_a_first_attempt_that_is_killed_leaves_no_manifest(tmp_path: Path) -> None:
    async def nothing(_: ObjectBlobs) -> None: ...

    assert await killed_everywhere(tmp_path, nothing, is_first=True) == [False] * 5


async def test_a_later_attempt_that_is_killed_leaves_the_old_manifest_or_none(tmp_path: Path) -> None:
    async def first(blobs: ObjectBlobs) -> None:
        await attempt(objects(blobs), "first")

    assert await killed_everywhere(tmp_path, first, is_first=False) == [True, *[False] * 5]


async def test_jobs_without_objects_pay_nothing_for_it(blobs: ObjectBlobs) -> None:
    mortal = MortalBlobs(blobs)
    await attempt(objects(mortal, listed=False), "first")
    assert (await manifest(blobs), mortal.deleted) == (None, [])


async def test_a_first_attempt_removes_nothing(blobs: ObjectBlobs) -> None:
    mortal = MortalBlobs(blobs)
    await attempt(objects(mortal), "first")
    assert mortal.deleted == []
    await attempt(objects(mortal, is_first=False), "second")
    assert mortal.deleted == [keys.item_manifest(JOB, ITEM)]
