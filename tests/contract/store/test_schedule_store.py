"""Schedules in the store, on every database."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.errors import BadRequest
from scrapeyard.model import new_id
from scrapeyard.model.schedule import Firing, FiringState, Schedule
from scrapeyard.store.ports.schedules import HISTORY
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.backends import store_at
from tests.contract.nouns import NOW

TEMPLATE = Raw('{"items": ["http://shop.example/상품"], "name": "a\\u0000b"}'.encode())


def a_schedule(**given: Any) -> Schedule:
    plain: dict[str, Any] = {
        "id": new_id("schedule"), "name": "nightly", "target": "job", "template": TEMPLATE, "cron": "0 3 * * *",
        "time_zone": "Europe/Berlin", "created_at": NOW, "updated_at": NOW, "anchor": NOW, "next_due": NOW + 60,
        "next_at": NOW + 61,
    }  # fmt: skip
    return Schedule(**(plain | given))


def a_firing(schedule: Schedule, due_at: float = NOW + 60, **given: Any) -> Firing:
    return Firing(schedule_id=schedule.id, due_at=due_at, created_at=NOW, **given)


async def kept(store: SqlStore, schedule_id: str) -> Schedule:
    schedule = await store.schedules.get(schedule_id)
    assert schedule is not None
    return schedule


async def started(store: SqlStore, firing: Firing, subject: str) -> bool:
    assert await store.firings.claim(firing, "me", NOW, NOW + 30)
    end = replace(firing, state=FiringState.STARTED, subject=subject, settled_at=NOW, holder="me")
    return await store.firings.settle(end)


@pytest.fixture
async def schedule(store: SqlStore) -> Schedule:
    """One in the store."""
    schedule = a_schedule()
    assert await store.schedules.add(schedule, 10)
    return schedule


class TestKeeping:
    async def test_one_returns_as_it_was_given(self, store: SqlStore, schedule: Schedule) -> None:
        assert await store.schedules.get(schedule.id) == schedule
        every = a_schedule(cron="", every_seconds=12.5, paused=True, next_due=None, next_at=None, overlap="queue")
        assert await store.schedules.add(every, 10)
        assert await store.schedules.get(every.id) == every
        assert await store.schedules.get("schedule_none") is None
        assert await store.schedules.get("\0") is None

    async def test_there_is_a_bound(self, store: SqlStore, schedule: Schedule) -> None:
        assert not await store.schedules.add(a_schedule(), 1)
        assert (await store.schedules.page(None, 10)).schedules == (schedule,)

    async def test_pages_lead_through_all_of_them(self, store: SqlStore) -> None:
        ids = []
        for number in range(5):
            one = a_schedule(id=f"schedule_{number}")
            ids.append(one.id)
            await store.schedules.add(one, 10)
        seen: list[str] = []
        cursor = None
        while True:
            page = await store.schedules.page(cursor, 2)
            seen += [one.id for one in page.schedules]
            if (cursor := page.next_cursor) is None:
                break
        assert seen == ids[::-1]
        with pytest.raises(BadRequest):
            await store.schedules.page("nonsense!", 2)

    async def test_of_two_who_change_one_at_once_one_is_told(self, store: SqlStore, schedule: Schedule) -> None:
        changed = replace(schedule, name="b", paused=True, next_due=None, next_at=None)
        answers = await asyncio.gather(*(store.schedules.change(schedule, changed) for _ in range(4)))
        assert [answer for answer in answers if answer is not None] == [replace(changed, version=2)]
        gone = replace(schedule, id="schedule_none")
        assert await store.schedules.change(gone, gone) is None

    async def test_a_change_does_not_undo_a_firing(self, store: SqlStore, schedule: Schedule) -> None:
        assert await store.schedules.fire(schedule, [a_firing(schedule)], NOW + 120, NOW + 121)
        assert await store.schedules.change(schedule, replace(schedule, name="b")) is None
        assert (await kept(store, schedule.id)).next_due == NOW + 120

    async def test_a_change_leaves_what_firings_left(self, store: SqlStore, schedule: Schedule) -> None:
        firing = a_firing(schedule)
        assert await store.schedules.fire(schedule, [firing], NOW + 120, NOW + 121)
        assert await started(store, firing, "job_1")
        moved = await kept(store, schedule.id)
        assert await store.schedules.change(moved, replace(moved, name="b", last_due=None, last_subject=""))
        after = await kept(store, schedule.id)
        assert (after.name, after.last_due, after.last_subject) == ("b", NOW + 60, "job_1")

    async def test_a_deleted_one_takes_its_history_along(self, store: SqlStore, schedule: Schedule) -> None:
        await store.firings.add(a_firing(schedule))
        assert await store.schedules.delete(schedule.id)
        assert not await store.schedules.delete(schedule.id)
        assert await store.firings.recent(schedule.id, 10) == []
        assert await store.firings.waiting(NOW, 10) == []
        assert not await store.firings.add(a_firing(schedule))


class TestFiring:
    async def test_those_that_are_due(self, store: SqlStore, schedule: Schedule) -> None:
        early = a_schedule(next_due=NOW, next_at=NOW)
        await store.schedules.add(early, 10)
        await store.schedules.add(a_schedule(paused=True, next_due=None, next_at=None), 10)
        assert await store.schedules.due(NOW - 1, 10) == []
        assert await store.schedules.due(NOW + 61, 10) == [early, schedule]
        assert await store.schedules.due(NOW + 61, 1) == [early]

    async def test_one_of_many_dispatchers_fires(self, store: SqlStore, schedule: Schedule, migrated_url: str) -> None:
        other = store_at(migrated_url)
        await other.start()
        firing = a_firing(schedule)
        try:
            fired = await asyncio.gather(
                *(each.schedules.fire(schedule, [firing], NOW + 120, NOW + 120) for each in (store, other) * 5)
            )
        finally:
            await other.stop()
        assert sorted(fired) == [False] * 9 + [True]
        assert await store.firings.recent(schedule.id, 10) == [firing]
        after = await kept(store, schedule.id)
        assert (after.next_due, after.last_due, after.version) == (NOW + 120, NOW + 60, 1)

    async def test_a_schedule_that_was_changed_meanwhile_does_not_fire(
        self, store: SqlStore, schedule: Schedule
    ) -> None:
        await store.schedules.change(schedule, schedule)
        assert not await store.schedules.fire(schedule, [a_firing(schedule)], None, None)
        assert await store.firings.recent(schedule.id, 10) == []

    async def test_one_at_a_time_decides(self, store: SqlStore, schedule: Schedule) -> None:
        firing = a_firing(schedule)
        await store.firings.add(firing)
        assert await store.firings.waiting(NOW, 10) == [firing]
        claims = await asyncio.gather(
            *(store.firings.claim(firing, f"holder {number}", NOW, NOW + 30) for number in range(5))
        )
        assert sum(claims) == 1
        assert await store.firings.waiting(NOW + 29, 10) == []
        (held,) = await store.firings.waiting(NOW + 30, 10)
        assert await store.firings.claim(firing, "another", NOW + 30, NOW + 60)
        late = replace(held, state=FiringState.SKIPPED, reason="late", settled_at=NOW)
        assert not await store.firings.settle(late)
        assert await store.firings.settle(replace(late, holder="another"))
        assert not await store.firings.claim(firing, "another", NOW + 99, NOW + 120)

    async def test_one_let_go_waits_with_its_reason(self, store: SqlStore, schedule: Schedule) -> None:
        firing = a_firing(schedule)
        await store.firings.add(firing)
        assert await store.firings.claim(firing, "me", NOW, NOW + 30)
        assert await store.firings.settle(replace(firing, holder="me", reason="the last one goes on"))
        assert await store.firings.waiting(NOW, 10) == [replace(firing, reason="the last one goes on")]

    async def test_the_oldest_of_a_schedule_comes_first(self, store: SqlStore, schedule: Schedule) -> None:
        other = a_schedule()
        await store.schedules.add(other, 10)
        firings = [a_firing(schedule, NOW + 2), a_firing(schedule, NOW + 1), a_firing(other, NOW)]
        for firing in firings:
            await store.firings.add(firing)
        assert await store.firings.waiting(NOW, 10) == [firings[2], firings[1]]
        assert await store.firings.claim(firings[1], "me", NOW, NOW + 30)
        assert await store.firings.waiting(NOW, 10) == [firings[2]]

    async def test_what_was_started_is_noted(self, store: SqlStore, schedule: Schedule) -> None:
        firing = a_firing(schedule, kind="manual")
        await store.firings.add(firing)
        assert await started(store, firing, "job_1")
        assert (await kept(store, schedule.id)).last_subject == "job_1"
        (found,) = await store.firings.recent(schedule.id, 10)
        assert found == replace(firing, state=FiringState.STARTED, subject="job_1", settled_at=NOW)

    async def test_history_has_a_bound_and_so_have_those_that_wait(self, store: SqlStore, schedule: Schedule) -> None:
        missed = [
            a_firing(schedule, NOW + number, state=FiringState.MISSED, settled_at=NOW) for number in range(HISTORY + 20)
        ]
        assert await store.schedules.fire(schedule, missed, NOW + 999, NOW + 999)
        assert [one.due_at for one in await store.firings.recent(schedule.id, 1000)] == [
            NOW + number for number in range(HISTORY + 19, 19, -1)
        ]
        waiting = [await store.firings.add(a_firing(schedule, NOW + 1000 + number)) for number in range(HISTORY + 2)]
        assert waiting == [True] * HISTORY + [False] * 2
