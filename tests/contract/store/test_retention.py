"""Retention by kind, on SQLite and on PostgreSQL: what is due goes, what somebody still needs stays, no crash leaves
anything behind."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace
from obstore.store import MemoryStore

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.dispatch.upkeep.archiving import Archiving
from scrapeyard.dispatch.upkeep.job_retention import JobRetention, OrphanedBlobs, SnapshotRetention
from scrapeyard.dispatch.upkeep.retention import DAY, Retention
from scrapeyard.model import Artifact, ExitReason, FetchPolicy, LogLine, Run, new_id
from scrapeyard.model.export import Export
from scrapeyard.model.fetching import RetentionPolicy
from scrapeyard.model.job import ArchiveState, ExportWish, ItemOutcome, Job, JobPolicy, JobStatus
from scrapeyard.settings import RetentionSettings, Settings
from scrapeyard.store.ports.exports import PageState, Snapshot
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.ports.store import Store
from tests.contract.job_nouns import a_job
from tests.contract.job_steps import a_running_job, fetched, taken
from tests.contract.nouns import NOW, a_run, an_ending, begun
from tests.contract.nouns import fetched as run_of

_PLAIN = FetchPolicy()


class Killed(BaseException):
    """Stands for the end of the process."""


class MortalBlobs(ObjectBlobs):
    """Dies after so many deletions."""

    lives = 10**9

    async def delete(self, keys: Sequence[str]) -> None:
        await super().delete(keys)
        self._live()

    async def delete_prefix(self, prefixes: Sequence[str]) -> None:
        await super().delete_prefix(prefixes)
        self._live()

    def _live(self) -> None:
        self.lives -= 1
        if self.lives < 0:
            raise Killed


@pytest.fixture
def blobs() -> MortalBlobs:
    return MortalBlobs(MemoryStore(), content_types=True)


def own(**days: float) -> FetchPolicy:
    return FetchPolicy(retention=RetentionPolicy(**days))


def kept(**days: Any) -> Settings:
    return Settings(retention=RetentionSettings(**days))


def artifact(key: str, name: str, content_type: str) -> Artifact:
    return Artifact(name=name, content_type=content_type, size=1, key=key)


async def a_final_run(store: Store, blobs: ObjectBlobs, fetching: FetchPolicy = _PLAIN, **given: Any) -> Run:
    run = begun(a_run(fetching=fetching))
    left = [("page.html", "text/html; charset=utf-8"), ("shot.png", "image/png")]
    artifacts = tuple(artifact(keys.artifact(run.id, 1, name), name, kind) for name, kind in left)
    for one in artifacts:
        await blobs.put(one.key, b"x", one.content_type)
    key = keys.result(run.id, 1)
    await blobs.put(key, b"{}", "application/json")
    given = {"result": None, "result_key": key, "artifacts": artifacts, "finished_at": NOW} | given
    await store.runs.finish([an_ending(run, **given)])
    return run


async def there(blobs: ObjectBlobs, run: Run) -> list[str]:
    named = {
        "result": keys.result(run.id, 1),
        "html": keys.artifact(run.id, 1, "page.html"),
        "png": keys.artifact(run.id, 1, "shot.png"),
    }
    return [name for name, key in named.items() if await blobs.size(key) is not None]


async def run_rounds(store: Store, blobs: ObjectBlobs, settings: Settings, now: float) -> None:
    await Retention(settings, store, blobs, lambda: now).run_once()


async def test_kinds_of_a_run_go_one_after_another(store: Store, blobs: MortalBlobs) -> None:
    settings = kept(html_days=1, logs_days=2, results_days=3)
    run = await a_final_run(store, blobs)
    await run_rounds(store, blobs, settings, NOW + 0.9 * DAY)
    assert await there(blobs, run) == ["result", "html", "png"]
    await run_rounds(store, blobs, settings, NOW + 1.1 * DAY)
    assert await there(blobs, run) == ["result", "png"]
    assert (await store.runs.logs(run.id))[0]
    await run_rounds(store, blobs, settings, NOW + 2.1 * DAY)
    assert not (await store.runs.logs(run.id))[0]
    await run_rounds(store, blobs, settings, NOW + 3.1 * DAY)
    assert await there(blobs, run) == ["png"]
    found = await run_of(store, run.id)
    assert (list(found.swept), found.result_key) == (["html", "logs", "results"], "")
    await run_rounds(store, blobs, settings, NOW + 7.1 * DAY)
    assert await store.runs.get(run.id) is None
    assert await there(blobs, run) == []


async def test_a_run_s_own_retention_comes_before_the_settings(store: Store, blobs: MortalBlobs) -> None:
    long = await a_final_run(store, blobs, own(days=30, html_days=20))
    short = await a_final_run(store, blobs, own(days=0.5))
    lost = a_run(fetching=own(days=0.5))
    await store.runs.add([lost])
    await store.runs.cancel(lost.id, NOW)
    await run_rounds(store, blobs, kept(html_days=1), NOW + 0.6 * DAY)
    assert [await store.runs.get(run.id) is None for run in (long, short, lost)] == [False, True, True]
    await run_rounds(store, blobs, kept(html_days=1), NOW + 19 * DAY)
    assert await there(blobs, long) == ["result", "html", "png"]
    await run_rounds(store, blobs, kept(html_days=1), NOW + 21 * DAY)
    assert await there(blobs, long) == ["result", "png"]
    await run_rounds(store, blobs, kept(html_days=1), NOW + 31 * DAY)
    assert await store.runs.get(long.id) is None


async def test_a_kill_leaves_no_blobs_of_runs_behind(store: Store, blobs: MortalBlobs) -> None:
    run = await a_final_run(store, blobs)
    blobs.lives = 0
    with suppress(Killed):
        await run_rounds(store, blobs, kept(), NOW + 8 * DAY)
    assert await store.runs.get(run.id) is not None
    blobs.lives = 10**9
    await run_rounds(store, blobs, kept(), NOW + 8 * DAY)
    assert await store.runs.get(run.id) is None
    assert await there(blobs, run) == []


async def a_final_job(store: Store, blobs: ObjectBlobs, count: int = 3, **policy: Any) -> Job:
    job = await a_running_job(store, count, policy=JobPolicy(fetching=own(**policy)))
    batch, items = await taken(store, job)
    outcomes = []
    for item in items:
        html = keys.item_object(job.id, item.key, keys.HTML)
        data = keys.item_object(job.id, item.key, keys.DATA)
        for key in (html, data):
            await blobs.put(key, b"x", "text/html")
        outcomes.append(
            ItemOutcome(
                seq=item.seq,
                attempt=1,
                exit_reason=ExitReason.SUCCEEDED,
                started_at=NOW,
                finished_at=NOW,
                result_key=data,
                result_bytes=1,
                artifacts=(artifact(html, keys.HTML, "text/html"),),
                logs=(LogLine(at_ms=1.0, stream="log", text="said"),),
            )
        )
    await store.batches.record(batch, "worker-1", 0, outcomes, NOW)
    await blobs.put(keys.manifest(job.id, "full", 1), b"x", "application/json")
    for leave, to in ((JobStatus.RUNNING, JobStatus.FINISHING), (JobStatus.FINISHING, JobStatus.COMPLETED)):
        assert await store.jobs.move(job.id, leave, to, NOW)
    return await fetched(store, job)


async def job_round(store: Store, blobs: ObjectBlobs, now: float, **days: Any) -> None:
    await JobRetention(kept(**days), store, blobs, lambda: now).run_once()


async def left_of(blobs: ObjectBlobs, job: Job) -> list[str]:
    found = []
    async for block in _listed(blobs, job.id):
        found += [name.rpartition("/")[2] for name in block]
    return sorted(found)


async def _listed(blobs: ObjectBlobs, prefix: str) -> Any:
    async for block in blobs._store.list(prefix=prefix):
        yield [meta["path"] for meta in block]


async def test_kinds_of_a_job_go_and_the_rest_stays(store: Store, blobs: MortalBlobs) -> None:
    job = await a_final_job(store, blobs, html_days=1)
    await job_round(store, blobs, NOW + 1.1 * DAY, results_days=2, logs_days=2)
    assert await left_of(blobs, job) == [*["data.json"] * 3, "part-1.json"]
    await job_round(store, blobs, NOW + 2.1 * DAY, results_days=2, logs_days=2)
    assert await left_of(blobs, job) == []
    after = await fetched(store, job)
    assert (set(after.swept), after.sweeping) == ({"html", "results", "logs"}, False)
    page = await store.items.page(job.id, ItemFilter(), None, 10)
    assert {(item.result_key, item.logs, item.result_bytes) for item in page.items} == {("", (), 1)}
    assert {after.swept_of(item) for item in page.items} == {tuple(after.swept)}
    assert await store.items.redrive(job.id, ItemFilter(), None, NOW) is None
    export = Export(id=new_id("export"), job_id=job.id, wish=ExportWish(type="full", format="csv"), created_at=NOW)
    assert not await store.exports.add(export)


@pytest.mark.parametrize("lives", [0, 1])
async def test_a_killed_sweep_of_a_job_is_done_to_its_end(store: Store, blobs: MortalBlobs, lives: int) -> None:
    job = await a_final_job(store, blobs, results_days=1, html_days=1)
    blobs.lives = lives
    with suppress(Killed):
        await job_round(store, blobs, NOW + 1.1 * DAY)
    half = await fetched(store, job)
    assert half.sweeping
    assert "results" in half.swept
    assert await store.items.redrive(job.id, ItemFilter(), None, NOW) is None
    blobs.lives = 10**9
    await job_round(store, blobs, NOW + 1.2 * DAY)
    assert not (await fetched(store, job)).sweeping
    assert await left_of(blobs, job) == []


async def test_a_job_runs_again_after_its_pages_went(store: Store, blobs: MortalBlobs) -> None:
    job = await a_final_job(store, blobs, html_days=1)
    await job_round(store, blobs, NOW + 1.1 * DAY)
    everything = ItemFilter(statuses=None)
    assert await store.items.redrive(job.id, replace(everything, keys=("item-0",)), None, NOW) in (0, 1)


async def test_what_an_export_needs_stays(store: Store, blobs: MortalBlobs) -> None:
    job, earlier = await a_final_job(store, blobs, results_days=1), await a_final_job(store, blobs, results_days=1)
    wish = ExportWish(type="diff", format="csv", against=earlier.id)
    await store.exports.add(Export(id=new_id("export"), job_id=job.id, wish=wish, created_at=NOW))
    await job_round(store, blobs, NOW + 31 * DAY)
    for one in (job, earlier):
        found = await store.jobs.get(one.id)
        assert one is job or (found is not None and not found.swept)
    assert await store.jobs.get(earlier.id) is not None


async def test_what_a_job_to_come_compares_with_stays(store: Store, blobs: MortalBlobs) -> None:
    earlier = await a_final_job(store, blobs, results_days=1)
    wish = ExportWish(type="diff", format="csv", against=earlier.id)
    await store.jobs.create(a_job(exports=(wish,)))
    await job_round(store, blobs, NOW + 31 * DAY)
    assert (await fetched(store, earlier)).swept == {}
    assert len(await left_of(blobs, earlier)) == 7


async def test_an_archived_job_comes_back_to_be_swept(store: Store, blobs: MortalBlobs) -> None:
    job = await a_final_job(store, blobs, results_days=3)
    now = NOW + 2 * DAY
    archiving = Archiving(kept(archive_days=1), store, blobs, lambda: now)
    await archiving.run_once()
    assert (await store.jobs.get(job.id) or job).archive is ArchiveState.ARCHIVED
    now = NOW + 3.1 * DAY
    await job_round(store, blobs, now)
    await archiving.run_once()
    now += 3600
    await job_round(store, blobs, now)
    page = await store.items.page(job.id, ItemFilter(), None, 10)
    assert [item.result_key for item in page.items] == [""] * 3
    assert "data.json" not in await left_of(blobs, job)


async def test_snapshots_go_when_nobody_crawls_their_scope(store: Store) -> None:
    old, used = "job_" + f"{int(NOW * 1000):012x}" + "0" * 20, "job_" + f"{int((NOW + 9 * DAY) * 1000):012x}" + "0" * 20
    for scope, job_id in (("gone", old), ("shop", old), ("new", used)):
        page = Snapshot(page="p", url="http://shop.example/", job_id=job_id, seq=0, state=PageState())
        await store.snapshots.put(scope, [page])
    await store.jobs.create(a_job(name="shop"))
    await SnapshotRetention(kept(snapshots_days=5), store, lambda: NOW + 10 * DAY).run_once()
    assert [bool(await store.snapshots.get(scope, ["p"])) for scope in ("gone", "shop", "new")] == [False, True, True]


async def test_blobs_without_a_row_go(store: Store, blobs: MortalBlobs) -> None:
    run, lost = await a_final_run(store, blobs), f"run_{int(NOW * 1000):012x}{'0' * 20}"
    await blobs.put(keys.artifact(lost, 1, "a.txt"), b"x", "text/plain")
    lost_list = f"job_{int(NOW * 1000):012x}{'0' * 20}"
    await blobs.put(keys.job_list(lost_list), b"x", "text/plain")
    now = NOW + 60
    orphans = OrphanedBlobs(store, blobs, lambda: now)
    for later in (60, 0.5 * DAY):  # the first round only waits; then both are too young
        await orphans.run_once()
        now = NOW + later
    await orphans.run_once()
    assert await blobs.size(keys.job_list(lost_list)) == 1
    now = NOW + 2 * DAY
    await orphans.run_once()
    assert await blobs.folders("") == ["runs"]
    assert await blobs.folders("runs/") == [run.id]


async def test_a_result_in_its_row_goes_too(store: Store, blobs: MortalBlobs) -> None:
    run = await a_final_run(store, blobs, own(results_days=1), result=Raw(b"[1]"), result_key="")
    await run_rounds(store, blobs, kept(), NOW + 1.1 * DAY)
    found = await run_of(store, run.id)
    assert (found.result, list(found.swept)) == (None, ["results"])
