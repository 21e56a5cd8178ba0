"""Pages of runs, their upkeep, workers, keys and leaders, on SQLite and on PostgreSQL."""

import asyncio
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy.exc import IntegrityError

from scrapeyard.errors import BadRequest
from scrapeyard.model import (
    ExitReason,
    Run,
    RunStatus,
)
from scrapeyard.store.ports.runs import KeyedAnswer, RunFilter
from scrapeyard.store.ports.store import Store
from tests.contract.nouns import NOW, a_run, a_worker, an_ending, begun, fetched


class TestUpkeep:
    async def test_due_are_those_whose_time_has_come_or_that_waited_long(self, store: Store) -> None:
        fresh, old = a_run(queued_at=NOW), a_run(queued_at=NOW - 60)
        await store.runs.add([fresh, old])
        later, soon, running = (begun(a_run()) for _ in range(3))
        await store.runs.finish([an_ending(later, retry_after=100.0), an_ending(soon, retry_after=1.0)])
        await store.runs.begin([running])
        due = await store.runs.due(NOW + 10, NOW - 30, 10)
        assert {run.id for run in due} == {old.id, soon.id}
        assert len(await store.runs.due(NOW + 10, NOW - 30, 1)) == 1

    async def test_a_requeued_run_is_no_longer_due(self, store: Store) -> None:
        old, running = a_run(queued_at=NOW - 60), begun(a_run())
        await store.runs.add([old])
        await store.runs.begin([running])
        await store.runs.requeued([old.id, running.id], NOW + 1)
        assert await store.runs.due(NOW + 1, NOW, 10) == []
        assert (await fetched(store, old.id)).queued_at == NOW + 1
        assert (await fetched(store, running.id)).queued_at == NOW

    async def test_expired_leases_the_longest_silent_first(self, store: Store) -> None:
        runs = [begun(a_run(), lease_until=NOW + number) for number in (3, 1, 2, 9)]
        await store.runs.begin(runs)
        assert [run.id for run in await store.runs.expired(NOW + 5, 10)] == [runs[1].id, runs[2].id, runs[0].id]
        assert [run.id for run in await store.runs.expired(NOW + 5, 1)] == [runs[1].id]

    async def test_retention_takes_old_final_runs_only(self, store: Store) -> None:
        old, new, open_run = begun(a_run()), begun(a_run()), begun(a_run())
        await store.runs.finish([an_ending(old, finished_at=NOW), an_ending(new, finished_at=NOW + 100)])
        await store.runs.begin([open_run])
        assert await store.sweeps.old_runs(NOW + 50, 10) == [old.id]
        await store.sweeps.delete_runs([old.id, open_run.id])
        assert await store.sweeps.old_runs(NOW + 50, 10) == []
        assert await store.runs.get(old.id) is None
        assert await store.runs.get(new.id) is not None
        assert await store.runs.get(open_run.id) is not None

    async def test_runs_that_failed_have_a_retention_of_their_own(self, store: Store) -> None:
        good, bad, later = begun(a_run()), begun(a_run()), begun(a_run())
        failed = {"exit_reason": ExitReason.FAILED, "result": None}
        await store.runs.finish(
            [
                an_ending(good, finished_at=NOW),
                an_ending(bad, finished_at=NOW, **failed),
                an_ending(later, finished_at=NOW + 60, **failed),
            ]
        )
        assert await store.sweeps.old_runs(NOW + 50, 10, failed_before=NOW - 50) == [good.id]
        assert await store.sweeps.old_runs(NOW - 50, 10, failed_before=NOW + 50) == [bad.id]

    async def test_retention_takes_no_more_than_the_limit(self, store: Store) -> None:
        await store.runs.finish([an_ending(begun(a_run())) for _ in range(5)])
        assert len(await store.sweeps.old_runs(NOW + 50, 3)) == 3

    async def test_counts(self, store: Store) -> None:
        assert await store.runs.counts() == {RunStatus.QUEUED: 0, RunStatus.RUNNING: 0}
        await store.runs.add([a_run(), a_run()])
        await store.runs.begin([begun(a_run())])
        await store.runs.finish([an_ending(a_run())])
        assert await store.runs.counts() == {RunStatus.QUEUED: 2, RunStatus.RUNNING: 1}

    async def test_finals_are_whole(self, store: Store) -> None:
        ended, waiting = begun(a_run()), a_run()
        await store.runs.finish([an_ending(ended)])
        await store.runs.add([waiting])
        assert await store.runs.finals([ended.id, waiting.id, "run_none"]) == [await store.runs.get(ended.id)]


class TestPage:
    async def test_pages_newest_first_without_results(self, store: Store) -> None:
        runs = [a_run(id=f"run_{number:03}") for number in range(7)]
        await store.runs.finish([an_ending(run) for run in runs])
        seen: list[Run] = []
        cursor: str | None = None
        sizes = []
        while True:
            page = await store.runs.page(RunFilter(), cursor, 3)
            seen += page.runs
            sizes.append(len(page.runs))
            if (cursor := page.next_cursor) is None:
                break
        assert [run.id for run in seen] == [run.id for run in reversed(runs)]
        assert sizes == [3, 3, 1]
        assert all(run.result is None and run.input == runs[0].input and run.usage is not None for run in seen)

    async def test_an_exactly_full_page_is_the_last(self, store: Store) -> None:
        await store.runs.add([a_run(), a_run()])
        assert (await store.runs.page(RunFilter(), None, 2)).next_cursor is None

    async def test_ids_sort_by_their_bytes(self, store: Store) -> None:
        await store.runs.add([a_run(id=name) for name in ("run_a", "run_B", "run__", "run-c")])
        page = await store.runs.page(RunFilter(), None, 10)
        assert [run.id for run in page.runs] == ["run_a", "run__", "run_B", "run-c"]

    async def test_filters(self, store: Store) -> None:
        ended, failed, waiting = a_run(), a_run(scraper="shop/list"), a_run(scraper="shop/product", created_at=NOW + 9)
        await store.runs.finish([an_ending(ended), an_ending(failed, exit_reason=ExitReason.TIMEOUT)])
        await store.runs.add([waiting])

        async def found(**given: Any) -> set[str]:
            return {run.id for run in (await store.runs.page(RunFilter(**given), None, 10)).runs}

        assert await found(statuses=(RunStatus.QUEUED,)) == {waiting.id}
        assert await found(statuses=(RunStatus.QUEUED, RunStatus.FAILED)) == {waiting.id, failed.id}
        assert await found(statuses=()) == set()
        assert await found(exit_reasons=(ExitReason.TIMEOUT,)) == {failed.id}
        assert await found(scraper="shop/product") == {ended.id, waiting.id}
        assert await found(scraper="shop/product", statuses=(RunStatus.SUCCEEDED,)) == {ended.id}
        assert await found(scraper="shop/\x00") == set()
        assert await found(created_after=NOW + 1) == {waiting.id}
        assert await found(created_before=NOW + 1) == {ended.id, failed.id}

    async def test_a_strange_cursor_is_refused(self, store: Store) -> None:
        for cursor in ("", "!", "AAAA", "cnVu=", "cnVuX2E===", "é", "x" * 5000, "cnVuXwA"):
            with pytest.raises(BadRequest, match="cursor"):
                await store.runs.page(RunFilter(), cursor, 10)


class TestWorkers:
    async def test_the_last_heartbeat_stands(self, store: Store) -> None:
        await store.workers.beat(a_worker())
        await store.workers.beat(a_worker(id="worker-0", seen_at=NOW + 1))
        await store.workers.beat(a_worker(busy=3, seen_at=NOW + 2))
        expected = (a_worker(id="worker-0", seen_at=NOW + 1), a_worker(busy=3, seen_at=NOW + 2))
        assert await store.workers.alive(NOW) == expected
        assert await store.workers.alive(NOW + 2) == expected[1:]

    async def test_a_wish_to_drain_reaches_the_worker_and_stands(self, store: Store) -> None:
        assert await store.workers.beat(a_worker()) == ""
        assert await store.workers.set_drain(a_worker().id, "exit")
        assert await store.workers.beat(a_worker(seen_at=NOW + 1)) == "exit"
        assert [worker.drain for worker in await store.workers.alive(NOW)] == ["exit"]
        await store.workers.forget(a_worker().id)
        assert not await store.workers.set_drain(a_worker().id, "")
        assert await store.workers.beat(a_worker(drain="exit")) == "exit", "a worker that was forgotten tells it itself"

    async def test_goodbyes(self, store: Store) -> None:
        for number in range(3):
            await store.workers.beat(a_worker(id=f"worker-{number}", seen_at=NOW + number))
        await store.workers.forget("worker-2")
        await store.workers.forget("worker-2")
        await store.workers.forget_before(NOW + 1)
        assert [worker.id for worker in await store.workers.alive(0)] == ["worker-1"]


class TestKeys:
    async def test_the_first_holds_the_key(self, store: Store) -> None:
        first, second = a_run(), a_run()
        mine = KeyedAnswer(key="k", body_digest="d", run_ids=(first.id,), created_at=NOW)
        theirs = KeyedAnswer(key="k", body_digest="e", run_ids=(second.id,), created_at=NOW + 1)
        assert await store.keys.remember(mine, [first]) == mine
        assert await store.keys.remember(theirs, [second]) == mine
        assert await store.runs.get(first.id) is not None
        assert await store.runs.get(second.id) is None

    async def test_of_many_at_once_one_wins(self, store: Store) -> None:
        runs = [a_run() for _ in range(10)]
        answers = [KeyedAnswer(key="k", body_digest="d", run_ids=(run.id,), created_at=NOW) for run in runs]
        calls = [store.keys.remember(answer, [run]) for answer, run in zip(answers, runs, strict=True)]
        assert len(set(await asyncio.gather(*calls))) == 1
        assert (await store.runs.counts())[RunStatus.QUEUED] == 1

    async def test_a_run_that_is_refused_gives_the_key_back(self, store: Store) -> None:
        answer = KeyedAnswer(key="k", body_digest="d", run_ids=("x",), created_at=NOW)
        with pytest.raises((IntegrityError, ValueError)):
            await store.keys.remember(answer, [a_run(attempt=0)])
        other = structs.replace(answer, run_ids=("y",))
        assert await store.keys.remember(other, [a_run(id="y")]) == other

    async def test_old_keys_are_forgotten(self, store: Store) -> None:
        old = KeyedAnswer(key="k", body_digest="d", run_ids=(), created_at=NOW)
        await store.keys.remember(old, [])
        await store.keys.forget_before(NOW)
        assert await store.keys.remember(structs.replace(old, created_at=NOW + 5), []) == old
        await store.keys.forget_before(NOW + 1)
        new = structs.replace(old, created_at=NOW + 5)
        assert await store.keys.remember(new, []) == new


class TestLeaders:
    async def test_one_leads_until_its_time_is_over(self, store: Store) -> None:
        assert await store.leaders.claim("dispatcher", "one", NOW, NOW + 10)
        assert not await store.leaders.claim("dispatcher", "two", NOW + 9, NOW + 19)
        assert await store.leaders.claim("dispatcher", "one", NOW + 9, NOW + 19)
        assert await store.leaders.claim("dispatcher", "two", NOW + 19, NOW + 29)
        assert not await store.leaders.claim("dispatcher", "one", NOW + 20, NOW + 30)
        assert await store.leaders.claim("janitor", "one", NOW + 20, NOW + 30)

    async def test_of_many_at_once_one_leads(self, store: Store) -> None:
        answers = await asyncio.gather(*(store.leaders.claim("dispatcher", f"d{n}", NOW, NOW + 10) for n in range(8)))
        assert sum(answers) == 1

    async def test_who_resigns_makes_room(self, store: Store) -> None:
        await store.leaders.claim("dispatcher", "one", NOW, NOW + 10)
        await store.leaders.resign("dispatcher", "two")
        assert not await store.leaders.claim("dispatcher", "two", NOW, NOW + 10)
        await store.leaders.resign("dispatcher", "one")
        assert await store.leaders.claim("dispatcher", "two", NOW, NOW + 10)


async def test_waiting_runs_are_counted_by_lane_and_owner(store: Store) -> None:
    mine = [a_run(owner="shop") for _ in range(2)]
    await store.runs.add([*mine, a_run(owner="other"), a_run(owner="shop", lane="slow")])
    assert await store.runs.waiting() == {("default", "shop"): 2, ("default", "other"): 1, ("slow", "shop"): 1}
    await store.runs.begin([begun(mine[0])])
    assert (await store.runs.waiting())["default", "shop"] == 1
    again = an_ending(begun(mine[0]), retry_after=60.0)
    await store.runs.finish([again])
    assert (await store.runs.waiting())["default", "shop"] == 1, "the next attempt is not in the queue yet"
