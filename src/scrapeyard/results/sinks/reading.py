"""Reads a job's items for a sink: plans the next batch, and loads the records of a planned one."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from scrapeyard.blobs.port import Blobs
from scrapeyard.errors import NotFound
from scrapeyard.model.job import Item, ItemStatus, Job, JobStatus
from scrapeyard.results import artifacts
from scrapeyard.results.masking import Masker
from scrapeyard.results.sinks.port import RefusedRecord, SinkRecord
from scrapeyard.results.sinks.progress import AHEAD, ItemNumbers, Passing, SinkProgress
from scrapeyard.settings import SinkTarget
from scrapeyard.store.ports.jobs import ItemFilter, ItemStore

MB: Final = 1024 * 1024
_FINAL: Final = (ItemStatus.SUCCESS, ItemStatus.ERROR)
_READS: Final = 8
SCAN_SECONDS: Final = 5.0
"""Maximum time to look for items of a batch: progress over millions of unchanged ones is stored now and then."""
_GONE: Final = "its result was removed before it was delivered: by retention, or forgotten"


def is_settled(job: Job) -> bool:
    """Whether no item of the job ends any more, unless it is redriven."""
    is_over = job.status.is_final or job.status is JobStatus.FINISHING
    return is_over and not job.counts.queued + job.counts.in_progress


class BatchLimits(Struct, frozen=True, kw_only=True):
    """How much goes into one batch."""

    records: int
    bytes: int

    @classmethod
    def of(cls, target: SinkTarget) -> "BatchLimits":
        """Those of a sink."""
        return cls(records=target.records, bytes=int(target.batch_mb * MB))


class Planned(Struct, frozen=True, kw_only=True):
    """What planning found."""

    progress: SinkProgress
    """With a batch, or without if there is nothing to deliver now."""
    unchanged: int
    """Ended items that were passed over."""
    is_whole: bool
    """Whether all items were looked at."""


class _Plan:
    """A batch in the making."""

    def __init__(self, job: Job, progress: SinkProgress, limits: BatchLimits) -> None:
        self._progress = progress
        self._limits = limits
        self._is_settled = is_settled(job)
        self.passing = Passing(progress.passed)
        self.picked: list[int] = []
        self.unchanged = 0
        self._bytes = 0

    def take(self, items: Sequence[Item]) -> bool:
        """Look at some more items, in order. False if that is enough."""
        for item in items:
            if self._is_settled and not self.picked:
                self.passing.skip_to(item.seq)  # those between never end
            if item.seq in self.passing:
                continue
            if self._progress.is_unchanged(item.seq, item.finished_at or 0.0):
                self.passing.add((item.seq,))
                self.unchanged += 1
                continue
            self._bytes += item.result_bytes
            is_full = len(self.picked) >= self._limits.records or (self.picked and self._bytes > self._limits.bytes)
            if is_full or item.seq - self.passing.at > AHEAD + self._limits.records:
                return False
            self.picked.append(item.seq)
        return True

    def end(self, total: int) -> None:
        """All items were looked at."""
        if self._is_settled and not self.picked:
            self.passing.skip_to(total)


async def plan_batch(items: ItemStore, job: Job, progress: SinkProgress, limits: BatchLimits) -> Planned:
    """The next batch of a job, in list order."""
    plan = _Plan(job, progress, limits)
    until = time.monotonic() + SCAN_SECONDS
    is_whole = True
    where = ItemFilter(first=plan.passing.at, statuses=_FINAL)
    async with aclosing(items.stream(job.id, where, data=False)) as blocks:
        async for block in blocks:
            is_whole = plan.take(block) and (bool(plan.picked) or time.monotonic() < until)
            if not is_whole:
                break
    if is_whole:
        plan.end(job.counts.total)
    progress = replace(progress, passed=plan.passing.numbers())
    if plan.picked:
        batch = ItemNumbers.of(plan.picked[0], plan.picked)
        progress = replace(progress, batch=batch, number=progress.number + 1)
    return Planned(progress=progress, unchanged=plan.unchanged, is_whole=is_whole)


class LoadedBatch(Struct, frozen=True, kw_only=True):
    """A planned batch, as the store has its items now."""

    numbers: tuple[int, ...]
    records: tuple[SinkRecord, ...]
    refused: tuple[RefusedRecord, ...]
    """Items whose record cannot be made."""
    is_cut: bool
    """Whether the batch had too many bytes. Then only its first items are here, and the others come in a later one."""


class RecordReader:
    """Loads records. `max_bytes`: a larger result is refused."""

    def __init__(self, items: ItemStore, blobs: Blobs, max_bytes: int) -> None:
        self._items = items
        self._blobs = blobs
        self._max_bytes = max_bytes

    async def read(self, job: Job, batch: ItemNumbers, masker: Masker | None, most: int) -> LoadedBatch:
        """The records of a planned batch, of at most `most` bytes if there are several. An item that was redriven since
        it was planned is left out: it is delivered when it has ended again."""
        wanted = batch.set_bits()
        last = max(wanted)
        numbers: list[int] = []
        found: list[SinkRecord | RefusedRecord] = []
        size, is_cut = 0, False
        async with aclosing(self._items.stream(job.id, ItemFilter(first=min(wanted), statuses=_FINAL))) as blocks:
            async for block in blocks:
                items = [item for item in block if item.seq in wanted]
                for item, record in zip(items, await self._records(job, items), strict=True):
                    size += _size(record)
                    is_cut = is_cut or (bool(numbers) and size > most)
                    if not is_cut:
                        numbers.append(item.seq)
                        found.append(record)
                if is_cut or block[-1].seq >= last:
                    break
        records = [each for each in found if isinstance(each, SinkRecord)]
        if masker is not None and masker.masks_exports:
            records = await asyncio.to_thread(lambda: [_masked(record, masker) for record in records])
        refused = tuple(each for each in found if isinstance(each, RefusedRecord))
        return LoadedBatch(numbers=tuple(numbers), records=tuple(records), refused=refused, is_cut=is_cut)

    async def _records(self, job: Job, items: Sequence[Item]) -> list[SinkRecord | RefusedRecord]:
        room = asyncio.Semaphore(_READS)

        async def read(item: Item) -> SinkRecord | RefusedRecord:
            async with room:
                return await self._record(job, item)

        if not any(item.result_key for item in items):
            return [await self._record(job, item) for item in items]
        return list(await asyncio.gather(*map(read, items)))

    async def _record(self, job: Job, item: Item) -> SinkRecord | RefusedRecord:
        if _is_forgotten(item):
            return RefusedRecord(item_key=item.key, why=_GONE)
        if item.status is ItemStatus.SUCCESS and item.result_bytes > self._max_bytes:
            why = f"its result has {item.result_bytes} bytes; sinks.max_record_mb allows {self._max_bytes}"
            return RefusedRecord(item_key=item.key, why=why)
        data = b"null"
        if item.status is ItemStatus.SUCCESS:
            try:
                stored = item.result_key
                data = await artifacts.read(self._blobs, stored) if stored else bytes(item.result or b"")
            except NotFound:
                data = b""
            if not data and (item.result_bytes or "results" in job.swept_of(item)):
                return RefusedRecord(item_key=item.key, why=_GONE)
        scraper, _, version = job.pinned.partition("@")
        return SinkRecord(
            job_id=job.id,
            item_key=item.key,
            scraper=scraper,
            version=version,
            status=item.status.value,
            exit_reason="" if item.exit_reason is None else item.exit_reason.value,
            http_status=item.http_status,
            attempt=item.attempt,
            finished_at=item.finished_at or 0.0,
            error="" if item.error is None else item.error.message,
            input=item.input,
            data=Raw(data or b"null"),
        )


def _size(record: SinkRecord | RefusedRecord) -> int:
    """Bytes of its documents: a plan knows those of results alone."""
    if isinstance(record, RefusedRecord):
        return 0
    return len(bytes(record.input)) + len(bytes(record.data)) + len(record.error)


def _is_forgotten(item: Item) -> bool:
    """As the ForgetStore leaves an item: under its new key, its record would be one more in the sink."""
    return item.key == f"forgotten-{item.seq}" and bytes(item.input) == b"{}"


def _masked(record: SinkRecord, masker: Masker) -> SinkRecord:
    return replace(
        record,
        error=masker.text(record.error),
        input=Raw(masker.json(bytes(record.input))),
        data=Raw(masker.json(bytes(record.data))),
    )
