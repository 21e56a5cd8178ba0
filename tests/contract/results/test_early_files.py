"""Files of a job that are begun while it runs are those that are written when it has ended."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.errors import NotFound
from scrapeyard.model.job import ExportWish, Job, JobStatus
from scrapeyard.results.early_files import LOOK_SECONDS, SLOW_SECONDS, EarlyFiles
from scrapeyard.results.exporter import Exporter
from scrapeyard.results.finishing import BegunFiles, Finisher
from scrapeyard.results.manifests import read_metadata
from scrapeyard.settings import Settings
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.files_process import settings_bytes
from tests.contract.results.test_running_manifests import NOW, Running
from tests.leaks import until

WISHES = tuple(ExportWish(type=kind, format=name) for kind, name in (("full", "csv"), ("records", "xlsx"))) + tuple(
    ExportWish(type="records", format=name) for name in ("csv", "jsonl")
)
on_sqlite = pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)


class Unused(Finisher):
    """A finisher that counts how often it had to write the files itself."""

    written = 0

    async def finish(self, job: Job, begun: BegunFiles | None = None) -> None:
        self.written += 1
        await super().finish(job, begun)


def finisher(store: SqlStore, blobs: ObjectBlobs) -> Unused:
    return Unused(store, blobs, Exporter(store, blobs, lambda: NOW), lambda: NOW)


async def end(running: Running) -> Job:
    assert await running.store.jobs.move("job_1", JobStatus.RUNNING, JobStatus.FINISHING, NOW)
    return await running.job()


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_files_begun_early_are_those_written_at_the_end(store: SqlStore, tmp_path: Path) -> None:
    early = ObjectBlobs.in_folder(tmp_path / "early")
    running = Running(store, early)
    await running.create(3200, "rows", WISHES)
    begun = finisher(store, early).begin(await running.job())
    assert await begun.advance() == 0
    held = await running.work(1500, hold=[1234])
    assert await begun.advance() == 1234
    assert await begun.advance() == 0
    held += await running.work(hold=[3000])
    await running.release(held[:1])
    assert (await begun.advance(), begun.next) == (3000 - 1234, 3000)
    assert not begun.holds_for(await running.job())
    await running.release(held[1:])
    job = await end(running)
    assert begun.holds_for(job)
    await finisher(store, early).finish(job, begun)
    rows = [(export.rows, export.digest) for export in await store.exports.of_job(job.id)]
    await finisher(store, ObjectBlobs.in_folder(tmp_path / "late")).finish(job)
    assert rows == [(export.rows, export.digest) for export in await store.exports.of_job(job.id)]
    assert [count for count, _ in rows] == [3200, 2133, 2133, 2133]
    written = files(tmp_path / "early")
    assert written == files(tmp_path / "late")
    assert len(written) == 4 + 3 + 2 + 4 + 1  # parts of each kind, exports, the summary


async def test_what_a_redrive_changed_holds_no_more(store: SqlStore, tmp_path: Path) -> None:
    running = Running(store, ObjectBlobs.in_folder(tmp_path / "blobs"))
    await running.create(3, "rows", WISHES[:1])
    begun = finisher(store, running.blobs).begin(await running.job())
    await running.work()
    assert await begun.advance() == 3
    assert await store.items.redrive("job_1", ItemFilter(), None, NOW) == 1
    await running.work()
    assert not begun.holds_for(await end(running))
    begun.close()


async def test_nor_after_a_cancelled_job_went_on(store: SqlStore, tmp_path: Path) -> None:
    running = Running(store, ObjectBlobs.in_folder(tmp_path / "blobs"))
    await running.create(3, "rows", WISHES[:1])
    begun = finisher(store, running.blobs).begin(await running.job())
    await running.work(1)
    assert await begun.advance() == 1
    cancelled = await store.jobs.cancel("job_1", False, NOW)
    assert cancelled is not None
    assert (cancelled.status, begun.holds_for(cancelled)) == (JobStatus.CANCELLED, False)
    assert await store.jobs.reopen("job_1", NOW) is not None
    await running.work()
    assert not begun.holds_for(await end(running))
    begun.close()


@asynccontextmanager
async def following(store: SqlStore, url: str, folder: Path) -> AsyncIterator[tuple[Running, EarlyFiles, Unused]]:
    """A job of 2,500 items, of which 1,000 have ended, and whose list is still being read."""
    settings = Settings.model_validate({"data_dir": folder, "database_url": url, "log": {"level": "error"}})
    running = Running(store, ObjectBlobs.in_folder(folder / "blobs"))
    own = finisher(store, running.blobs)
    early = EarlyFiles(store, own, settings_bytes(settings), 1000, running.clock)
    await running.create(2500, "rows", WISHES[:2], read=False)
    try:
        for count in (500, 499, 1):
            assert early.followed == ""
            await running.work(count)
            await look(early, running, 0.001)
        yield running, early, own
    finally:
        await early.stop()


async def look(early: EarlyFiles, running: Running, more: float = 0.0) -> None:
    running.clock.now += LOOK_SECONDS + more
    await early.run_once()


@on_sqlite
async def test_a_process_begins_the_files_and_finishes_them(store: SqlStore, migrated_url: str, tmp_path: Path) -> None:
    async with following(store, migrated_url, tmp_path) as (running, early, own):
        await look(early, running)
        assert early.followed == ""  # one item a second: not worth a process
        await running.work(500)
        await look(early, running)
        assert early.followed == "job_1"
        await running.work()
        await running.read()
        await early.finish(job := await end(running))
        assert (own.written, early.followed) == (0, "")
        assert (await read_metadata(running.blobs, job.id)).counts["total"] == 2500
        assert [export.rows for export in await store.exports.of_job(job.id)] == [2500, 1666]


@on_sqlite
async def test_if_it_was_killed_the_files_are_written_from_the_start(
    store: SqlStore, migrated_url: str, tmp_path: Path
) -> None:
    async with following(store, migrated_url, tmp_path) as (running, early, own):
        await running.work(500)
        await look(early, running)
        assert early.process_id
        os.kill(early.process_id, signal.SIGKILL)
        await running.work()
        await running.read()
        await early.finish(job := await end(running))
        assert (own.written, early.followed, early.process_id) == (1, "", 0)
        assert (await read_metadata(running.blobs, job.id)).counts["total"] == 2500


@on_sqlite
async def test_parts_that_a_redrive_outdated_are_written_anew_or_removed(
    store: SqlStore, migrated_url: str, tmp_path: Path
) -> None:
    async with following(store, migrated_url, tmp_path) as (running, early, own):
        await running.work(500)
        await look(early, running)
        stale = keys.manifest("job_1", "errors", 3)
        await running.blobs.put(stale, b"{}", "application/json")
        first = tmp_path / "blobs" / keys.manifest("job_1", "full", 1)
        await asyncio.to_thread(until, lambda: first.exists() or None, "no part was written early")
        await running.read()
        await running.work()
        assert await store.items.redrive("job_1", ItemFilter(), None, NOW) == 834
        await running.work()
        await early.finish(job := await end(running))
        assert own.written == 1
        assert (await read_metadata(running.blobs, job.id)).counts["total"] == 2500
        with pytest.raises(NotFound):
            await running.blobs.get(stale)


@on_sqlite
async def test_a_job_that_is_slow_or_cancelled_is_not_followed(
    store: SqlStore, migrated_url: str, tmp_path: Path
) -> None:
    async with following(store, migrated_url, tmp_path) as (running, early, _):
        await running.work(500)
        await look(early, running)
        await look(early, running, SLOW_SECONDS - LOOK_SECONDS)
        assert early.followed == "job_1"
        await look(early, running)
        assert early.followed == ""
        await running.work(500)
        await look(early, running)
        assert early.followed == "job_1"
        await store.jobs.cancel("job_1", False, NOW)
        await look(early, running)
        assert early.followed == ""


def test_the_process_gets_the_settings_with_their_secrets() -> None:
    settings = Settings.model_validate(
        {
            "data_dir": "/data",
            "database_url": "postgresql://user:secret@db/yard",
            "secrets": {"old_master_keys": ["old secret"], "master_key_file": "/keys"},
            "proxies": {"pools": [{"name": "home", "urls": ["http://user:secret@proxy:1"]}]},
            "webhooks": {"secret": "a secret of sixteen"},
        }
    )
    assert Settings.model_validate_json(settings_bytes(settings)) == settings
