"""What one attempt at an item stores, and the item's manifest, which lists it.

The manifest, `{job_id}/manifests/items/{item_id}.json`, is written after every object that it names. An attempt that
may replace objects of an earlier one removes the earlier manifest first. So whatever is killed when, a manifest that is
there names only objects that are there, with their sizes and digests.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from msgspec import Struct

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.model.run import Artifact
from scrapeyard.results import artifacts

_IN_THREAD: Final = 256 * 1024
"""Larger data is hashed in a thread: it would block the event loop too long."""
_encode = msgspec.json.Encoder().encode


class StoredObject(Struct, frozen=True, kw_only=True):
    """An object in an item's manifest. Size and digest are before compression."""

    name: str
    key: str
    content_type: str
    bytes: int
    sha256: str


class ItemEnd(Struct, frozen=True, kw_only=True):
    """How the item ended."""

    status: str
    exit_reason: str
    attempts: int
    scraper: str
    site: str
    started_at: str | None
    finished_at: str | None
    result_bytes: int
    partial: bool
    """It failed, and `data.json` has the records that the script yielded before."""


class ItemManifest(ItemEnd, frozen=True, kw_only=True):
    """The manifest of one item."""

    job_id: str
    item_id: str
    seq: int
    objects: tuple[StoredObject, ...]


class ItemObjects:
    """The objects of one attempt. Without `listed` there is no manifest, and nothing is hashed.

    `is_first` says that no attempt at this item was made before: there is no earlier manifest.
    """

    def __init__(self, blobs: Blobs, job_id: str, item: str, *, listed: bool, is_first: bool) -> None:
        self._blobs = blobs
        self._job_id = job_id
        self._item = item
        self._listed = listed
        self._may_have_manifest = not is_first  # also without `listed`: a redrive may have changed the policy
        self._stored: dict[str, StoredObject] = {}

    async def put(self, name: str, content_type: str, data: bytes, *, script: bool = False) -> Artifact:
        """Store bytes under one of keys.ITEM_OBJECTS or, with `script`, a name the script chose. Raises
        BlobsUnavailable."""
        await self._remove_manifest()
        kept = await artifacts.keep(self._blobs, self._job_id, self._item, name, data, content_type, script=script)
        if self._listed:
            self._add(kept, await asyncio.to_thread(_digest, data) if len(data) > _IN_THREAD else _digest(data))
        return kept

    async def put_stream(self, name: str, content_type: str, pieces: AsyncIterator[bytes]) -> Artifact:
        """As `put`, for an artifact of the script that arrives in pieces."""
        await self._remove_manifest()
        if not self._listed:
            return await artifacts.keep_stream(self._blobs, self._job_id, self._item, name, pieces, content_type)
        hasher = hashlib.sha256()

        async def hashed() -> AsyncIterator[bytes]:
            async for piece in pieces:
                hasher.update(piece)
                yield piece

        kept = await artifacts.keep_stream(self._blobs, self._job_id, self._item, name, hashed(), content_type)
        self._add(kept, hasher.hexdigest())
        return kept

    async def write_manifest(self, seq: int, end: ItemEnd) -> None:
        """List what was stored; nothing may be stored after it. Raises BlobsUnavailable."""
        if not self._listed:
            return
        manifest = ItemManifest(
            job_id=self._job_id,
            item_id=self._item,
            seq=seq,
            objects=tuple(self._stored.values()),
            **msgspec.structs.asdict(end),
        )
        key = keys.item_manifest(self._job_id, self._item)
        await artifacts.put(self._blobs, key, _encode(manifest), "application/json")

    async def _remove_manifest(self) -> None:
        if self._may_have_manifest:
            await self._blobs.delete([keys.item_manifest(self._job_id, self._item)])
            self._may_have_manifest = False

    def _add(self, kept: Artifact, digest: str) -> None:
        self._stored[kept.key] = StoredObject(
            name=kept.name, key=kept.key, content_type=kept.content_type, bytes=kept.size, sha256=digest
        )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
