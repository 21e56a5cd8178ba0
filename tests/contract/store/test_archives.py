"""Archives of ended jobs, on SQLite and on PostgreSQL: all rows go out, all come back, and no crash loses any."""

from collections.abc import AsyncIterator

import pytest
from obstore.store import MemoryStore

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.dispatch.upkeep.archiving import DAY, Archiving, DamagedArchive, packed, unpacked
from scrapeyard.model.export import Export
from scrapeyard.model.job import ArchiveState, ExportWish, Item, ItemStatus, Job, JobStatus
from scrapeyard.settings import Settings
from scrapeyard.settings.server import RetentionSettings
from scrapeyard.store.ports.archives import RowBlock
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.ports.store import Store
from tests.contract.job_steps import a_running_job, an_ended_job, fetched
from tests.contract.nouns import NOW


@pytest.fixture
def blobs() -> ObjectBlobs:
    return ObjectBlobs(MemoryStore(), content_types=True)


async def a_completed_job(store: Store) -> Job:
    job = await an_ended_job(store)
    assert await store.jobs.move(job.id, JobStatus.RUNNING, JobStatus.FINISHING, NOW)
    assert await store.jobs.move(job.id, JobStatus.FINISHING, JobStatus.COMPLETED, NOW)
    return await fetched(store, job)


async def items_of(store: Store, job: Job) -> tuple[Item, ...]:
    return tuple((await store.items.page(job.id, ItemFilter(), None, 100)).items)


async def state_of(store: Store, job: Job) -> ArchiveState:
    found = await store.jobs.get(job.id)
    assert found is not None
    return found.archive


async def rounds(store: Store, blobs: ObjectBlobs, now: float = NOW, days: float | None = None) -> None:
    settings = Settings(retention=RetentionSettings(archive_days=days))
    await Archiving(settings, store, blobs, lambda: now).run_once()


async def test_what_was_archived_comes_back_as_it_was(store: Store, blobs: ObjectBlobs) -> None:
    job = await a_completed_job(store)
    before = await items_of(store, job)
    await store.archives.begin(job.id)
    await rounds(store, blobs)
    assert (await state_of(store, job), await items_of(store, job)) == (ArchiveState.ARCHIVED, ())
    archived = await store.jobs.get(job.id)
    assert archived is not None
    assert (archived.counts, archived.status) == (job.counts, job.status)
    await store.archives.begin_restore(job.id)
    await rounds(store, blobs)
    assert await items_of(store, job) == before
    assert await fetched(store, job) == job
    assert await blobs.size(archived.archive_key) is None


async def test_a_job_is_archived_when_it_is_old_enough(store: Store, blobs: ObjectBlobs) -> None:
    job = await a_completed_job(store)
    await rounds(store, blobs, NOW + DAY, days=2)
    assert await state_of(store, job) is ArchiveState.NONE
    await rounds(store, blobs, NOW + 3 * DAY, days=2)
    assert await state_of(store, job) is ArchiveState.ARCHIVED


async def test_a_job_that_goes_on_is_not_archived(store: Store) -> None:
    job = await a_running_job(store, 3)
    found = await store.archives.begin(job.id)
    assert found is not None
    assert found.archive is ArchiveState.NONE


async def test_a_job_whose_export_is_being_made_is_not_archived(store: Store) -> None:
    job = await a_completed_job(store)
    wish = ExportWish(type="full", format="csv")
    assert await store.exports.add(Export(id="export_1", job_id=job.id, wish=wish, created_at=NOW))
    found = await store.archives.begin(job.id)
    assert found is not None
    assert found.archive is ArchiveState.NONE


async def test_an_archived_job_is_not_redriven(store: Store, blobs: ObjectBlobs) -> None:
    job = await a_completed_job(store)
    await store.archives.begin(job.id)
    for _ in range(2):
        assert await store.items.redrive(job.id, ItemFilter(), None, NOW) is None
        await rounds(store, blobs)
    assert (await fetched_counts(store, job)) == job.counts


async def fetched_counts(store: Store, job: Job) -> object:
    found = await store.jobs.get(job.id)
    assert found is not None
    return found.counts


async def test_a_crash_between_the_archive_and_the_last_row_loses_nothing(store: Store, blobs: ObjectBlobs) -> None:
    """The rows are half gone: the archive of before counts, not one of what is left."""
    job = await a_completed_job(store)
    before = await items_of(store, job)
    await store.archives.begin(job.id)
    await blobs.put_stream("first", packed(store.archives.rows(job)), "application/zstd")
    marked = await store.archives.written(job, "first")
    assert marked is not None
    assert await store.archives.written(job, "second") is None
    assert await store.archives.remove_rows(marked)
    await store.archives.begin_restore(job.id)
    await rounds(store, blobs)
    assert await items_of(store, job) == before


async def test_a_late_restore_does_not_bring_old_outcomes_back(store: Store, blobs: ObjectBlobs) -> None:
    job = await a_completed_job(store)
    old = [block async for block in store.archives.rows(job)]
    await store.archives.begin(job.id)
    await rounds(store, blobs)
    await store.archives.begin_restore(job.id)
    await rounds(store, blobs)
    assert await store.items.redrive(job.id, ItemFilter(statuses=(ItemStatus.ERROR,)), None, NOW) == 2
    for block in old:
        await store.archives.add_rows(job, block)
    await fetched(store, job)


@pytest.mark.parametrize("fault", ["missing", "broken off", "changed", "no archive"])
async def test_a_damaged_archive_is_told_and_nothing_is_added(store: Store, blobs: ObjectBlobs, fault: str) -> None:
    job = await a_completed_job(store)
    await store.archives.begin(job.id)
    await rounds(store, blobs)
    found = await store.jobs.get(job.id)
    assert found is not None
    whole = await blobs.get(found.archive_key)
    if fault == "missing":
        await blobs.delete([found.archive_key])
    else:
        changed = bytes([*whole[:-20], whole[-20] ^ 1, *whole[-19:]])
        other = {"broken off": whole[:-9], "changed": changed, "no archive": b"something else"}[fault]
        await blobs.put(found.archive_key, other, "application/zstd")
    await store.archives.begin_restore(job.id)
    await rounds(store, blobs)
    assert (await state_of(store, job), await items_of(store, job)) == (ArchiveState.ARCHIVED, ())
    told = await store.events.after(job.id, 0, 100)
    assert [bytes(event.data) for event in told if event.kind == "archive"][-1] == b'{"state":"damaged"}'


async def test_a_table_that_nobody_knows_is_refused(store: Store) -> None:
    job = await a_completed_job(store)
    with pytest.raises(ValueError, match="another version"):
        await store.archives.add_rows(job, RowBlock(table="runs", columns=("job",), rows=[(1,)]))


async def test_an_archive_may_come_in_pieces_of_any_size() -> None:
    async def blocks() -> AsyncIterator[RowBlock]:
        for number in range(5):
            yield RowBlock(table="items", columns=("job", "input"), rows=[(number, b"x" * 5000)])

    whole = b"".join([piece async for piece in packed(blocks())])

    async def pieces(size: int) -> AsyncIterator[bytes]:
        for first in range(0, len(whole), size):
            yield whole[first : first + size]

    for size in (1, 7, 100_000):
        assert [block.rows[0][0] async for block in unpacked(pieces(size))] == [0, 1, 2, 3, 4]
    with pytest.raises(DamagedArchive):
        _ = [block async for block in unpacked(_nothing())]


async def _nothing() -> AsyncIterator[bytes]:
    for piece in ():
        yield piece
