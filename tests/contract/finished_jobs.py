"""Jobs whose items have all ended, made through the store's own steps."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.model import ExitReason, RunError
from scrapeyard.model.job import Batch, ExportWish, ItemOutcome, Job, JobPolicy, JobStatus, NewItem, SnapshotPolicy
from scrapeyard.store.sql import SqlStore

NOW = 1_700_000_000.0


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How one item is to end: with data, as an object, or badly."""

    key: str
    url: str
    data: Any = None
    reason: ExitReason = ExitReason.SUCCEEDED
    site_status: int | None = None
    result_key: str = ""
    result_bytes: int = 0
    depth: int | None = None


def good(number: int, data: Any = None, url: str = "") -> Ended:
    url = url or f"http://shop.example/{number}"
    return Ended(key=f"item-{number}", url=url, data=data if data is not None else {"title": f"Item {number}"})


def bad(number: int, reason: ExitReason = ExitReason.FETCH_TIMEOUT, site_status: int | None = None) -> Ended:
    return Ended(key=f"item-{number}", url=f"http://shop.example/{number}", reason=reason, site_status=site_status)


async def finished_job(
    store: SqlStore,
    items: Sequence[Ended],
    *,
    job_id: str = "job_1",
    exports: Sequence[ExportWish] = (),
    snapshots: SnapshotPolicy | None = None,
    at: float = NOW,
    source: dict[str, Any] | None = None,
    name: str = "",
) -> Job:
    """A job that is FINISHING, with these items in this order."""
    policy = JobPolicy(snapshots=snapshots)
    job = Job(
        id=job_id,
        status=JobStatus.CREATING,
        scraper="shop/product",
        pinned="shop/product@1.0.0",
        created_at=at,
        reading=True,
        exports=tuple(exports),
        policy=policy,
        source=source or {},
        name=name,
    )
    assert await store.jobs.create(job)
    for block in range(0, len(items), 1000):
        new = [
            NewItem(key=item.key, input=Raw(msgspec.json.encode({"url": item.url})), depth=item.depth)
            for item in items[block : block + 1000]
        ]
        assert await store.items.add(job_id, new, block // 1000, at) == len(new)
    await store.jobs.end_reading(job_id, 0, "", at)
    await _run(store, job_id, {item.key: item for item in items}, at)
    assert await store.jobs.move(job_id, JobStatus.RUNNING, JobStatus.FINISHING, at + 10)
    found = await store.jobs.get(job_id)
    assert found is not None
    return found


async def _run(store: SqlStore, job_id: str, ends: dict[str, Ended], at: float) -> None:
    for number in range(len(ends)):
        batch = Batch(id=f"batch_{job_id}_{number}", job_id=job_id, left=500, queued_at=at)
        if await store.batches.cut(batch, at) is None:
            return
        taken = await store.batches.take(batch.id, "worker", at + 1, at + 100)
        assert taken is not None
        outcomes = [_outcome(item.seq, ends[item.key], at) for item in taken[2]]
        assert await store.batches.record(batch.id, "worker", 0, outcomes, at + 2) is not None


def _outcome(seq: int, end: Ended, at: float) -> ItemOutcome:
    failed = end.reason is not ExitReason.SUCCEEDED
    return ItemOutcome(
        seq=seq,
        attempt=1,
        exit_reason=end.reason,
        result=Raw(msgspec.json.encode(end.data)) if not failed and not end.result_key else None,
        result_key=end.result_key,
        result_bytes=end.result_bytes,
        error=RunError(message="it failed", site_status=end.site_status) if failed else None,
        started_at=at + 1 + seq / 1000,
        finished_at=at + 2 + seq / 1000,
        http_status=end.site_status,
    )
