"""Jobs behind a gateway's door, and a worker that is played: batches are cut, taken and recorded by hand."""

import time
from collections.abc import Callable
from typing import Any

import httpx
from msgspec import Raw

from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.model import ExitReason, RunError, new_id
from scrapeyard.model.job import Batch, BatchItem, ItemOutcome, Job
from scrapeyard.store.sql import SqlStore

BAD = frozenset(set(ExitReason) - {ExitReason.SUCCEEDED, ExitReason.SKIPPED})


async def post(client: httpx.AsyncClient, path: str = "/api/jobs", **body: Any) -> dict[str, Any]:
    """What a call with a JSON body answers; it must be accepted."""
    response = await client.post(path, json=body)
    assert response.status_code in (200, 201, 202), response.text
    found: dict[str, Any] = response.json()
    return found


async def get(client: httpx.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    """What looking something up answers; it must be there."""
    response = await client.get(path, params=query)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def urls(count: int, first: int = 1) -> list[str]:
    """Addresses of so many pages."""
    return [f"https://shop.example/p/{number}" for number in range(first, first + count)]


async def read(store: SqlStore, intake: ItemImporter, job_id: str) -> Job:
    """Do what the dispatcher does with a job whose source is not read."""
    job = await store.jobs.get(job_id)
    assert job is not None
    await intake.fill(job)
    job = await store.jobs.get(job_id)
    assert job is not None
    return job


async def work(
    store: SqlStore, job_id: str, ends: Callable[[BatchItem], ExitReason] = lambda _: ExitReason.SUCCEEDED
) -> int:
    """Cut, take and record until the job hands nothing out; how many items."""
    done = 0
    while True:
        now = time.time()
        batch = Batch(id=new_id("batch"), job_id=job_id, left=1000, queued_at=now)
        if await store.batches.cut(batch, now) is None:
            return done
        taken = await store.batches.take(batch.id, "w1", now, now + 60)
        assert taken is not None
        outcomes = [outcome_of(item, ends(item)) for item in taken[2]]
        assert await store.batches.record(batch.id, "w1", 0, outcomes, now) is not None
        done += len(outcomes)


def outcome_of(item: BatchItem, reason: ExitReason) -> ItemOutcome:
    """A final outcome with data, or with an error."""
    bad = reason in BAD
    now = time.time()
    return ItemOutcome(
        seq=item.seq,
        attempt=item.attempt,
        exit_reason=reason,
        result=None if bad else Raw(b'{"title":"Tea","number":%d}' % item.seq),
        error=RunError(message="as it goes", type="Played") if bad else None,
        site="shop.example",
        started_at=now,
        finished_at=now,
    )
