"""Starting what schedules ask for, on every store: once for each time that comes, whoever is killed when."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.dispatch.feeding.halting import ClientHalt
from scrapeyard.dispatch.schedules.schedules import GRACE_SECONDS, LEASE_SECONDS, MOST_MISSED, Schedules
from scrapeyard.dispatch.schedules.timetable import at, next_due
from scrapeyard.engines.budget.meters import day_of
from scrapeyard.errors import BadRequest, StoreUnavailable
from scrapeyard.model import new_id
from scrapeyard.model.identity import ClientBudget, ClientLimits
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.model.schedule import Firing, FiringState, Schedule, Target
from scrapeyard.store import schedules as sql_schedules
from scrapeyard.store.dynamo import schedules as dynamo_schedules
from scrapeyard.store.ports.jobs import JobFilter
from scrapeyard.store.ports.operations import Meter
from scrapeyard.store.ports.store import DurableStore
from scrapeyard.wiring.backends import store_at
from tests.services.job_yard import Clock

HOUR = 3600.0


class JobStarter:
    """Makes bare jobs in the store. `fail` is raised before one is made; with `die` it never comes back after."""

    def __init__(self, store: DurableStore, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.fail: Exception | None = None
        self.die = False
        self.made = asyncio.Event()
        self.cancelled: list[str] = []

    async def start(self, schedule: Schedule, subject: str) -> None:
        if self.fail is not None:
            raise self.fail
        job = Job(
            id=subject, status=JobStatus.RUNNING, scraper="a/b", pinned="a/b@1.0.0", created_at=self.clock(),
            schedule_id=schedule.id, reading=True,
        )  # fmt: skip
        await self.store.jobs.create(job)
        self.made.set()
        if self.die:
            await asyncio.Event().wait()

    async def going(self, _target: Target, subject: str) -> bool | None:
        job = await self.store.jobs.get(subject)
        return None if job is None else not job.status.is_final

    async def cancel(self, _target: Target, subject: str) -> None:
        self.cancelled.append(subject)


class Yard:
    """A store, a clock, and dispatchers."""

    def __init__(self, store: DurableStore) -> None:
        self.store = store
        self.clock = Clock()
        self.starter = JobStarter(store, self.clock)
        self.duty = self.dispatcher("one")

    def dispatcher(self, holder: str, store: DurableStore | None = None) -> Schedules:
        return Schedules(store or self.store, self.starter, self.clock, holder)

    async def schedule(self, **given: Any) -> Schedule:
        plain: dict[str, Any] = {"id": new_id("schedule"), "target": "job", "template": Raw(b"{}")}
        if "cron" not in given:
            plain["every_seconds"] = HOUR
        now = self.clock()
        schedule = Schedule(**(plain | given), created_at=now, updated_at=now, anchor=now)
        due = next_due(schedule, now)
        assert due is not None
        schedule = replace(schedule, next_due=due, next_at=at(schedule, due))
        assert await self.store.schedules.add(schedule, 100)
        return schedule

    async def round(self, seconds: float = 0.0, duty: Schedules | None = None) -> None:
        self.clock.now += seconds
        await (duty or self.duty).run_once()
        await (duty or self.duty).idle()

    async def history(self, schedule: Schedule) -> list[tuple[float, str]]:
        """Hours after it was made, and what became of it; the oldest first."""
        found = await self.store.firings.recent(schedule.id, 1000)
        return [((firing.due_at - schedule.anchor) / HOUR, firing.state.value) for firing in reversed(found)]

    async def jobs(self) -> list[Job]:
        return list((await self.store.jobs.page(JobFilter(), None, 1000)).jobs)

    async def end(self, job: Job) -> None:
        await self.store.jobs.cancel(job.id, True, self.clock())


@pytest.fixture
async def yard(store: DurableStore) -> Yard:
    """With a clock that is moved by hand."""
    return Yard(store)


@pytest.fixture
async def other(migrated_url: str) -> AsyncIterator[DurableStore]:
    """Another process's way to the same database."""
    store = store_at(migrated_url)
    await store.start()
    yield store
    await store.stop()


class TestOnce:
    async def test_nothing_is_started_before_its_time(self, yard: Yard) -> None:
        schedule = await yard.schedule(jitter_seconds=600.0)
        assert schedule.next_at is not None
        await yard.round(schedule.next_at - yard.clock() - 0.001)
        assert await yard.jobs() == []
        await yard.round(0.001)
        (job,) = await yard.jobs()
        assert job.schedule_id == schedule.id
        assert await yard.history(schedule) == [(1.0, "started")]
        after = await yard.store.schedules.get(schedule.id)
        assert after is not None
        assert (after.next_due, after.last_subject) == (schedule.anchor + 2 * HOUR, job.id)

    async def test_two_dispatchers_at_once_start_one(self, yard: Yard, other: DurableStore) -> None:
        schedule = await yard.schedule()
        duties = [yard.dispatcher(f"holder {n}", store) for n, store in enumerate((yard.store, other) * 3)]
        for hour in range(1, 4):
            yard.clock.now = schedule.anchor + hour * HOUR
            for _ in range(2):
                await asyncio.gather(*(duty.run_once() for duty in duties))
                await asyncio.gather(*(duty.idle() for duty in duties))
            jobs = await yard.jobs()
            assert len(jobs) == hour
            await yard.end(jobs[0])
        assert await yard.history(schedule) == [(1.0, "started"), (2.0, "started"), (3.0, "started")]

    async def test_a_kill_between_claim_and_creation_delays_and_repeats_nothing(self, yard: Yard) -> None:
        schedule = await yard.schedule()
        yard.clock.now += HOUR
        await yard.store.schedules.fire(
            schedule,
            [Firing(schedule_id=schedule.id, due_at=schedule.anchor + HOUR, created_at=yard.clock())],
            schedule.anchor + 2 * HOUR,
            schedule.anchor + 2 * HOUR,
        )
        (firing,) = await yard.store.firings.waiting(yard.clock(), 10)
        assert await yard.store.firings.claim(firing, "killed", yard.clock(), yard.clock() + LEASE_SECONDS)
        await yard.round(LEASE_SECONDS - 1)
        assert await yard.jobs() == []
        await yard.round(1)
        assert len(await yard.jobs()) == 1
        assert await yard.history(schedule) == [(1.0, "started")]

    async def test_a_kill_between_creation_and_writing_so_starts_no_second(self, yard: Yard) -> None:
        schedule = await yard.schedule()
        yard.starter.die = True
        yard.clock.now += HOUR
        await yard.duty.run_once()
        await yard.starter.made.wait()
        await yard.duty.stop()
        yard.starter.die = False
        assert await yard.history(schedule) == [(1.0, "waiting")]
        await yard.round(LEASE_SECONDS, yard.dispatcher("next"))
        assert len(await yard.jobs()) == 1
        assert await yard.history(schedule) == [(1.0, "started")]

    async def test_stopping_twice_breaks_off(self, yard: Yard) -> None:
        await yard.schedule()
        yard.clock.now += HOUR
        await yard.duty.run_once()
        await yard.duty.stop()
        await yard.duty.stop()
        assert len(await yard.jobs()) <= 1


class TestOverlap:
    async def test_skip(self, yard: Yard) -> None:
        schedule = await yard.schedule(overlap="skip")
        await yard.round(HOUR)
        await yard.round(HOUR)
        (job,) = await yard.jobs()
        assert await yard.history(schedule) == [(1.0, "started"), (2.0, "skipped")]
        assert (await yard.store.firings.recent(schedule.id, 1))[0].reason == f"{job.id} still goes on"
        await yard.end(job)
        await yard.round(HOUR)
        assert len(await yard.jobs()) == 2

    async def test_a_long_job_is_not_forgotten_when_its_firing_is(
        self, yard: Yard, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for store in (sql_schedules, dynamo_schedules):
            monkeypatch.setattr(store, "HISTORY", 10)
        schedule = await yard.schedule(every_seconds=60.0)
        for _ in range(15):
            await yard.round(60)
        assert len(await yard.jobs()) == 1
        assert [state for _, state in await yard.history(schedule)] == ["skipped"] * 10

    async def test_queue(self, yard: Yard) -> None:
        schedule = await yard.schedule(overlap="queue")
        for _ in range(3):
            await yard.round(HOUR)
        assert await yard.history(schedule) == [(1.0, "started"), (2.0, "waiting"), (3.0, "waiting")]
        for count in (2, 3):
            await yard.end((await yard.jobs())[0])
            await yard.round(1)
            await yard.round(1)
            assert len(await yard.jobs()) == count
        assert {state for _, state in await yard.history(schedule)} == {"started"}

    async def test_those_that_queue_have_a_bound(self, yard: Yard) -> None:
        schedule = await yard.schedule(overlap="queue", every_seconds=10.0, missed="run_all")
        await yard.round(10)
        await yard.round(1000)
        await yard.round(50)
        states = [state for _, state in await yard.history(schedule)]
        assert (states.count("waiting"), states.count("skipped")) == (100, 5)

    async def test_cancel_previous(self, yard: Yard) -> None:
        schedule = await yard.schedule(overlap="cancel_previous")
        await yard.round(HOUR)
        (first,) = await yard.jobs()
        await yard.round(HOUR)
        await yard.round(1)
        assert yard.starter.cancelled == [first.id]
        assert len(await yard.jobs()) == 1
        await yard.end(first)
        await yard.round(1)
        assert len(await yard.jobs()) == 2
        assert await yard.history(schedule) == [(1.0, "started"), (2.0, "started")]


class TestMissed:
    async def test_skip(self, yard: Yard) -> None:
        schedule = await yard.schedule(missed="skip")
        await yard.round(3 * HOUR + GRACE_SECONDS + 1)
        assert await yard.jobs() == []
        assert await yard.history(schedule) == [(3.0, "missed")]
        assert "3 missed" in (await yard.store.firings.recent(schedule.id, 1))[0].reason
        await yard.round(HOUR - GRACE_SECONDS - 1)
        assert (await yard.history(schedule))[-1] == (4.0, "started")

    async def test_skip_lets_a_short_delay_pass(self, yard: Yard) -> None:
        schedule = await yard.schedule(missed="skip")
        await yard.round(3 * HOUR + GRACE_SECONDS)
        assert await yard.history(schedule) == [(2.0, "missed"), (3.0, "started")]

    async def test_run_once(self, yard: Yard) -> None:
        schedule = await yard.schedule(missed="run_once")
        await yard.round(3.9 * HOUR)
        assert await yard.history(schedule) == [(2.0, "missed"), (3.0, "started")]

    async def test_run_all_is_bounded(self, yard: Yard) -> None:
        schedule = await yard.schedule(missed="run_all", overlap="queue")
        await yard.round(3 * HOUR)
        assert await yard.history(schedule) == [(1.0, "started"), (2.0, "waiting"), (3.0, "waiting")]
        many = await yard.schedule(missed="run_all", overlap="queue")
        await yard.round(500 * HOUR)
        states = [state for _, state in await yard.history(many)]
        assert (states.count("missed"), len(states)) == (1, MOST_MISSED + 1)

    async def test_years_behind_take_a_moment(self, yard: Yard) -> None:
        schedule = await yard.schedule(cron="* * * * *", time_zone="Europe/Berlin")
        await yard.round(5 * 365 * 24 * HOUR)
        assert [state for _, state in await yard.history(schedule)] == ["missed", "started"]


class TestFaults:
    async def test_what_cannot_be_started_fails_with_its_reason(self, yard: Yard) -> None:
        schedule = await yard.schedule()
        yard.starter.fail = BadRequest("items: none is usable")
        await yard.round(HOUR)
        (firing,) = await yard.store.firings.recent(schedule.id, 10)
        assert (firing.state, firing.reason) == (FiringState.FAILED, "items: none is usable")
        yard.starter.fail = None
        await yard.round(HOUR)
        assert await yard.history(schedule) == [(1.0, "failed"), (2.0, "started")]

    async def test_a_fault_of_ours_is_not_tried_for_ever(self, yard: Yard) -> None:
        schedule = await yard.schedule()
        yard.starter.fail = ZeroDivisionError()
        await yard.round(HOUR)
        assert await yard.history(schedule) == [(1.0, "failed")]

    async def test_what_is_away_is_waited_for(self, yard: Yard) -> None:
        schedule = await yard.schedule()
        yard.starter.fail = StoreUnavailable("the database does not answer")
        await yard.round(HOUR)
        await yard.round(1)
        assert await yard.history(schedule) == [(1.0, "waiting")]
        yard.starter.fail = None
        await yard.round(1)
        assert await yard.history(schedule) == [(1.0, "started")]

    async def test_a_deleted_schedule_starts_nothing_more(self, yard: Yard) -> None:
        schedule = await yard.schedule(overlap="queue")
        await yard.round(HOUR)
        await yard.round(HOUR)
        await yard.store.schedules.delete(schedule.id)
        await yard.end((await yard.jobs())[0])
        await yard.round(HOUR)
        assert len(await yard.jobs()) == 1


async def test_a_client_over_its_budget_starts_nothing_and_is_told_why(yard: Yard) -> None:
    budgets = ClientHalt(yard.store, ClientLimits(daily=ClientBudget(fetches=10)), yard.clock)
    duty = Schedules(yard.store, yard.starter, yard.clock, "one", budgets)
    mine, other = await yard.schedule(owner="shop"), await yard.schedule(owner="toys")
    meter = Meter(
        day=day_of(yard.clock() + HOUR), writer="m", job_id="", site="a.example", pool="", proxy_class="",
        client="shop", requests=10, failures=0, bytes=0,
    )  # fmt: skip
    await yard.store.meters.put([meter])
    await yard.round(HOUR, duty)
    assert (await yard.history(mine), await yard.history(other)) == ([(1.0, "skipped")], [(1.0, "started")])
    (firing,) = await yard.store.firings.recent(mine.id, 10)
    assert "fetches of this day are used up (10)" in firing.reason
    await yard.round(24 * HOUR, duty)
    assert (await yard.history(mine))[-1][1] == "started", "the next day has begun"
