"""Results reach sinks while jobs run, each item once or as the newest: on every database, killed at every step."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.errors import BlobsUnavailable, SinkUnavailable
from scrapeyard.gateway.jobs.calls import RedriveCall
from scrapeyard.gateway.jobs.control import JobControl
from scrapeyard.gateway.jobs.streams import JobNotifier
from scrapeyard.model.export import SinkDelivery, SinkState
from scrapeyard.model.fetching import FetchPolicy
from scrapeyard.model.job import ItemStatus, Job, JobPolicy, JobStatus
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.results import artifacts
from scrapeyard.results.masking import Masking
from scrapeyard.results.sinks import progress
from scrapeyard.settings import MaskingSettings
from scrapeyard.store.ports.forgetting import ForgetTarget
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.ports.store import Store
from tests.contract.job_nouns import new_items
from tests.contract.queues.test_queue import running
from tests.contract.sinks.targets import SECRET, TargetStand, a_sink, rows_of, taken_by
from tests.contract.sinks.yard import AWAY, Shelf, SinkYard, badly, keys
from tests.sites.site import Site, page


@pytest.fixture
def blobs(tmp_path: Path) -> ObjectBlobs:
    return ObjectBlobs.in_folder(tmp_path / "blobs")


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def yard(store: Store, blobs: ObjectBlobs, shelf: Shelf) -> SinkYard:
    return SinkYard(store, blobs, shelf)


async def redrive(yard: SinkYard, job_id: str, **where: Any) -> int:
    """As the gateway does it."""
    await yard.store.sinks.wake(job_id, yard.clock(), yard.clock() + 60)
    return await yard.store.items.redrive(job_id, ItemFilter(**where), None, yard.clock()) or 0


async def test_results_flow_while_the_job_runs(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(35)
    await yard.work(job, 25)
    await yard.round(1)
    assert [len(batch.records) for batch in shelf.batches] == [10, 10], "a batch that is not full waits"
    await yard.round(5)
    assert len(shelf.seen()) == 25
    await yard.work(job)
    await yard.finish(job)
    await yard.rounds(2)
    assert list(shelf.seen()) == [f"item-{n}" for n in range(35)]
    assert set(shelf.seen().values()) == {1}
    assert [batch.number for batch in shelf.batches] == list(range(1, len(shelf.batches) + 1))
    stands = await yard.delivery(job)
    assert (stands.state, stands.delivered, stands.failed, stands.covered) == (SinkState.DONE, 35, 0, 35)
    kinds = [
        json.loads(bytes(event.data)) for event in await yard.store.events.after(job.id, 0, 50) if event.kind == "sink"
    ]
    assert kinds == [{"sink": "one", "state": "done", "delivered": 35, "refused": 0}]


async def test_a_record_says_what_became_of_an_item(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(1)
    await yard.work(job, ends=badly)
    await yard.finish(job)
    await yard.rounds(2)
    (record,) = shelf.batches[0].records
    assert (record.job_id, record.item_key, record.scraper, record.version) == (
        job.id,
        "item-0",
        "shop/product",
        "1.4.2",
    )
    assert (record.status, record.exit_reason, record.error, record.attempt) == ("error", "fetch_status", "503", 1)
    assert (bytes(record.data), json.loads(bytes(record.input))["url"]) == (b"null", "http://shop.example/0")


async def test_an_item_that_waits_holds_back_no_other(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(60)
    held = await yard.work(job, hold=(3, 40))
    await yard.rounds(3)
    assert len(shelf.seen()) == 58
    await yard.release(held)
    await yard.finish(job)
    await yard.rounds(3)
    assert len(shelf.seen()) == 60
    assert set(shelf.seen().values()) == {1}


async def test_items_far_beyond_an_open_one_wait(yard: SinkYard, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapeyard.results.sinks.reading.AHEAD", 20)
    job = await yard.job(200)
    held = await yard.work(job, hold=(5,))
    await yard.rounds(20)
    assert len(shelf.seen()) < 60
    assert len((await yard.delivery(job)).progress) < 200
    await yard.release(held)
    await yard.finish(job)
    await yard.rounds(3)
    assert len(shelf.seen()) == 200
    assert set(shelf.seen().values()) == {1}


class Killed(Exception):
    """The process is gone."""


class MortalSinks:
    """The SinkStore of a process that is killed at its nth write: before it, or after it."""

    def __init__(self, sinks: Any, at: int, *, after: bool) -> None:
        self._sinks = sinks
        self._at = at
        self._after = after
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sinks, name)

    async def put(self, delivery: SinkDelivery) -> SinkDelivery | None:
        self.writes += 1
        if self.writes == self._at and not self._after:
            raise Killed
        written: SinkDelivery | None = await self._sinks.put(delivery)
        if self.writes == self._at:
            raise Killed
        return written


class OtherStore:
    """A store with another noun."""

    def __init__(self, store: Store, sinks: Any = None, items: Any = None) -> None:
        self._store = store
        self.sinks = sinks or store.sinks
        self.items = items or store.items

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.parametrize("after", [False, True])
async def test_killed_at_every_step_nothing_is_lost_and_no_batch_changes(
    yard: SinkYard, shelf: Shelf, after: bool
) -> None:
    job = await yard.job(25)
    await yard.work(job, 15)
    for step in range(1, 8):
        mortal = MortalSinks(yard.store.sinks, step, after=after)
        await yard.round(60, yard.dispatcher(OtherStore(yard.store, mortal)))
    await yard.work(job)
    await yard.finish(job)
    for step in range(1, 8):
        mortal = MortalSinks(yard.store.sinks, step, after=after)
        await yard.round(60, yard.dispatcher(OtherStore(yard.store, mortal)))
    await yard.rounds(5)
    by_id: dict[str, list[str]] = {}
    for batch in shelf.batches:
        assert by_id.setdefault(batch.id, keys(batch)) == keys(batch), "a repeated batch has the same items"
    once = [key for each in by_id.values() for key in each]
    assert sorted(once) == sorted(f"item-{n}" for n in range(25)), "who drops repeated ids has every item once"
    assert (await yard.delivery(job)).state is SinkState.DONE


async def test_two_leaders_at_once_lose_nothing(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(95)
    await yard.work(job)
    await yard.finish(job)
    other = yard.dispatcher()
    for _ in range(10):
        yard.clock.now += 1
        await yard.duty.run_once()
        await other.run_once()
        await yard.duty.idle()
        await other.idle()
    by_id = {batch.id: keys(batch) for batch in shelf.batches}
    assert sorted(key for each in by_id.values() for key in each) == sorted(f"item-{n}" for n in range(95))
    assert (await yard.delivery(job)).state is SinkState.DONE


async def test_a_redriven_item_comes_again_and_others_do_not(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(40)
    await yard.work(job, 30)
    await yard.work(job, ends=badly)
    await yard.finish(job)
    await yard.rounds(3)
    assert (await yard.delivery(job)).state is SinkState.DONE
    yard.clock.now += 3600
    assert await redrive(yard, job.id) == 10
    await yard.rounds(3)
    assert (await yard.delivery(job)).state is SinkState.ACTIVE
    await yard.work(job)
    await yard.finish(job)
    await yard.rounds(20)
    assert shelf.seen() == {f"item-{n}": 1 + (n >= 30) for n in range(40)}
    assert shelf.newest()["item-35"]["n"] == 35
    stands = await yard.delivery(job)
    assert (stands.state, stands.delivered, stands.covered) == (SinkState.DONE, 50, 40)


async def test_a_redrive_that_ends_before_anybody_looks_is_delivered(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(30)
    await yard.work(job)
    await yard.finish(job)
    await yard.rounds(3)
    yard.clock.now += 3600
    assert await redrive(yard, job.id, keys=("item-7", "item-21"), statuses=(ItemStatus.SUCCESS,)) == 2
    await yard.work(job)
    await yard.finish(job)
    await yard.rounds(20)
    assert shelf.seen() == {f"item-{n}": 1 + (n in (7, 21)) for n in range(30)}
    assert shelf.newest()["item-7"]["at"] > shelf.newest()["item-8"]["at"]


class SlowItems:
    """The ItemStore of a process that stops before it redrives: others have time to end deliveries."""

    def __init__(self, yard: SinkYard) -> None:
        self._yard = yard

    async def redrive(self, job_id: str, where: ItemFilter, changes: Job | None, _: float) -> int | None:
        await self._yard.rounds(30)
        count = await self._yard.store.items.redrive(job_id, where, changes, self._yard.clock())
        job = await self._yard.store.jobs.get(job_id)
        assert job is not None
        await self._yard.work(job)
        await self._yard.finish(job)
        return count


async def test_a_redrive_that_takes_minutes_is_delivered(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(10)
    await yard.work(job)
    await yard.finish(job)
    await yard.rounds(3)
    yard.clock.now += 3600
    none: Any = None
    async with running(MemoryQueue()) as queue:
        control = JobControl(
            store=OtherStore(yard.store, items=SlowItems(yard)),  # type: ignore[arg-type]
            blobs=yard.blobs,
            catalogue=none,
            intake=none,
            creation=none,
            news=JobNotifier(queue, yard.store.events, yard.clock),
            clock=yard.clock,
        )
        count, _ = await control.redrive(job.id, RedriveCall(keys=["item-4"], statuses=["success"]))
    assert count == 1
    await yard.rounds(20)
    assert shelf.seen() == {f"item-{n}": 1 + (n == 4) for n in range(10)}
    assert (await yard.delivery(job)).state is SinkState.DONE


async def test_a_redrive_in_the_middle_loses_nothing(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(80)
    await yard.work(job, 50)
    await yard.round(10)
    shelf.fails = AWAY
    for _ in range(3):
        yard.clock.now += 600
        assert await redrive(yard, job.id, statuses=(ItemStatus.SUCCESS,), keys=("item-3", "item-44")) == 2
        await yard.work(job, 10)
        await yard.round(600)
    shelf.fails = None
    await yard.work(job)
    await yard.finish(job)
    await yard.rounds(30, 30)
    newest = shelf.newest()
    assert len(newest) == 80
    items = (await yard.store.items.page(job.id, ItemFilter(), None, 100)).items
    assert {item.key: json.loads(bytes(item.result or b"")) for item in items} == newest
    assert (await yard.delivery(job)).state is SinkState.DONE


async def test_a_cancelled_job_is_delivered_as_far_as_it_went(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(50)
    held = await yard.work(job, 30, hold=(4,))
    await yard.store.jobs.cancel(job.id, False, yard.clock())
    await yard.rounds(3)
    assert (await yard.delivery(job)).state is SinkState.ACTIVE
    await yard.store.batches.give_back(held[0][0], "w1", yard.clock())
    assert await yard.store.jobs.move(job.id, JobStatus.CANCELLING, JobStatus.CANCELLED, yard.clock())
    await yard.rounds(3)
    stands = await yard.delivery(job)
    assert (stands.state, stands.delivered) == (SinkState.DONE, 29)
    yard.clock.now += 3600
    await yard.store.sinks.wake(job.id, yard.clock(), yard.clock() + 60)
    await yard.store.jobs.reopen(job.id, yard.clock())
    await yard.work(job)
    await yard.finish(job)
    await yard.rounds(20)
    assert shelf.seen() == {f"item-{n}": 1 for n in range(50)}
    assert (await yard.delivery(job)).state is SinkState.DONE


async def test_a_sink_that_is_away_is_asked_less_and_less_and_holds_up_nobody(store: Store, blobs: ObjectBlobs) -> None:
    away, well = Shelf("away"), Shelf("well")
    away.fails = AWAY
    yard = SinkYard(store, blobs, away, well)
    jobs = [await yard.job(20, ("away", "well")) for _ in range(3)]
    for job in jobs:
        await yard.work(job)
        await yard.finish(job)
    await yard.rounds(40, 1.0)
    assert sum(well.seen().values()) == 60
    assert away.asked <= 3 * 5, "5, 10 and 20 seconds apart"
    stands = await yard.delivery(jobs[0], "away")
    assert (stands.state, stands.delivered, stands.last_error) == (SinkState.ACTIVE, 0, "nobody answers")
    assert stands.attempts >= 3
    away.fails = None
    await yard.rounds(10, 60)
    assert sum(away.seen().values()) == 60
    stands = await yard.delivery(jobs[0], "away")
    assert (stands.state, stands.attempts, stands.failing_since) == (SinkState.DONE, 0, None)
    assert stands.last_error == "nobody answers", "what failed last is still told"


async def test_a_sink_that_stays_away_is_given_up_and_resumed(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(20)
    await yard.work(job, 10)
    await yard.round(6)
    await yard.work(job)
    await yard.finish(job)
    shelf.fails = SinkUnavailable("no such table")
    await yard.rounds(50, 3600)
    stands = await yard.delivery(job)
    assert (stands.state, stands.last_error) == (SinkState.FAILED, "no such table")
    events = [
        json.loads(bytes(event.data)) for event in await yard.store.events.after(job.id, 0, 50) if event.kind == "sink"
    ]
    assert [(event["state"], event.get("error")) for event in events] == [("failed", "no such table")]
    asked = shelf.asked
    await yard.rounds(5, 3600)
    assert shelf.asked == asked
    shelf.fails = None
    again = replace(stands, state=SinkState.ACTIVE, due_at=yard.clock(), attempts=0, failing_since=None)
    assert await yard.store.sinks.put(again)
    await yard.rounds(3)
    assert shelf.seen() == {f"item-{n}": 1 for n in range(20)}


class ArchivedMeanwhile:
    """The ItemStore of a process that stops before it reads: the job is archived before it goes on."""

    def __init__(self, store: Store, job_id: str) -> None:
        self._store = store
        self._job_id = job_id
        self.blocks: list[Any] = []

    async def stream(self, job_id: str, where: ItemFilter, *, data: bool = True) -> Any:
        if not self.blocks:
            job = await self._store.archives.begin(self._job_id)
            assert job is not None
            self.blocks = [block async for block in self._store.archives.rows(job)]
            written = await self._store.archives.written(job, "archive-key")
            assert written is not None
            assert await self._store.archives.remove_rows(written)
        async for block in self._store.items.stream(job_id, where, data=data):
            yield block

    async def restore(self) -> None:
        """The rows are back."""
        job = await self._store.archives.begin_restore(self._job_id)
        assert job is not None
        for block in self.blocks:
            await self._store.archives.add_rows(job, block)
        assert await self._store.archives.end_restore(job, True)


async def test_a_job_that_is_archived_while_it_is_delivered_is_not_done(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(20)
    await yard.work(job)
    await yard.finish(job)
    items = ArchivedMeanwhile(yard.store, job.id)
    await yard.round(0, yard.dispatcher(OtherStore(yard.store, items=items)))
    assert items.blocks
    await yard.round()
    stands = await yard.delivery(job)
    assert (stands.state, stands.delivered) == (SinkState.FAILED, 0)
    assert "archived" in stands.last_error
    await items.restore()
    again = replace(stands, state=SinkState.ACTIVE, due_at=yard.clock(), attempts=0, failing_since=None)
    assert await yard.store.sinks.put(again)
    await yard.rounds(3)
    assert shelf.seen() == {f"item-{n}": 1 for n in range(20)}
    assert (await yard.delivery(job)).state is SinkState.DONE


async def test_a_result_that_cannot_be_read_is_told_and_asked_less_and_less(yard: SinkYard, shelf: Shelf) -> None:
    class DamagedBlobs:
        asked = 0

        async def stream(self, key: str) -> Any:
            self.asked += 1
            raise BlobsUnavailable(f"the object {key} is damaged")
            yield b""

    job = await yard.job(3)
    await yard.work(job, ends=lambda item: {"result": None, "result_key": f"{job.id}/data.json", "result_bytes": 9})
    await yard.finish(job)
    yard.blobs = DamagedBlobs()  # type: ignore[assignment]
    yard.duty = yard.dispatcher()
    await yard.rounds(20, 1.0)
    stands = await yard.delivery(job)
    assert (stands.state, stands.attempts) == (SinkState.ACTIVE, 3), "5, 10 and 20 seconds apart"
    assert "damaged" in stands.last_error
    await yard.rounds(50, 3600)
    assert (await yard.delivery(job)).state is SinkState.FAILED


async def test_a_forgotten_item_is_not_delivered_as_if_it_had_no_data(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(4)
    await yard.work(job, 2)
    await yard.work(job, ends=badly)
    await yard.finish(job)
    url = "http://shop.example/1"
    target = ForgetTarget(kind="url", value=url, forms=(url,))
    await yard.store.forgetting.scrub_items(job, target, [1, 3])
    await yard.rounds(3)
    assert shelf.seen() == {"item-0": 1, "item-2": 1}
    stands = await yard.delivery(job)
    assert (stands.state, stands.delivered, stands.failed) == (SinkState.DONE, 2, 2)
    assert "forgotten" in stands.last_error


async def test_a_job_made_again_under_its_id_has_other_batches(yard: SinkYard, shelf: Shelf) -> None:
    for _ in range(2):
        job = await yard.job(5, id="nightly")
        await yard.work(job)
        await yard.finish(job)
        await yard.rounds(3)
        assert await yard.store.jobs.begin_delete(job.id)
        assert await yard.store.jobs.delete(job.id)
        yard.clock.now += 3600
    assert len(shelf.batches) == 2
    assert len({batch.id for batch in shelf.batches}) == 2, "a receiver drops ids that it has seen"


async def test_everything_is_delivered_again_on_request_under_new_numbers(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(15)
    await yard.work(job)
    await yard.finish(job)
    await yard.rounds(3)
    stands = await yard.delivery(job)
    anew = progress.encode(progress.decode(stands.progress).from_first())
    assert await yard.store.sinks.put(replace(stands, state=SinkState.ACTIVE, due_at=0.0, covered=0, progress=anew))
    await yard.rounds(3)
    assert set(shelf.seen().values()) == {2}
    assert len({batch.id for batch in shelf.batches}) == len(shelf.batches)


async def test_records_that_cannot_be_taken_are_counted_and_told(yard: SinkYard, shelf: Shelf) -> None:
    job = await yard.job(10)
    shelf.refuses = frozenset({"item-4"})
    await yard.work(job)
    await yard.finish(job)
    await yard.rounds(3)
    stands = await yard.delivery(job)
    assert (stands.state, stands.delivered, stands.failed) == (SinkState.DONE, 9, 1)
    assert stands.last_error == "item item-4: no room"


async def test_results_in_objects_are_read_and_lost_or_large_ones_are_refused(
    store: Store, blobs: ObjectBlobs, shelf: Shelf
) -> None:
    yard = SinkYard(store, blobs, shelf, max_record_mb=0.001)
    job = await yard.job(3)
    await artifacts.put(blobs, f"{job.id}/items/item-0/data.json", b'{"kept": true}', "application/json")

    def ends(item: Any) -> dict[str, Any]:
        size = 5000 if item.seq == 2 else 14
        return {"result": None, "result_key": f"{job.id}/items/item-{item.seq}/data.json", "result_bytes": size}

    await yard.work(job, ends=ends)
    await yard.finish(job)
    await yard.rounds(3)
    assert shelf.newest() == {"item-0": {"kept": True}}
    stands = await yard.delivery(job)
    assert (stands.state, stands.delivered, stands.failed) == (SinkState.DONE, 1, 2)
    assert "5000 bytes" in stands.last_error


async def test_batches_have_bounded_bytes(store: Store, blobs: ObjectBlobs, shelf: Shelf) -> None:
    yard = SinkYard(store, blobs, shelf, target={"batch_mb": 0.01, "batch_records": 1000})
    job = await yard.job(30)
    long = json.dumps({"text": "x" * 3000}).encode()
    await yard.work(job, ends=lambda _: {"result": Raw(long), "result_bytes": len(long)})
    await yard.finish(job)
    await yard.rounds(3)
    assert len(shelf.seen()) == 30
    assert max(len(batch.records) for batch in shelf.batches) == 3


async def test_batches_have_bounded_bytes_of_inputs_too(store: Store, blobs: ObjectBlobs, shelf: Shelf) -> None:
    yard = SinkYard(store, blobs, shelf, target={"batch_mb": 0.05, "batch_records": 1000})
    job = await yard.job()
    long = Raw(json.dumps({"url": "http://shop.example/", "text": "x" * 20_000}).encode())
    items = [replace(item, input=long) for item in new_items(12)]
    await yard.store.items.add(job.id, items, 0, yard.clock())
    await yard.work(job)
    await yard.finish(job)
    mortal = MortalSinks(yard.store.sinks, 2, after=True)
    await yard.round(60, yard.dispatcher(OtherStore(yard.store, mortal)))
    await yard.rounds(5)
    assert shelf.seen() == {f"item-{n}": 1 for n in range(12)}
    assert max(len(batch.records) for batch in shelf.batches) == 2
    stands = await yard.delivery(job)
    assert (stands.state, stands.delivered, stands.covered) == (SinkState.DONE, 12, 12)


async def test_an_error_with_a_large_partial_result_is_delivered(
    store: Store, blobs: ObjectBlobs, shelf: Shelf
) -> None:
    yard = SinkYard(store, blobs, shelf, max_record_mb=0.001)
    job = await yard.job(1)
    await yard.work(job, ends=lambda item: {**badly(item), "result_key": f"{job.id}/data.json", "result_bytes": 5000})
    await yard.finish(job)
    await yard.rounds(2)
    assert [(each.status, bytes(each.data)) for each in shelf.batches[0].records] == [("error", b"null")]


async def test_personal_data_is_masked_as_in_exports(yard: SinkYard, shelf: Shelf) -> None:
    policy = JobPolicy(fetching=FetchPolicy(mask="email", mask_in="exports"))
    job = await yard.job(1, policy=policy)
    await yard.work(job, ends=lambda _: {"result": Raw(b'{"mail":"a.person@shop.example"}'), "result_bytes": 32})
    await yard.finish(job)
    yard.duty = yard.dispatcher(masking=Masking(MaskingSettings()))
    await yard.rounds(2)
    assert shelf.newest() == {"item-0": {"mail": "[email]"}}


async def test_a_sink_that_the_settings_lost_is_told(yard: SinkYard) -> None:
    job = await yard.job(1, ("gone",))
    await yard.work(job)
    await yard.rounds(2)
    stands = await yard.delivery(job, "gone")
    assert (stands.state, stands.attempts > 0) == (SinkState.ACTIVE, True)
    assert "no sink of this name" in stands.last_error


async def test_a_table_has_each_item_once_as_it_ended_last(store: Store, blobs: ObjectBlobs, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/warehouse.db"
    async with a_sink(TargetStand({"url": url}, lambda: rows_of(url))) as sink:
        yard = SinkYard(store, blobs, sink)
        job = await yard.job(30)
        await yard.work(job, 20)
        await yard.work(job, ends=badly)
        await yard.finish(job)
        for step in (1, 2, 3):
            mortal = MortalSinks(yard.store.sinks, step, after=False)
            await yard.round(60, yard.dispatcher(OtherStore(yard.store, mortal)))
        await yard.rounds(5)
        assert [row["status"] for row in await rows_of(url)].count("error") == 10
        yard.clock.now += 3600
        assert await redrive(yard, job.id) == 10
        await yard.work(job)
        await yard.finish(job)
        await yard.rounds(20)
    rows = await rows_of(url)
    assert [row["item_key"] for row in rows] == sorted(f"item-{n}" for n in range(30))
    assert {row["status"] for row in rows} == {"success"}
    assert all(row["data"]["n"] == int(row["item_key"].removeprefix("item-")) for row in rows)


async def test_a_receiver_that_was_away_gets_every_batch_in_the_end(store: Store, blobs: ObjectBlobs) -> None:
    async with Site(routes={"/take": page(b"", status=503)}) as site:
        target = TargetStand({"url": site.url("/take"), "secret": SECRET}, lambda: taken_by(site))
        async with a_sink(target) as sink:
            yard = SinkYard(store, blobs, sink)
            job = await yard.job(25)
            await yard.work(job)
            await yard.finish(job)
            await yard.rounds(4, 20)
            stands = await yard.delivery(job)
            assert (stands.delivered, stands.last_error) == (0, "the receiver answered 503")
            refused = {asked.headers["scrapeyard-delivery"] for asked in site.asked}
            assert len(refused) == 1, "the same batch again and again"
            site.routes["/take"] = page(b"ok")
            await yard.rounds(4, 300)
        assert [record["item_key"] for record in await taken_by(site)] == sorted(f"item-{n}" for n in range(25))
    assert (await yard.delivery(job)).state is SinkState.DONE
