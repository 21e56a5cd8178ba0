"""Exports and snapshots in the store, on every database."""

import asyncio

import pytest
from msgspec.structs import replace

from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.job import ExportWish, Job, JobStatus
from scrapeyard.store.ports.exports import PageState, Snapshot
from scrapeyard.store.ports.store import Store

CSV = ExportWish(type="full", format="csv", bom=False)


@pytest.fixture
async def jobs(store: Store) -> Store:
    """A store with the jobs `job_1` and `job_2`."""
    for job_id in ("job_1", "job_2"):
        job = Job(id=job_id, status=JobStatus.RUNNING, scraper="a/b", pinned="a/b@1.0.0", created_at=1.0)
        assert await store.jobs.create(job)
    return store


def export(number: int, job_id: str = "job_1") -> Export:
    return Export(id=f"export_{number}", job_id=job_id, wish=CSV, created_at=float(number))


def done(taken: Export) -> Export:
    return replace(
        taken,
        state=ExportState.DONE,
        progress=1.0,
        rows=5,
        bytes=9,
        digest="d",
        key="job_1/exports/x",
        finished_at=50.0,
    )


async def test_what_is_added_is_found(jobs: Store) -> None:
    assert await jobs.exports.add(export(2))
    assert await jobs.exports.add(export(1))
    assert await jobs.exports.add(export(3, "job_2"))
    assert await jobs.exports.of_job("job_1") == [export(1), export(2)]
    assert await jobs.exports.get("export_3") == export(3, "job_2")
    assert await jobs.exports.get("export_9") is None
    assert await jobs.exports.of_job("job_9") == []


async def test_an_export_of_no_job_is_refused(jobs: Store) -> None:
    assert not await jobs.exports.add(export(1, "job_9"))
    assert await jobs.exports.get("export_1") is None


async def test_the_oldest_is_taken_first_and_by_one_alone(jobs: Store) -> None:
    for number in (2, 1):
        await jobs.exports.add(export(number))
    claims = [jobs.exports.claim(None, f"holder_{number}", 10.0, 40.0) for number in range(6)]
    taken = [claim for claim in await asyncio.gather(*claims) if claim is not None]
    first = next(claim for claim in taken if claim.id == "export_1")
    assert len(taken) <= 2
    assert len({claim.id for claim in taken}) == len(taken)
    assert (first.state, first.attempt, first.started_at, first.lease_until) == (ExportState.RUNNING, 1, 10.0, 40.0)


async def test_a_named_one_is_taken(jobs: Store) -> None:
    for number in (1, 2):
        await jobs.exports.add(export(number))
    taken = await jobs.exports.claim("export_2", "me", 10.0, 40.0)
    assert taken is not None
    assert taken.id == "export_2"
    assert await jobs.exports.claim("export_2", "you", 11.0, 41.0) is None
    assert await jobs.exports.claim("export_9", "you", 11.0, 41.0) is None


async def test_a_lease_that_ended_is_taken_over(jobs: Store) -> None:
    await jobs.exports.add(export(1))
    first = await jobs.exports.claim(None, "me", 10.0, 40.0)
    assert first is not None
    assert await jobs.exports.claim(None, "you", 39.0, 70.0) is None
    assert await jobs.exports.renew(replace(first, progress=0.5, rows=7, lease_until=60.0))
    assert await jobs.exports.claim(None, "you", 59.0, 90.0) is None
    second = await jobs.exports.claim(None, "you", 60.0, 90.0)
    assert second is not None
    assert (second.attempt, second.progress, second.rows) == (2, 0.0, 0)
    assert not await jobs.exports.renew(replace(first, lease_until=99.0))
    assert not await jobs.exports.end(done(first))
    assert await jobs.exports.end(done(second))
    assert not await jobs.exports.end(done(second))
    assert await jobs.exports.get("export_1") == replace(done(second), lease_until=None)


async def test_one_given_back_can_be_taken(jobs: Store) -> None:
    await jobs.exports.add(export(1))
    taken = await jobs.exports.claim(None, "me", 10.0, 40.0)
    assert taken is not None
    assert await jobs.exports.end(replace(taken, state=ExportState.QUEUED, holder="me"))
    assert await jobs.exports.claim(None, "you", 11.0, 41.0) is not None


async def test_only_a_final_one_is_made_again(jobs: Store) -> None:
    await jobs.exports.add(export(1))
    taken = await jobs.exports.claim(None, "me", 10.0, 40.0)
    assert taken is not None
    assert await jobs.exports.add(export(1))
    assert await jobs.exports.get("export_1") == taken
    failed = replace(taken, state=ExportState.FAILED, error="no room", finished_at=12.0)
    assert await jobs.exports.end(failed)
    assert await jobs.exports.add(replace(export(1), created_at=20.0))
    assert await jobs.exports.get("export_1") == replace(export(1), created_at=20.0)


def snapshot(number: int, job_id: str, before: PageState | None = None) -> Snapshot:
    fields = {"title": f"Page {number} é\0", "price": 1.5, "n": number, "b": True, "none": None}
    state = PageState(fields=fields, hash=f"h{number}", crawled_at=1.0, missing=number)
    return Snapshot(
        page=f"p{number:03d}", url=f"http://a/{number}", job_id=job_id, seq=number, state=state, before=before
    )


async def test_snapshots_are_kept_by_scope_and_page(store: Store) -> None:
    some = [snapshot(number, "job_1") for number in range(700)]
    await store.snapshots.put("scope", some)
    await store.snapshots.put("other", some[:1])
    assert await store.snapshots.get("scope", [one.page for one in some] + ["none"]) == {one.page: one for one in some}
    assert await store.snapshots.get("nowhere", ["p000"]) == {}
    assert await store.snapshots.get("scope", []) == {}
    newer = snapshot(3, "job_2", before=some[3].state)
    await store.snapshots.put("scope", [newer])
    assert await store.snapshots.get("scope", ["p003", "p004"]) == {"p003": newer, "p004": some[4]}
    assert await store.snapshots.get("other", ["p000"]) == {"p000": some[0]}


async def test_pages_a_crawl_did_not_write(store: Store) -> None:
    await store.snapshots.put("scope", [snapshot(number, "job_1") for number in range(10)])
    await store.snapshots.put("scope", [snapshot(number, "job_2") for number in (2, 4)])
    first = await store.snapshots.missing("scope", "job_2", "", 5)
    assert [one.page for one in first] == ["p000", "p001", "p003", "p005", "p006"]
    rest = await store.snapshots.missing("scope", "job_2", first[-1].page, 5)
    assert [one.page for one in rest] == ["p007", "p008", "p009"]
    await store.snapshots.put("scope", [replace(snapshot(4, "job_2"), seq=-1)])
    assert [one.page for one in await store.snapshots.missing("scope", "job_2", "p003", 2)] == ["p004", "p005"]
    await store.snapshots.drop("scope", ["p000", "p009", "none"])
    assert len(await store.snapshots.missing("scope", "job_9", "", 100)) == 8
