"""The outcome of every item, in parts of 1,000: all of them, the successes, the errors; then a summary that lists the
parts.

The items of a settled job do not change, so writing it all again gives the same bytes. The summary comes last: as long
as it is not there, the manifests are not whole. Jobs that store their results as objects have an index of the parts
beside it, which is there while they run (`running_manifests.py`).
"""

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.blobs.keys import MANIFESTS, ManifestKind
from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import NotFound
from scrapeyard.model.job import Item, ItemStatus, Job
from scrapeyard.model.run import Artifact, RunError, Usage
from scrapeyard.results import artifacts
from scrapeyard.results.exports.cells import as_time

PART_ITEMS: Final = 1000
_JSON: Final = "application/json"
_encode = msgspec.json.Encoder().encode
KINDS: Final[dict[ItemStatus, ManifestKind]] = {ItemStatus.SUCCESS: "success", ItemStatus.ERROR: "errors"}


class ManifestEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item in a manifest. Empty fields are omitted."""

    item_id: str
    seq: int
    status: str
    attempts: int = 0
    exit_reason: str = ""
    http_status: int | None = None
    started_at: str | None = None
    finished_at: str | None = None
    site: str = ""
    input: Raw = Raw(b"{}")
    result: Raw | None = None
    """The data, where it is small."""
    result_key: str = ""
    """Blob key of the data, if it is an object."""
    result_bytes: int = 0
    partial: bool = False
    """The item failed; `result` has the records that the script yielded before."""
    error: RunError | None = None
    artifacts: tuple[Artifact, ...] = ()
    depth: int | None = None
    referrer: str = ""


class PartFile(Struct, frozen=True, kw_only=True):
    """One part as listed in the summary. Size and digest are before compression."""

    part: int
    key: str
    items: int
    bytes: int
    digest: str


class ManifestFiles(Struct, frozen=True, kw_only=True):
    """One kind of manifest."""

    items: int
    parts: int
    files: tuple[PartFile, ...]


class ManifestIndex(Struct, frozen=True, kw_only=True):
    """`manifests/index.json`: the parts that there are. Parts are added and, but for a redrive, never change."""

    job_id: str
    redrives: int
    """How often the job was redriven when it was made; void if the job has another number by now."""
    complete: bool
    """Whether every item of the job is in the manifests."""
    items: int
    """Every item with a smaller number is in `full`."""
    counts: dict[str, int]
    """These items by status."""
    manifests: dict[str, ManifestFiles]
    next: dict[str, int]
    """By manifest: the number of the item at which its next part begins, at the earliest."""


class JobMetadata(Struct, frozen=True, kw_only=True):
    """`job_metadata.json`."""

    job_id: str
    name: str
    scraper: str
    pinned: str
    created_at: str | None
    started_at: str | None
    """Start of the first recorded attempt."""
    finished_at: str | None
    """End of the last recorded attempt."""
    duration_seconds: float
    counts: dict[str, int]
    exit_reasons: dict[str, int]
    http_statuses: dict[str, int] = {}
    """Items by the HTTP status of the last page that each fetched, where there was an answer."""
    usage: Usage
    warnings: tuple[str, ...] = ()
    """What of the job's source was not read."""
    manifests: dict[str, ManifestFiles]


async def write_manifests(blocks: AsyncIterator[Sequence[Item]], blobs: Blobs, job: Job) -> JobMetadata:
    """Write every part and the summary of a job whose items have all ended. May be repeated."""
    writer = ManifestWriter(blobs, job.id)
    async for block in blocks:
        await writer.add(block)
    return await writer.finish(job)


class ManifestWriter:
    """Writes the manifests of one job from its items, in order. Useless after an exception."""

    def __init__(self, blobs: Blobs, job_id: str) -> None:
        self._blobs = blobs
        self._parts = {kind: _Parts(blobs, job_id, kind) for kind in MANIFESTS}
        self._summary = _Summary()

    async def add(self, block: Sequence[Item]) -> None:
        """Add items that have ended; writes every part that is full."""
        self._summary.add(block)
        encoded = await asyncio.to_thread(encode_entries, block)
        await self._parts["full"].add(encoded)
        for status, kind in KINDS.items():
            await self._parts[kind].add([pair for pair in encoded if pair[0] is status])

    async def finish(self, job: Job) -> JobMetadata:
        """Write the last parts and the summary. `job` has ended, and all its items were added."""
        files = {kind: await parts.finish() for kind, parts in self._parts.items()}
        metadata = self._summary.metadata(job, files)
        await _drop_older(self._blobs, job, metadata)
        if job.policy.results == "objects":
            await put_index(self._blobs, _whole_index(job, metadata))
        await artifacts.put(self._blobs, keys.job_metadata(job.id), _encode(metadata), _JSON)
        return metadata


def new_index(job: Job) -> ManifestIndex:
    """An index without parts."""
    none = ManifestFiles(items=0, parts=0, files=())
    return ManifestIndex(
        job_id=job.id,
        redrives=job.redrives,
        complete=False,
        items=0,
        counts={},
        manifests={str(kind): none for kind in MANIFESTS},
        next={},
    )


async def put_index(blobs: Blobs, index: ManifestIndex) -> None:
    """Write it. Its parts are there already."""
    await artifacts.put(blobs, keys.manifest_index(index.job_id), _encode(index), _JSON)


def _whole_index(job: Job, metadata: JobMetadata) -> ManifestIndex:
    counts = {status: count for status, count in metadata.counts.items() if count and status != "total"}
    return replace(
        new_index(job), complete=True, items=metadata.counts["total"], counts=counts, manifests=metadata.manifests
    )


async def put_part(
    blobs: Blobs, job_id: str, kind: ManifestKind, before: ManifestFiles, entries: Sequence["_Encoded"]
) -> ManifestFiles:
    """Write the part that follows those before; returns all of them."""
    part = before.parts + 1
    key = keys.manifest(job_id, kind, part)
    data, digest = await asyncio.to_thread(_document, job_id, kind, part, entries)
    await artifacts.put(blobs, key, data, _JSON)
    file = PartFile(part=part, key=key, items=len(entries), bytes=len(data), digest=digest)
    return ManifestFiles(items=before.items + len(entries), parts=part, files=(*before.files, file))


async def read_metadata(blobs: Blobs, job_id: str) -> JobMetadata:
    """The summary. Raises NotFound if the manifests are not written (yet)."""
    return msgspec.json.decode(await artifacts.read(blobs, keys.job_metadata(job_id)), type=JobMetadata)


class _Parts:
    """One kind of manifest while it is written."""

    def __init__(self, blobs: Blobs, job_id: str, kind: ManifestKind) -> None:
        self._blobs = blobs
        self._job_id = job_id
        self._kind: ManifestKind = kind
        self._waiting: list[_Encoded] = []
        self._files = ManifestFiles(items=0, parts=0, files=())

    async def add(self, entries: Sequence["_Encoded"]) -> None:
        """In order."""
        self._waiting += entries
        while len(self._waiting) >= PART_ITEMS:
            now, self._waiting = self._waiting[:PART_ITEMS], self._waiting[PART_ITEMS:]
            await self._put(now)

    async def finish(self) -> ManifestFiles:
        """The last part."""
        if self._waiting:
            await self._put(self._waiting)
        return self._files

    async def _put(self, entries: Sequence["_Encoded"]) -> None:
        self._files = await put_part(self._blobs, self._job_id, self._kind, self._files, entries)


class _Summary:
    """Totals of a job, added up as its items pass."""

    def __init__(self) -> None:
        self._counts = {status.value: 0 for status in ItemStatus}
        self._exits: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._first: float | None = None
        self._last: float | None = None

    def add(self, items: Sequence[Item]) -> None:
        for item in items:
            self._counts[item.status.value] += 1
            if item.exit_reason is not None:
                self._exits[item.exit_reason.value] += 1
            if item.http_status is not None:
                self._statuses[item.http_status] += 1
            if item.started_at is not None and (self._first is None or item.started_at < self._first):
                self._first = item.started_at
            if item.finished_at is not None and (self._last is None or item.finished_at > self._last):
                self._last = item.finished_at

    def metadata(self, job: Job, files: dict[ManifestKind, ManifestFiles]) -> JobMetadata:
        duration = (self._last or 0.0) - (self._first or 0.0)
        return JobMetadata(
            job_id=job.id,
            name=job.name,
            scraper=job.scraper,
            pinned=job.pinned,
            created_at=as_time(job.created_at),
            started_at=as_time(self._first),
            finished_at=as_time(self._last),
            duration_seconds=round(max(duration, 0.0), 3),
            counts={"total": sum(self._counts.values()), **self._counts},
            exit_reasons=dict(sorted(self._exits.items())),
            http_statuses={str(status): count for status, count in sorted(self._statuses.items())},
            usage=job.use,
            warnings=job.warnings,
            manifests={str(kind): found for kind, found in files.items()},
        )


_Encoded = tuple[ItemStatus, bytes]


def encode_entries(items: Sequence[Item]) -> list[_Encoded]:
    """Each item's status and its entry. Slow: call it in a thread."""
    return [(item.status, _encode(_entry(item))) for item in items]


def _entry(item: Item) -> ManifestEntry:
    return ManifestEntry(
        item_id=item.key,
        seq=item.seq,
        status=item.status.value,
        attempts=item.attempt,
        exit_reason=item.exit_reason.value if item.exit_reason is not None else "",
        http_status=item.http_status,
        started_at=as_time(item.started_at),
        finished_at=as_time(item.finished_at),
        site=item.site,
        input=item.input,
        result=item.result,
        result_key=item.result_key,
        result_bytes=item.result_bytes,
        partial=item.partial,
        error=item.error,
        artifacts=item.artifacts,
        depth=item.depth,
        referrer=item.referrer,
    )


def _document(job_id: str, kind: ManifestKind, part: int, entries: Sequence[_Encoded]) -> tuple[bytes, str]:
    """The part and its digest. The part states its number of entries, by status, and the digest of their array."""
    body = b"[\n" + b",\n".join([data for _, data in entries]) + b"\n]"
    counts: dict[str, int] = {}
    for status, _ in entries:
        counts[status.value] = counts.get(status.value, 0) + 1
    head = {
        "job_id": job_id,
        "manifest": kind,
        "part": part,
        "items": len(entries),
        "counts": dict(sorted(counts.items())),
        "digest": hashlib.sha256(body).hexdigest(),
    }
    data = _encode(head)[:-1] + b',"entries":' + body + b"}\n"
    return data, hashlib.sha256(data).hexdigest()


async def _drop_older(blobs: Blobs, job: Job, metadata: JobMetadata) -> None:
    """Delete surplus parts: a redriven job may have fewer of a kind. Where no summary tells which there were, some may
    have been written while the job ran."""
    before = dict.fromkeys(MANIFESTS, math.ceil(metadata.counts["total"] / PART_ITEMS) if job.redrives else 0)
    with suppress(NotFound):
        older = await read_metadata(blobs, job.id)
        before = {kind: older.manifests[kind].parts for kind in MANIFESTS}
    for kind in MANIFESTS:
        parts = range(metadata.manifests[kind].parts + 1, before[kind] + 1)
        await blobs.delete([keys.manifest(job.id, kind, part) for part in parts])
