"""What every store promises, on SQLite and on PostgreSQL."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from msgspec import Raw, structs
from sqlalchemy import CheckConstraint, Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import create_async_engine

from scrapeyard.errors import BadRequest, SettingsInvalid, StoreUnavailable
from scrapeyard.model import (
    Artifact,
    ExitReason,
    FetchTrace,
    LogLine,
    Priority,
    Run,
    RunError,
    RunStatus,
    ScraperRef,
    Timing,
    Usage,
)
from scrapeyard.store.migrate import FOLDER, HEAD
from scrapeyard.store.port import KeyedAnswer, RunFilter, Store
from scrapeyard.store.sql import SqlStore
from scrapeyard.store.tables import METADATA
from tests.contract.nouns import NOW, a_run, a_worker, an_ending, begun
from tests.services.postgres import PostgresServer


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/folder/scrapeyard.db"
    return str(request.getfixturevalue("fresh_postgres_url"))


async def fetched(store: Store, run_id: str) -> Run:
    run = await store.get(run_id)
    assert run is not None
    return run


class TestAdd:
    async def test_a_run_returns_as_it_was_given(self, store: Store) -> None:
        run = a_run(
            lane="slow", priority=Priority.LOW, max_attempts=5, timeout_seconds=2.5, reply_to="g", traceparent="00-a-b"
        )
        await store.add([run])
        assert await store.get(run.id) == run

    @pytest.mark.parametrize("raw", [b'{ "a" :1.0}', b'{"nul":"\\u0000 \\ud83d\\ude00"}', '{"k":"한국"}'.encode()])
    async def test_input_and_result_are_kept_to_the_byte(self, store: Store, raw: bytes) -> None:
        run = a_run(input=Raw(raw))
        await store.finish([an_ending(run, result=Raw(raw))])
        kept = await fetched(store, run.id)
        assert kept.result is not None
        assert (bytes(kept.input), bytes(kept.result)) == (raw, raw)

    async def test_a_run_already_there_is_left_as_it_is(self, store: Store) -> None:
        run = a_run()
        await store.finish([an_ending(run)])
        await store.add([run])
        assert (await fetched(store, run.id)).status is RunStatus.SUCCEEDED

    async def test_the_same_run_twice_in_one_call_is_one_run(self, store: Store) -> None:
        run = a_run()
        await store.add([run, run])
        assert (await store.counts())[RunStatus.QUEUED] == 1

    async def test_nothing_and_very_many(self, store: Store) -> None:
        await store.add([])
        await store.begin([])
        assert await store.finish([]) == []
        await store.add([a_run() for _ in range(1234)])
        assert await store.counts() == {RunStatus.QUEUED: 1234, RunStatus.RUNNING: 0}

    async def test_an_unknown_run_is_none(self, store: Store) -> None:
        for run_id in ("run_none", "", "run_\x00", "run_\ud800", "x" * 10_000):
            assert await store.get(run_id) is None
            assert await store.cancel(run_id, NOW) is None
            assert await store.logs(run_id) == ((), False)
        assert await store.finals(["run_none", "run_\x00"]) == []


class TestBegin:
    async def test_marks_the_run_running(self, store: Store) -> None:
        run = a_run()
        await store.add([run])
        await store.begin([begun(run)])
        assert await store.get(run.id) == begun(run)

    async def test_inserts_a_run_that_is_not_there(self, store: Store) -> None:
        run = begun(a_run())
        await store.begin([run])
        await store.add([run])
        assert await store.get(run.id) == run

    async def test_leaves_a_final_run(self, store: Store) -> None:
        run = a_run()
        await store.finish([an_ending(run)])
        before = await store.get(run.id)
        await store.begin([begun(run)])
        assert await store.get(run.id) == before

    async def test_leaves_a_later_attempt(self, store: Store) -> None:
        run = a_run()
        await store.begin([begun(run, attempt=2)])
        await store.begin([begun(run, attempt=1, worker_id="late")])
        assert (await fetched(store, run.id)).worker_id == "worker-1"

    async def test_two_attempts_in_one_call_leave_the_later(self, store: Store) -> None:
        run = a_run()
        await store.begin([begun(run, attempt=2), begun(run, attempt=1)])
        assert (await fetched(store, run.id)).attempt == 2

    async def test_keeps_a_requested_cancel(self, store: Store) -> None:
        run = begun(a_run())
        await store.begin([run])
        await store.cancel(run.id, NOW)
        await store.begin([run])
        assert (await fetched(store, run.id)).cancel_requested


class TestFinish:
    async def test_records_all_of_the_outcome(self, store: Store) -> None:
        run = begun(a_run())
        await store.begin([run])
        error = RunError(message="broken \x00 한", type="ValueError", details={"at": [1, {"b": None}]})
        fields: dict[str, Any] = {
            "usage": Usage(wall_ms=5, fetches=2),
            "timing": Timing(queue_ms=1.25, forked_ahead=True),
            "fetches": (FetchTrace(url="http://shop.example/", status=200, bytes=7),),
            "artifacts": (Artifact(name="page.html", content_type="text/html", size=3, key="runs/x/1/page.html"),),
            "result_key": "runs/x/1/result.json",
            "result_bytes": 5_000_000_000,
            "error": error,
        }
        assert await store.finish([an_ending(run, exit_reason=ExitReason.SCRIPT_ERROR, result=None, **fields)]) == [
            True
        ]
        ended = structs.replace(
            run,
            **fields,
            status=RunStatus.FAILED,
            exit_reason=ExitReason.SCRIPT_ERROR,
            finished_at=NOW + 2,
            lease_until=None,
            resolved=ScraperRef(id="shop/product", version="1.4.2", digest="d1"),
        )
        assert await store.get(run.id) == ended

    @pytest.mark.parametrize("order", ["finish add begin", "begin finish add", "add finish begin", "add begin finish"])
    async def test_any_order_of_writing_ends_the_same(self, store: Store, order: str) -> None:
        run = a_run()
        for step in order.split():
            match step:
                case "add":
                    await store.add([run])
                case "begin":
                    await store.begin([begun(run)])
                case _:
                    assert await store.finish([an_ending(begun(run))]) == [True]
        ended = await fetched(store, run.id)
        assert (ended.status, ended.worker_id, ended.started_at) == (RunStatus.SUCCEEDED, "worker-1", NOW + 1)

    async def test_the_first_outcome_of_an_attempt_stays(self, store: Store) -> None:
        run = begun(a_run())
        failed = an_ending(run, exit_reason=ExitReason.FAILED)
        assert await store.finish([an_ending(run), failed]) == [True, False]
        assert await store.finish([failed]) == [False]
        assert (await fetched(store, run.id)).exit_reason is ExitReason.SUCCEEDED

    async def test_an_earlier_attempt_is_dropped(self, store: Store) -> None:
        run = begun(a_run(), attempt=2)
        await store.begin([run])
        assert await store.finish([an_ending(run, attempt=1)]) == [False]
        assert (await fetched(store, run.id)).status is RunStatus.RUNNING

    async def test_two_writers_at_once_record_one(self, store: Store, migrated_url: str) -> None:
        other = SqlStore(migrated_url)
        await other.start()
        runs = [begun(a_run()) for _ in range(200)]
        await store.add(runs[:100])
        answers = await asyncio.gather(
            store.finish([an_ending(run) for run in runs]),
            other.finish([an_ending(run, exit_reason=ExitReason.FAILED) for run in reversed(runs)]),
        )
        await other.stop()
        mine, theirs = answers[0], answers[1][::-1]
        assert all(one is not two for one, two in zip(mine, theirs, strict=True))
        reasons = [(await fetched(store, run.id)).exit_reason for run in runs]
        assert [reason is ExitReason.SUCCEEDED for reason in reasons] == mine

    async def test_a_retry_goes_back_to_the_queue(self, store: Store) -> None:
        run = begun(a_run())
        await store.begin([run])
        assert await store.finish([an_ending(run, exit_reason=ExitReason.RETRY, result=None, retry_after=30.0)]) == [
            True
        ]
        again = await fetched(store, run.id)
        assert (again.status, again.attempt, again.not_before) == (RunStatus.QUEUED, 2, NOW + 32)
        assert (again.exit_reason, again.worker_id, again.lease_until, again.finished_at) == (None, "", None, None)

    async def test_a_retry_of_a_run_not_there_yet(self, store: Store) -> None:
        run = begun(a_run())
        assert await store.finish([an_ending(run, retry_after=0.0)]) == [True]
        assert await store.finish([an_ending(run, retry_after=0.0)]) == [False]
        assert (await fetched(store, run.id)).attempt == 2

    async def test_a_retry_and_its_next_attempt_in_one_call(self, store: Store) -> None:
        run = begun(a_run())
        first, second = an_ending(run, retry_after=1.0), an_ending(run, attempt=2, logs=())
        assert await store.finish([first, second, an_ending(run)]) == [True, True, False]
        ended = await fetched(store, run.id)
        assert (ended.status, ended.attempt) == (RunStatus.SUCCEEDED, 2)
        assert await store.logs(run.id) == ((), False)

    async def test_a_requested_cancel_ends_a_retry(self, store: Store) -> None:
        runs = [begun(a_run()) for _ in range(2)]
        await store.begin(runs)
        await store.cancel(runs[0].id, NOW)
        assert await store.finish([an_ending(run, retry_after=1.0) for run in runs]) == [True, True]
        stopped, again = [await fetched(store, run.id) for run in runs]
        assert (stopped.status, stopped.exit_reason, stopped.attempt) == (
            RunStatus.CANCELLED,
            ExitReason.CANCELLED,
            1,
        )
        assert again.status is RunStatus.QUEUED

    async def test_a_requested_cancel_ends_a_lost_run_at_the_attempt_it_had(self, store: Store) -> None:
        run = begun(a_run())
        await store.begin([run])
        await store.cancel(run.id, NOW)
        assert not await store.retry(run.id, 1, NOW)
        ended = await fetched(store, run.id)
        assert (ended.status, ended.exit_reason, ended.attempt) == (RunStatus.CANCELLED, ExitReason.CANCELLED, 1)

    async def test_a_success_stays_a_success_though_cancel_was_requested(self, store: Store) -> None:
        run = begun(a_run())
        await store.begin([run])
        await store.cancel(run.id, NOW)
        await store.finish([an_ending(run)])
        ended = await fetched(store, run.id)
        assert (ended.status, ended.cancel_requested) == (RunStatus.SUCCEEDED, True)

    async def test_logs_are_those_of_the_last_attempt(self, store: Store) -> None:
        run = begun(a_run())
        await store.finish([an_ending(run, retry_after=0.0)])
        lines = (LogLine(at_ms=2, stream="log", text="a\x00b", level="error", fields={"n": 1}),)
        await store.finish([an_ending(run, attempt=2, logs=lines, logs_cut=True)])
        assert await store.logs(run.id) == (lines, True)

    async def test_a_row_the_database_refuses_leaves_nothing_of_its_batch(self, store: Store) -> None:
        good, bad = begun(a_run()), begun(a_run(max_attempts=0))
        with pytest.raises(IntegrityError):
            await store.finish([an_ending(good), an_ending(bad)])
        assert await store.get(good.id) is None


class TestClaim:
    async def test_one_of_many_takes_it(self, store: Store) -> None:
        run = a_run()
        await store.add([run])
        claims = [store.claim(run.id, 1, f"worker-{number}", NOW, NOW + 15) for number in range(8)]
        answers = await asyncio.gather(*claims)
        taken = await fetched(store, run.id)
        assert sum(answers) == 1
        assert taken.worker_id == f"worker-{answers.index(True)}"
        assert (taken.status, taken.started_at, taken.lease_until) == (RunStatus.RUNNING, NOW, NOW + 15)

    async def test_another_attempt_or_state_is_not_taken(self, store: Store) -> None:
        run = a_run()
        assert not await store.claim(run.id, 1, "worker-1", NOW, NOW + 15)
        await store.add([run])
        assert not await store.claim(run.id, 2, "worker-1", NOW, NOW + 15)
        await store.finish([an_ending(run)])
        assert not await store.claim(run.id, 1, "worker-1", NOW, NOW + 15)


class TestRenew:
    async def test_prolongs_what_is_held_and_names_what_to_stop(self, store: Store) -> None:
        held, asked, ended, others, retried, waiting, absent = (a_run() for _ in range(7))
        await store.begin([begun(run) for run in (held, asked, ended, retried)])
        await store.begin([begun(others, worker_id="worker-2")])
        await store.add([waiting])
        await store.cancel(asked.id, NOW)
        await store.finish([an_ending(ended)])
        await store.retry(retried.id, 1, NOW)
        everything = [run.id for run in (held, asked, ended, others, retried, waiting, absent)]
        stop = await store.renew("worker-1", everything, NOW + 99)
        assert set(stop) == {asked.id, ended.id, others.id, retried.id}
        assert (await fetched(store, held.id)).lease_until == NOW + 99
        assert (await fetched(store, others.id)).lease_until == NOW + 15
        assert await store.renew("worker-1", [], NOW) == []


class TestRelease:
    async def test_gives_back_what_the_worker_holds(self, store: Store) -> None:
        mine, others, ended = begun(a_run(), attempt=2), begun(a_run(), worker_id="worker-2"), begun(a_run())
        await store.begin([mine, others, ended])
        await store.finish([an_ending(ended)])
        await store.release([mine.id, others.id, ended.id, "run_none"], "worker-1", NOW + 5)
        back = await fetched(store, mine.id)
        assert (back.status, back.attempt, back.not_before, back.worker_id) == (RunStatus.QUEUED, 2, NOW + 5, "")
        assert (await fetched(store, others.id)).status is RunStatus.RUNNING
        assert (await fetched(store, ended.id)).status is RunStatus.SUCCEEDED
        assert [run.id for run in await store.due(NOW + 5, NOW, 10)] == [mine.id]

    async def test_a_requested_cancel_ends_it(self, store: Store) -> None:
        run = begun(a_run())
        await store.begin([run])
        await store.cancel(run.id, NOW)
        await store.release([run.id], "worker-1", NOW + 5)
        ended = await fetched(store, run.id)
        assert (ended.status, ended.finished_at) == (RunStatus.CANCELLED, NOW + 5)


class TestCancel:
    async def test_a_queued_run_ends_at_once(self, store: Store) -> None:
        run = a_run()
        await store.add([run])
        ended = await store.cancel(run.id, NOW + 3)
        assert ended is not None
        assert (ended.status, ended.exit_reason) == (RunStatus.CANCELLED, ExitReason.CANCELLED)
        assert (ended.finished_at, ended.cancel_requested) == (NOW + 3, True)
        assert await store.get(run.id) == ended

    async def test_a_running_run_is_marked(self, store: Store) -> None:
        run = begun(a_run())
        await store.begin([run])
        assert await store.cancel(run.id, NOW + 3) == structs.replace(run, cancel_requested=True)

    async def test_a_final_run_stays(self, store: Store) -> None:
        run = a_run()
        await store.finish([an_ending(run)])
        before = await store.get(run.id)
        assert await store.cancel(run.id, NOW + 3) == before

    async def test_cancel_and_claim_at_once_agree(self, store: Store) -> None:
        runs = [a_run() for _ in range(20)]
        await store.add(runs)
        for run in runs:
            seen, claimed = await asyncio.gather(
                store.cancel(run.id, NOW), store.claim(run.id, 1, "worker-1", NOW, NOW + 15)
            )
            now = await fetched(store, run.id)
            assert seen is not None
            assert now.status is (RunStatus.RUNNING if claimed else RunStatus.CANCELLED)
            assert now.cancel_requested


class TestEndAndRetry:
    async def test_end_makes_it_final(self, store: Store) -> None:
        run = begun(a_run())
        await store.begin([run])
        error = RunError(message="the worker is lost")
        assert await store.end(run.id, 1, ExitReason.LOST_WORKER, error, NOW + 9)
        assert not await store.end(run.id, 1, ExitReason.LOST_WORKER, error, NOW + 9)
        ended = await fetched(store, run.id)
        assert (ended.status, ended.error, ended.finished_at) == (RunStatus.FAILED, error, NOW + 9)

    async def test_end_leaves_another_attempt(self, store: Store) -> None:
        run = begun(a_run(), attempt=2)
        await store.begin([run])
        assert not await store.end(run.id, 1, ExitReason.LOST_WORKER, RunError(message="lost"), NOW)

    async def test_retry_gives_the_next_attempt(self, store: Store) -> None:
        run = begun(a_run())
        await store.begin([run])
        assert await store.retry(run.id, 1, NOW + 9)
        assert not await store.retry(run.id, 1, NOW + 9)
        again = await fetched(store, run.id)
        assert (again.status, again.attempt, again.not_before) == (RunStatus.QUEUED, 2, NOW + 9)
        assert await store.finish([an_ending(run)]) == [False]

    async def test_retry_of_a_run_asked_to_stop_ends_it(self, store: Store) -> None:
        run = begun(a_run())
        await store.begin([run])
        await store.cancel(run.id, NOW)
        assert not await store.retry(run.id, 1, NOW + 9)
        assert (await fetched(store, run.id)).status is RunStatus.CANCELLED


class TestUpkeep:
    async def test_due_are_those_whose_time_has_come_or_that_waited_long(self, store: Store) -> None:
        fresh, old = a_run(queued_at=NOW), a_run(queued_at=NOW - 60)
        await store.add([fresh, old])
        later, soon, running = (begun(a_run()) for _ in range(3))
        await store.finish([an_ending(later, retry_after=100.0), an_ending(soon, retry_after=1.0)])
        await store.begin([running])
        due = await store.due(NOW + 10, NOW - 30, 10)
        assert {run.id for run in due} == {old.id, soon.id}
        assert len(await store.due(NOW + 10, NOW - 30, 1)) == 1

    async def test_a_requeued_run_is_no_longer_due(self, store: Store) -> None:
        old, running = a_run(queued_at=NOW - 60), begun(a_run())
        await store.add([old])
        await store.begin([running])
        await store.requeued([old.id, running.id], NOW + 1)
        assert await store.due(NOW + 1, NOW, 10) == []
        assert (await fetched(store, old.id)).queued_at == NOW + 1
        assert (await fetched(store, running.id)).queued_at == NOW

    async def test_expired_leases_the_longest_silent_first(self, store: Store) -> None:
        runs = [begun(a_run(), lease_until=NOW + number) for number in (3, 1, 2, 9)]
        await store.begin(runs)
        assert [run.id for run in await store.expired(NOW + 5, 10)] == [runs[1].id, runs[2].id, runs[0].id]
        assert [run.id for run in await store.expired(NOW + 5, 1)] == [runs[1].id]

    async def test_retention_takes_old_final_runs_only(self, store: Store) -> None:
        old, new, open_run = begun(a_run()), begun(a_run()), begun(a_run())
        await store.finish([an_ending(old, finished_at=NOW), an_ending(new, finished_at=NOW + 100)])
        await store.begin([open_run])
        assert await store.delete_before(NOW + 50, 10) == [old.id]
        assert await store.delete_before(NOW + 50, 10) == []
        assert await store.get(old.id) is None
        assert await store.get(new.id) is not None

    async def test_retention_takes_no_more_than_the_limit(self, store: Store) -> None:
        await store.finish([an_ending(begun(a_run())) for _ in range(5)])
        assert [len(await store.delete_before(NOW + 50, 3)) for _ in range(3)] == [3, 2, 0]

    async def test_counts(self, store: Store) -> None:
        assert await store.counts() == {RunStatus.QUEUED: 0, RunStatus.RUNNING: 0}
        await store.add([a_run(), a_run()])
        await store.begin([begun(a_run())])
        await store.finish([an_ending(a_run())])
        assert await store.counts() == {RunStatus.QUEUED: 2, RunStatus.RUNNING: 1}

    async def test_finals_are_whole(self, store: Store) -> None:
        ended, waiting = begun(a_run()), a_run()
        await store.finish([an_ending(ended)])
        await store.add([waiting])
        assert await store.finals([ended.id, waiting.id, "run_none"]) == [await store.get(ended.id)]


class TestPage:
    async def test_pages_newest_first_without_results(self, store: Store) -> None:
        runs = [a_run(id=f"run_{number:03}") for number in range(7)]
        await store.finish([an_ending(run) for run in runs])
        seen: list[Run] = []
        cursor: str | None = None
        sizes = []
        while True:
            page = await store.page(RunFilter(), cursor, 3)
            seen += page.runs
            sizes.append(len(page.runs))
            if (cursor := page.next_cursor) is None:
                break
        assert [run.id for run in seen] == [run.id for run in reversed(runs)]
        assert sizes == [3, 3, 1]
        assert all(run.result is None and run.input == runs[0].input and run.usage is not None for run in seen)

    async def test_an_exactly_full_page_is_the_last(self, store: Store) -> None:
        await store.add([a_run(), a_run()])
        assert (await store.page(RunFilter(), None, 2)).next_cursor is None

    async def test_ids_sort_by_their_bytes(self, store: Store) -> None:
        await store.add([a_run(id=name) for name in ("run_a", "run_B", "run__", "run-c")])
        page = await store.page(RunFilter(), None, 10)
        assert [run.id for run in page.runs] == ["run_a", "run__", "run_B", "run-c"]

    async def test_filters(self, store: Store) -> None:
        ended, failed, waiting = a_run(), a_run(scraper="shop/list"), a_run(scraper="shop/product", created_at=NOW + 9)
        await store.finish([an_ending(ended), an_ending(failed, exit_reason=ExitReason.TIMEOUT)])
        await store.add([waiting])

        async def found(**given: Any) -> set[str]:
            return {run.id for run in (await store.page(RunFilter(**given), None, 10)).runs}

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
                await store.page(RunFilter(), cursor, 10)


class TestWorkers:
    async def test_the_last_heartbeat_stands(self, store: Store) -> None:
        await store.beat(a_worker())
        await store.beat(a_worker(id="worker-0", seen_at=NOW + 1))
        await store.beat(a_worker(busy=3, seen_at=NOW + 2))
        expected = (a_worker(id="worker-0", seen_at=NOW + 1), a_worker(busy=3, seen_at=NOW + 2))
        assert await store.workers(NOW) == expected
        assert await store.workers(NOW + 2) == expected[1:]

    async def test_goodbyes(self, store: Store) -> None:
        for number in range(3):
            await store.beat(a_worker(id=f"worker-{number}", seen_at=NOW + number))
        await store.forget("worker-2")
        await store.forget("worker-2")
        await store.forget_before(NOW + 1)
        assert [worker.id for worker in await store.workers(0)] == ["worker-1"]


class TestKeys:
    async def test_the_first_holds_the_key(self, store: Store) -> None:
        first, second = a_run(), a_run()
        mine = KeyedAnswer(key="k", body_digest="d", run_ids=(first.id,), created_at=NOW)
        theirs = KeyedAnswer(key="k", body_digest="e", run_ids=(second.id,), created_at=NOW + 1)
        assert await store.remember(mine, [first]) == mine
        assert await store.remember(theirs, [second]) == mine
        assert await store.get(first.id) is not None
        assert await store.get(second.id) is None

    async def test_of_many_at_once_one_wins(self, store: Store) -> None:
        runs = [a_run() for _ in range(10)]
        answers = [KeyedAnswer(key="k", body_digest="d", run_ids=(run.id,), created_at=NOW) for run in runs]
        calls = [store.remember(answer, [run]) for answer, run in zip(answers, runs, strict=True)]
        assert len(set(await asyncio.gather(*calls))) == 1
        assert (await store.counts())[RunStatus.QUEUED] == 1

    async def test_a_run_that_is_refused_gives_the_key_back(self, store: Store) -> None:
        answer = KeyedAnswer(key="k", body_digest="d", run_ids=("x",), created_at=NOW)
        with pytest.raises(IntegrityError):
            await store.remember(answer, [a_run(attempt=0)])
        other = structs.replace(answer, run_ids=("y",))
        assert await store.remember(other, [a_run(id="y")]) == other

    async def test_old_keys_are_forgotten(self, store: Store) -> None:
        old = KeyedAnswer(key="k", body_digest="d", run_ids=(), created_at=NOW)
        await store.remember(old, [])
        await store.forget_keys_before(NOW)
        assert await store.remember(structs.replace(old, created_at=NOW + 5), []) == old
        await store.forget_keys_before(NOW + 1)
        new = structs.replace(old, created_at=NOW + 5)
        assert await store.remember(new, []) == new


class TestLeaders:
    async def test_one_leads_until_its_time_is_over(self, store: Store) -> None:
        assert await store.lead("dispatcher", "one", NOW, NOW + 10)
        assert not await store.lead("dispatcher", "two", NOW + 9, NOW + 19)
        assert await store.lead("dispatcher", "one", NOW + 9, NOW + 19)
        assert await store.lead("dispatcher", "two", NOW + 19, NOW + 29)
        assert not await store.lead("dispatcher", "one", NOW + 20, NOW + 30)
        assert await store.lead("janitor", "one", NOW + 20, NOW + 30)

    async def test_of_many_at_once_one_leads(self, store: Store) -> None:
        answers = await asyncio.gather(*(store.lead("dispatcher", f"d{n}", NOW, NOW + 10) for n in range(8)))
        assert sum(answers) == 1

    async def test_who_resigns_makes_room(self, store: Store) -> None:
        await store.lead("dispatcher", "one", NOW, NOW + 10)
        await store.resign("dispatcher", "two")
        assert not await store.lead("dispatcher", "two", NOW, NOW + 10)
        await store.resign("dispatcher", "one")
        assert await store.lead("dispatcher", "two", NOW, NOW + 10)


class TestStateMachine:
    async def test_the_database_refuses_what_cannot_be(self, store: Store, migrated_url: str) -> None:
        run = a_run()
        await store.add([run])
        for change in (
            "status = 'lost'",
            "status = 'succeeded'",
            "exit_reason = 'timeout'",
            "status = 'failed', exit_reason = 'cancelled', finished_at = 1",
            "status = 'succeeded', exit_reason = 'timeout', finished_at = 1",
            "status = 'failed', exit_reason = 'timeout'",
            "status = 'running', worker_id = 'w', started_at = 1",
            "status = 'running', lease_until = 1",
            "attempt = 0",
            "cancel_requested = true",
            "priority = 'urgent'",
        ):
            with pytest.raises(DBAPIError, match=r"(?i)check constraint"):
                await _execute(migrated_url, f"UPDATE runs SET {change}")
        assert await store.get(run.id) == run


class TestStartAndStop:
    async def test_may_be_started_and_stopped_twice(self, store_url: str) -> None:
        store = SqlStore(store_url)
        for _ in range(2):
            await store.start()
            await store.start()
            assert await store.ping() < 10_000
            await store.stop()
            await store.stop()
        with pytest.raises(StoreUnavailable):
            await store.ping()

    async def test_many_of_one_process_at_once(self, store_url: str) -> None:
        stores = [SqlStore(store_url) for _ in range(4)]
        await asyncio.gather(*(store.start() for store in stores))
        await stores[0].add([a_run(id="run_1")])
        assert await stores[3].get("run_1") is not None
        await asyncio.gather(*(store.stop() for store in stores))

    def test_two_processes_migrate_at_once(self, store_url: str) -> None:
        program = (
            "import asyncio, sys; from scrapeyard.store.sql import SqlStore\n"
            "async def main():\n"
            "    store = SqlStore(sys.argv[1]); print('ready', flush=True); sys.stdin.readline()\n"
            "    await store.start(); print(await store.counts()); await store.stop()\n"
            "asyncio.run(main())"
        )
        command = [sys.executable, "-W", "error", "-c", program, store_url]
        pipe = subprocess.PIPE
        processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(3)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            out, err = process.communicate(timeout=60)
            assert (process.returncode, err) == (0, "")
            assert "queued" in out

    async def test_migrations_make_the_tables_that_queries_use(self, store: Store, migrated_url: str) -> None:
        def differences(connection: Connection) -> list[Any]:
            return list(compare_metadata(MigrationContext.configure(connection), METADATA))

        engine = create_async_engine(_with_driver(migrated_url))
        async with engine.connect() as connection:
            assert await connection.run_sync(differences) == []
        await engine.dispose()

    async def test_migrations_keep_what_is_checked(self, store: Store, migrated_url: str) -> None:
        names = {str(check.name) for table in METADATA.tables.values() for check in _checks(table)}
        assert len(names) > 30
        assert names <= set(await _check_names(migrated_url))

    def test_head_is_the_newest_revision(self) -> None:
        config = Config()
        config.set_main_option("script_location", str(FOLDER))
        config.set_main_option("path_separator", "os")
        assert ScriptDirectory.from_config(config).get_current_head() == HEAD

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "nonsense",
            "mysql://host/db",
            "sqlite://",
            "sqlite:///:memory:",
            "sqlite:///x?mode=ro",
            "postgresql://h/d?pool=9",
        ],
    )
    def test_a_url_that_cannot_serve_is_refused(self, url: str) -> None:
        with pytest.raises(SettingsInvalid, match="database_url"):
            SqlStore(url)

    async def test_the_short_name_of_postgresql(self, fresh_postgres_url: str) -> None:
        store = SqlStore(fresh_postgres_url.replace("postgresql://", "postgres://") + "?sslmode=disable")
        await store.start()
        await store.stop()


class TestCrowd:
    async def test_callers_that_are_cancelled_leave_nothing_locked(self, store: Store) -> None:
        for turns in range(40):
            tasks = [
                asyncio.create_task(store.finish([an_ending(begun(a_run())) for _ in range(20)])),
                asyncio.create_task(store.page(RunFilter(), None, 50)),
            ]
            for _ in range(turns):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert await store.finish([an_ending(begun(a_run()))]) == [True]
        assert await store.ping() < 10_000

    async def test_those_who_meet_at_the_same_runs_all_get_through(self, store: Store, migrated_url: str) -> None:
        other = SqlStore(migrated_url)
        await other.start()
        runs = [begun(a_run()) for _ in range(100)]
        ids = [run.id for run in runs]
        await store.begin(runs)

        async def upkeep(mine: Store, order: int) -> None:
            for _ in range(5):
                await mine.renew("worker-1", ids[::order], NOW + 20)
                await mine.release(ids[::order][:50], "worker-1", NOW)
                await mine.requeued(ids[::order], NOW)
                await mine.begin(runs[::order])

        async def finish(mine: Store, order: int) -> int:
            return sum(await mine.finish([an_ending(run) for run in runs[::order]]))

        answers = await asyncio.gather(upkeep(store, 1), upkeep(other, -1), finish(store, -1), finish(other, 1))
        await other.stop()
        assert (answers[2] or 0) + (answers[3] or 0) == 100
        assert await store.counts() == {RunStatus.QUEUED: 0, RunStatus.RUNNING: 0}


class TestAway:
    async def test_a_stopped_server_is_told_and_works_again_at_once(self, own_postgres: PostgresServer) -> None:
        store = SqlStore(own_postgres.url)
        await store.start()
        run = begun(a_run())
        await store.begin([run])
        await asyncio.gather(*(store.get(run.id) for _ in range(5)))
        own_postgres.stop()
        for call in (store.ping(), store.get(run.id), store.finish([an_ending(run)]), store.counts()):
            with pytest.raises(StoreUnavailable, match="DATABASE_URL"):
                await call
        own_postgres.start()
        await asyncio.gather(*(store.get(run.id) for _ in range(5)))
        assert await store.finish([an_ending(run)]) == [True]
        await store.stop()

    async def test_no_server_at_start(self, own_postgres: PostgresServer) -> None:
        own_postgres.stop()
        store = SqlStore(own_postgres.url)
        with pytest.raises(StoreUnavailable):
            await store.start()
        own_postgres.start()
        await store.start()
        await store.stop()

    async def test_a_wrong_password_or_database_is_told(self, postgres_url: str) -> None:
        with pytest.raises(StoreUnavailable, match="does not exist"):
            await SqlStore(postgres_url + "_not_there").start()

    async def test_a_file_that_cannot_be_opened(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StoreUnavailable):
            await SqlStore(f"sqlite:///{tmp_path}/file/x.db").start()


class TestPlans:
    """On SQLite, whose planner tells: none of these queries looks at every run."""

    @pytest.fixture
    async def sqlite_store(self, tmp_path: Path) -> AsyncIterator[SqlStore]:
        store = SqlStore(f"sqlite:///{tmp_path}/plans.db")
        await store.start()
        yield store
        await store.stop()

    @pytest.fixture
    def seen(self) -> Iterator[list[tuple[str, Any]]]:
        statements: list[tuple[str, Any]] = []

        def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
            statements.append((statement, parameters))

        event.listen(Engine, "before_cursor_execute", note)
        yield statements
        event.remove(Engine, "before_cursor_execute", note)

    async def test_queries_use_their_index(
        self, sqlite_store: SqlStore, seen: list[tuple[str, Any]], tmp_path: Path
    ) -> None:
        calls = {
            "runs_waiting": sqlite_store.due(NOW, NOW, 10),
            "runs_published": sqlite_store.due(NOW, NOW, 10),
            "runs_leased": sqlite_store.expired(NOW, 10),
            "runs_by_finished_at": sqlite_store.delete_before(NOW, 10),
            "runs_by_status": sqlite_store.counts(),
            "runs_by_scraper": sqlite_store.page(RunFilter(scraper="shop/product"), None, 10),
            "runs_by_exit_reason": sqlite_store.page(RunFilter(exit_reasons=(ExitReason.TIMEOUT,)), None, 10),
            "sqlite_autoindex_runs_1": sqlite_store.page(RunFilter(), None, 10),
        }
        for index, call in calls.items():
            seen.clear()
            await call
            plan = _plan(tmp_path / "plans.db", seen)
            assert index in plan
            assert "USE TEMP B-TREE FOR ORDER BY" not in plan


def _plan(path: Path, statements: list[tuple[str, Any]]) -> str:
    wanted = [(sql, values) for sql, values in statements if sql.startswith(("SELECT", "DELETE", "WITH"))]
    connection = sqlite3.connect(path)
    rows = [row[3] for sql, values in wanted for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    connection.close()
    return "\n".join(rows)


def _with_driver(url: str) -> str:
    return url.replace("sqlite:", "sqlite+aiosqlite:").replace("postgresql:", "postgresql+asyncpg:")


async def _execute(url: str, statement: str) -> list[Any]:
    engine = create_async_engine(_with_driver(url))
    try:
        async with engine.begin() as connection:
            result = await connection.execute(text(statement))
            return list(result.all()) if result.returns_rows else []
    finally:
        await engine.dispose()


def _checks(table: Any) -> list[Any]:
    return [constraint for constraint in table.constraints if isinstance(constraint, CheckConstraint)]


async def _check_names(url: str) -> list[str]:
    if url.startswith("sqlite"):
        rows = await _execute(url, "SELECT sql FROM sqlite_master WHERE type = 'table'")
        return [words.split()[0] for row in rows for words in row[0].split("CONSTRAINT ")[1:]]
    return [row[0] for row in await _execute(url, "SELECT conname FROM pg_constraint WHERE contype = 'c'")]
