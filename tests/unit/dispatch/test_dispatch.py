"""The dispatcher's duties on real embedded backends, with a clock moved by hand."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.dispatch.leader import LEAD_SECONDS, Dispatcher
from scrapeyard.dispatch.upkeep.lost_deliveries import GRACE_SECONDS
from scrapeyard.engines.budget.meters import day_of
from scrapeyard.model import Delivery, ExitReason, Outcome, Priority, Run, RunStatus, new_id
from scrapeyard.queues import messages
from scrapeyard.queues.deliveries import deliver
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.operations import Meter
from scrapeyard.store.ports.runs import Ending, KeyedAnswer
from scrapeyard.store.sql import SqlStore
from tests.contract.job_steps import a_running_job
from tests.integration.gateway_stand import worker
from tests.leaks import PATIENCE
from tests.services.sqlite import migrated

START = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, kw_only=True)
class Yard:
    clock: Clock
    queue: MemoryQueue
    store: SqlStore
    blobs: ObjectBlobs
    dispatcher: Dispatcher

    def another(self) -> Dispatcher:
        return Dispatcher(Settings(), self.store, self.queue, self.blobs, self.clock)

    async def taken(self) -> list[Delivery]:
        return await self.queue.take(["default"], 100, list(Priority), 0)


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    clock, queue, store = Clock(), MemoryQueue(), SqlStore(migrated(tmp_path / "runs.sqlite"))
    blobs = ObjectBlobs.in_folder(tmp_path / "blobs")
    async with AsyncExitStack() as stack:
        for part in (store, queue):
            await part.start()
            stack.push_async_callback(part.stop)
        dispatcher = Dispatcher(Settings(), store, queue, blobs, clock)
        yield Yard(clock=clock, queue=queue, store=store, blobs=blobs, dispatcher=dispatcher)


def a_run(**more: Any) -> Run:
    fields: dict[str, Any] = {
        "id": new_id("run"),
        "status": RunStatus.QUEUED,
        "scraper": "shop/product",
        "input": Raw(b"{}"),
        "created_at": START,
        "queued_at": START,
    }
    return Run(**{**fields, **more})


async def begin(yard: Yard, **more: Any) -> Run:
    run = a_run(status=RunStatus.RUNNING, worker_id="w1", started_at=START, lease_until=START + 15, **more)
    await yard.store.runs.begin([run])
    return run


async def got(yard: Yard, run: Run) -> Run:
    found = await yard.store.runs.get(run.id)
    assert found is not None
    return found


async def test_a_lease_that_holds_is_left_alone(yard: Yard) -> None:
    run = await begin(yard)
    yard.clock.now += 14
    assert await yard.dispatcher.round()
    assert (await got(yard, run)).status is RunStatus.RUNNING


async def test_an_expired_lease_goes_to_another_attempt(yard: Yard) -> None:
    run = await begin(yard, max_attempts=2, reply_to="gw1")
    yard.clock.now += 16
    await yard.dispatcher.round()
    (delivery,) = await yard.taken()
    assert (delivery.run_id, delivery.attempt, delivery.redelivered) == (run.id, 2, True)
    assert delivery.reply_to == "gw1"
    assert await yard.store.runs.claim(run.id, 2, "w2", yard.clock.now, yard.clock.now + 15)
    await yard.dispatcher.round()
    assert await yard.taken() == []


async def test_a_lost_worker_without_attempts_left_ends_the_run_and_tells_the_caller(yard: Yard) -> None:
    run = await begin(yard, max_attempts=1, reply_to="gw1")
    yard.clock.now += 16
    async with yard.queue.listen(messages.replies("gw1")) as replies:
        await yard.dispatcher.round()
        outcome = messages.decode_outcome(await anext(replies))
    assert (outcome.run_id, outcome.exit_reason, outcome.retry_after) == (run.id, ExitReason.LOST_WORKER, None)
    ended = await got(yard, run)
    assert (ended.status, ended.exit_reason) == (RunStatus.FAILED, ExitReason.LOST_WORKER)
    assert ended.error is not None
    assert "w1" in ended.error.message


async def test_a_cancelled_run_of_a_lost_worker_is_not_tried_again(yard: Yard) -> None:
    run = await begin(yard, max_attempts=5)
    await yard.store.runs.cancel(run.id, START + 1)
    yard.clock.now += 16
    await yard.dispatcher.round()
    assert (await got(yard, run)).status is RunStatus.CANCELLED
    assert await yard.taken() == []


async def test_a_delivery_that_the_queue_lost_is_published_again_once(yard: Yard) -> None:
    run = a_run()
    await yard.store.runs.add([run])
    yard.clock.now += GRACE_SECONDS - 1
    await yard.dispatcher.round()
    assert await yard.taken() == []
    yard.clock.now += 2
    await yard.dispatcher.round()
    assert await yard.taken() == [], "it may be just being taken"
    await yard.dispatcher.round()
    (delivery,) = await yard.taken()
    assert (delivery.run_id, delivery.redelivered, delivery.queued_at) == (run.id, True, yard.clock.now)
    await yard.dispatcher.round()
    assert await yard.taken() == []


async def test_a_run_that_is_just_being_taken_is_not_lost(yard: Yard) -> None:
    """It is out of the queue, and the row that says running follows a moment later."""
    run = a_run()
    await yard.store.runs.add([run])
    await yard.queue.publish([deliver(run)])
    yard.clock.now += 60
    assert len(await yard.taken()) == 1
    await yard.dispatcher.round()
    now = yard.clock.now
    begun = replace(run, status=RunStatus.RUNNING, started_at=now, worker_id="w1", lease_until=now + 15)
    await yard.store.runs.begin([begun])
    await yard.dispatcher.round()
    assert await yard.taken() == []


async def test_what_still_waits_in_the_queue_is_not_published_again(yard: Yard) -> None:
    first, second = a_run(), a_run(queued_at=START + 1)
    await yard.store.runs.add([first, second])
    await yard.queue.publish([deliver(first), deliver(second)])
    yard.clock.now += 60
    await yard.dispatcher.round()
    assert len(await yard.taken()) == 2


async def test_a_run_published_before_the_oldest_that_waits_is_lost(yard: Yard) -> None:
    lost, waiting = a_run(), a_run(queued_at=START + 1)
    await yard.store.runs.add([lost, waiting])
    await yard.queue.publish([deliver(waiting)])
    yard.clock.now += 60
    await yard.dispatcher.round()
    await yard.dispatcher.round()
    assert [delivery.run_id for delivery in await yard.taken()] == [waiting.id, lost.id]


async def test_each_priority_is_judged_by_its_own_line(yard: Yard) -> None:
    lost, waiting = a_run(priority=Priority.HIGH, queued_at=START + 2), a_run(queued_at=START)
    await yard.store.runs.add([lost, waiting])
    await yard.queue.publish([deliver(waiting)])
    yard.clock.now += 60
    await yard.dispatcher.round()
    await yard.dispatcher.round()
    assert [delivery.run_id for delivery in await yard.taken()] == [lost.id, waiting.id]


async def test_lost_runs_behind_a_long_line_are_found_in_later_rounds(yard: Yard) -> None:
    waiting = [a_run() for _ in range(600)]
    lost = a_run(priority=Priority.HIGH, queued_at=START + 1)
    await yard.store.runs.add([*waiting, lost])
    await yard.queue.publish([deliver(run) for run in waiting])
    yard.clock.now += 60
    for _ in range(3):
        await yard.dispatcher.round()
    (delivery,) = await yard.queue.take(["default"], 1, [Priority.HIGH], 0)
    assert delivery.run_id == lost.id


async def test_a_delayed_retry_is_published_when_its_time_has_come(yard: Yard) -> None:
    run = await begin(yard, max_attempts=2)
    outcome = Outcome(
        run_id=run.id, attempt=1, exit_reason=ExitReason.RETRY, retry_after=30, finished_at=START, started_at=START
    )
    await yard.store.runs.finish([Ending(run=run, outcome=outcome)])
    yard.clock.now += 29
    await yard.dispatcher.round()
    assert await yard.taken() == []
    yard.clock.now += 2
    await yard.dispatcher.round()
    (delivery,) = await yard.taken()
    assert (delivery.run_id, delivery.attempt, delivery.redelivered) == (run.id, 2, True)


async def test_one_leads_and_another_takes_over_in_seconds(yard: Yard) -> None:
    second = yard.another()
    assert await yard.dispatcher.round()
    assert not await second.round()
    yard.clock.now += LEAD_SECONDS + 1
    assert await second.round()
    assert not await yard.dispatcher.round()


async def test_a_dispatcher_that_stops_lets_another_lead_at_once(yard: Yard) -> None:
    await yard.dispatcher.start()
    await yard.dispatcher.start()
    assert await yard.dispatcher.round()
    await yard.dispatcher.stop()
    await yard.dispatcher.stop()
    assert await yard.another().round()


class Counted:
    """A task that counts its rounds."""

    waits_after_outage = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.rounds: asyncio.Queue[None] = asyncio.Queue()

    async def run_once(self) -> None:
        self.rounds.put_nowait(None)


async def test_a_wake_up_ends_the_rest_of_eager_tasks(yard: Yard) -> None:
    jobs = Settings().jobs.model_copy(update={"round_seconds": 10 * PATIENCE})
    settings = Settings().model_copy(update={"jobs": jobs})
    task = Counted("exports")
    dispatcher = Dispatcher(settings, yard.store, yard.queue, yard.blobs, yard.clock, more=(task,))
    await dispatcher.start()
    try:
        async with asyncio.timeout(PATIENCE):
            for _ in range(3):
                await task.rounds.get()
                dispatcher.wake()
    finally:
        async with asyncio.timeout(PATIENCE):
            await dispatcher.stop()


async def test_tasks_of_jobs_have_no_round_while_no_job_is_open(yard: Yard) -> None:
    other, of_jobs = Counted("exports"), Counted("following")
    dispatcher = Dispatcher(Settings(), yard.store, yard.queue, yard.blobs, yard.clock, more=(of_jobs, other))
    await dispatcher.start()
    try:
        async with asyncio.timeout(PATIENCE):
            for _ in range(3):
                await other.rounds.get()
                dispatcher.wake()
            assert of_jobs.rounds.empty()
            await a_running_job(yard.store, 1)
            await of_jobs.rounds.get()
    finally:
        async with asyncio.timeout(PATIENCE):
            await dispatcher.stop()


async def test_a_dispatcher_that_does_not_lead_stops_without_waiting_for_a_round(yard: Yard) -> None:
    assert await yard.dispatcher.round()
    jobs = Settings().jobs.model_copy(update={"round_seconds": 10 * PATIENCE})
    settings = Settings().model_copy(update={"jobs": jobs})
    second = Dispatcher(settings, yard.store, yard.queue, yard.blobs, yard.clock)
    await second.start()
    tasks = list(second._tasks)
    for _ in range(10):  # every task waits for its turn to lead
        await asyncio.sleep(0)
    await second.stop()
    assert not any(task.cancelled() for task in tasks)


async def test_after_the_store_was_away_workers_may_renew_first(yard: Yard) -> None:
    run = await begin(yard, max_attempts=1)
    await yard.dispatcher.round()
    await yard.store.stop()
    assert not await yard.dispatcher.round()
    await yard.store.start()
    yard.clock.now += 16
    await yard.dispatcher.round()
    assert (await got(yard, run)).status is RunStatus.RUNNING
    assert await yard.store.runs.renew("w1", [run.id], yard.clock.now + 15) == []
    yard.clock.now += 10
    await yard.dispatcher.round()
    assert (await got(yard, run)).status is RunStatus.RUNNING
    yard.clock.now += 16
    await yard.dispatcher.round()
    assert (await got(yard, run)).exit_reason is ExitReason.LOST_WORKER


async def test_after_the_machine_stood_still_workers_may_renew_first(yard: Yard) -> None:
    run = await begin(yard, max_attempts=1)
    await yard.dispatcher.start()
    try:
        async with asyncio.timeout(PATIENCE):
            while not yard.dispatcher.leads:
                await asyncio.sleep(0.01)
            yard.clock.now += 60
            while yard.dispatcher._quiet_until < yard.clock.now:
                await asyncio.sleep(0.01)
            assert (await got(yard, run)).status is RunStatus.RUNNING
            assert await yard.store.runs.renew("w1", [run.id], yard.clock.now + 15) == []
            yard.clock.now = yard.dispatcher._quiet_until + 1
    finally:
        await yard.dispatcher.stop()
    await yard.another().round()
    assert (await got(yard, run)).status is RunStatus.RUNNING


async def test_retention_removes_old_runs_with_their_blobs_keys_and_silent_workers(yard: Yard) -> None:
    run, fresh = await begin(yard), await begin(yard)
    old = Outcome(run_id=run.id, attempt=1, exit_reason=ExitReason.FAILED, started_at=START, finished_at=START)
    await yard.store.runs.finish([Ending(run=run, outcome=old)])
    await yard.blobs.put(keys.result(run.id, 1), b"{}", "application/json")
    kept = keys.result(fresh.id, 1)
    await yard.blobs.put(kept, b"{}", "application/json")
    await yard.store.keys.remember(KeyedAnswer(key="k", body_digest="d", run_ids=(), created_at=START), [])
    await yard.store.workers.beat(worker(seen_at=START))
    yard.clock.now += 8 * 86_400
    await yard.store.runs.renew("w1", [fresh.id], yard.clock.now + 15)
    await yard.dispatcher.round()
    assert await yard.store.runs.get(run.id) is None
    assert await yard.store.runs.get(fresh.id) is not None
    assert await yard.blobs.size(keys.result(run.id, 1)) is None
    assert await yard.blobs.size(kept) == 2
    assert await yard.store.workers.alive(0) == ()
    again = KeyedAnswer(key="k", body_digest="other", run_ids=(), created_at=yard.clock.now)
    assert await yard.store.keys.remember(again, []) == again


async def test_retention_removes_old_meters_and_what_silent_workers_told_of_proxies(yard: Yard) -> None:
    for day in (day_of(START), day_of(START + 80 * 86_400)):
        names = {"writer": "w", "job_id": "", "site": "s", "pool": "", "proxy_class": ""}
        await yard.store.meters.put([Meter(day=day, requests=1, failures=0, bytes=1, **names)])
    await yard.store.proxies.put_standings("w1", (), START)
    yard.clock.now += 91 * 86_400
    await yard.store.proxies.put_standings("w2", (), yard.clock.now)
    await yard.dispatcher.round()
    assert [use.day for use in await yard.store.meters.use(["day"], "2000")] == [day_of(START + 80 * 86_400)]
    assert await yard.store.proxies.standings(0) == {"w2": ()}
