"""How runs pass through every store, on SQLite and on PostgreSQL."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw, structs
from sqlalchemy.exc import IntegrityError

from scrapeyard.model import (
    Artifact,
    ExitReason,
    FetchTrace,
    LogLine,
    Priority,
    RunError,
    RunStatus,
    ScraperRef,
    Timing,
    Usage,
)
from scrapeyard.store.ports.store import Store
from scrapeyard.wiring.backends import store_at
from tests.contract.nouns import NOW, a_run, an_ending, begun, fetched


class TestAdd:
    async def test_a_run_returns_as_it_was_given(self, store: Store) -> None:
        run = a_run(
            lane="slow", priority=Priority.LOW, max_attempts=5, timeout_seconds=2.5, reply_to="g", traceparent="00-a-b"
        )
        await store.runs.add([run])
        assert await store.runs.get(run.id) == run

    @pytest.mark.parametrize("raw", [b'{ "a" :1.0}', b'{"nul":"\\u0000 \\ud83d\\ude00"}', '{"k":"한국"}'.encode()])
    async def test_input_and_result_are_kept_to_the_byte(self, store: Store, raw: bytes) -> None:
        run = a_run(input=Raw(raw))
        await store.runs.finish([an_ending(run, result=Raw(raw))])
        kept = await fetched(store, run.id)
        assert kept.result is not None
        assert (bytes(kept.input), bytes(kept.result)) == (raw, raw)

    async def test_a_run_already_there_is_left_as_it_is(self, store: Store) -> None:
        run = a_run()
        await store.runs.finish([an_ending(run)])
        await store.runs.add([run])
        assert (await fetched(store, run.id)).status is RunStatus.SUCCEEDED

    async def test_the_same_run_twice_in_one_call_is_one_run(self, store: Store) -> None:
        run = a_run()
        await store.runs.add([run, run])
        assert (await store.runs.counts())[RunStatus.QUEUED] == 1

    async def test_nothing_and_very_many(self, store: Store) -> None:
        await store.runs.add([])
        await store.runs.begin([])
        assert await store.runs.finish([]) == []
        await store.runs.add([a_run() for _ in range(567)])
        assert await store.runs.counts() == {RunStatus.QUEUED: 567, RunStatus.RUNNING: 0}

    async def test_an_unknown_run_is_none(self, store: Store) -> None:
        for run_id in ("run_none", "", "run_\x00", "run_\ud800", "x" * 10_000):
            assert await store.runs.get(run_id) is None
            assert await store.runs.cancel(run_id, NOW) is None
            assert await store.runs.logs(run_id) == ((), False)
        assert await store.runs.finals(["run_none", "run_\x00"]) == []


class TestBegin:
    async def test_marks_the_run_running(self, store: Store) -> None:
        run = a_run()
        await store.runs.add([run])
        await store.runs.begin([begun(run)])
        assert await store.runs.get(run.id) == begun(run)

    async def test_inserts_a_run_that_is_not_there(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.begin([run])
        await store.runs.add([run])
        assert await store.runs.get(run.id) == run

    async def test_leaves_a_final_run(self, store: Store) -> None:
        run = a_run()
        await store.runs.finish([an_ending(run)])
        before = await store.runs.get(run.id)
        await store.runs.begin([begun(run)])
        assert await store.runs.get(run.id) == before

    async def test_leaves_a_later_attempt(self, store: Store) -> None:
        run = a_run()
        await store.runs.begin([begun(run, attempt=2)])
        await store.runs.begin([begun(run, attempt=1, worker_id="late")])
        assert (await fetched(store, run.id)).worker_id == "worker-1"

    async def test_two_attempts_in_one_call_leave_the_later(self, store: Store) -> None:
        run = a_run()
        await store.runs.begin([begun(run, attempt=2), begun(run, attempt=1)])
        assert (await fetched(store, run.id)).attempt == 2

    async def test_keeps_a_requested_cancel(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.begin([run])
        await store.runs.cancel(run.id, NOW)
        await store.runs.begin([run])
        assert (await fetched(store, run.id)).cancel_requested


class TestFinish:
    async def test_records_all_of_the_outcome(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.begin([run])
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
        assert await store.runs.finish(
            [an_ending(run, exit_reason=ExitReason.SCRIPT_ERROR, result=None, **fields)]
        ) == [True]
        ended = structs.replace(
            run,
            **fields,
            status=RunStatus.FAILED,
            exit_reason=ExitReason.SCRIPT_ERROR,
            finished_at=NOW + 2,
            lease_until=None,
            resolved=ScraperRef(id="shop/product", version="1.4.2", digest="d1"),
        )
        assert await store.runs.get(run.id) == ended

    @pytest.mark.parametrize("order", ["finish add begin", "begin finish add", "add finish begin", "add begin finish"])
    async def test_any_order_of_writing_ends_the_same(self, store: Store, order: str) -> None:
        run = a_run()
        for step in order.split():
            match step:
                case "add":
                    await store.runs.add([run])
                case "begin":
                    await store.runs.begin([begun(run)])
                case _:
                    assert await store.runs.finish([an_ending(begun(run))]) == [True]
        ended = await fetched(store, run.id)
        assert (ended.status, ended.worker_id, ended.started_at) == (RunStatus.SUCCEEDED, "worker-1", NOW + 1)

    async def test_the_first_outcome_of_an_attempt_stays(self, store: Store) -> None:
        run = begun(a_run())
        failed = an_ending(run, exit_reason=ExitReason.FAILED)
        assert await store.runs.finish([an_ending(run), failed]) == [True, False]
        assert await store.runs.finish([failed]) == [False]
        assert (await fetched(store, run.id)).exit_reason is ExitReason.SUCCEEDED

    async def test_an_earlier_attempt_is_dropped(self, store: Store) -> None:
        run = begun(a_run(), attempt=2)
        await store.runs.begin([run])
        assert await store.runs.finish([an_ending(run, attempt=1)]) == [False]
        assert (await fetched(store, run.id)).status is RunStatus.RUNNING

    async def test_two_writers_at_once_record_one(self, store: Store, migrated_url: str) -> None:
        other = store_at(migrated_url)
        await other.start()
        runs = [begun(a_run()) for _ in range(60)]
        await store.runs.add(runs[:30])
        answers = await asyncio.gather(
            store.runs.finish([an_ending(run) for run in runs]),
            other.runs.finish([an_ending(run, exit_reason=ExitReason.FAILED) for run in reversed(runs)]),
        )
        await other.stop()
        mine, theirs = answers[0], answers[1][::-1]
        assert all(one is not two for one, two in zip(mine, theirs, strict=True))
        reasons = [(await fetched(store, run.id)).exit_reason for run in runs]
        assert [reason is ExitReason.SUCCEEDED for reason in reasons] == mine

    async def test_a_retry_goes_back_to_the_queue(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.begin([run])
        assert await store.runs.finish(
            [an_ending(run, exit_reason=ExitReason.RETRY, result=None, retry_after=30.0)]
        ) == [True]
        again = await fetched(store, run.id)
        assert (again.status, again.attempt, again.not_before) == (RunStatus.QUEUED, 2, NOW + 32)
        assert (again.exit_reason, again.worker_id, again.lease_until, again.finished_at) == (None, "", None, None)

    async def test_a_retry_of_a_run_not_there_yet(self, store: Store) -> None:
        run = begun(a_run())
        assert await store.runs.finish([an_ending(run, retry_after=0.0)]) == [True]
        assert await store.runs.finish([an_ending(run, retry_after=0.0)]) == [False]
        assert (await fetched(store, run.id)).attempt == 2

    async def test_a_retry_and_its_next_attempt_in_one_call(self, store: Store) -> None:
        run = begun(a_run())
        first, second = an_ending(run, retry_after=1.0), an_ending(run, attempt=2, logs=())
        assert await store.runs.finish([first, second, an_ending(run)]) == [True, True, False]
        ended = await fetched(store, run.id)
        assert (ended.status, ended.attempt) == (RunStatus.SUCCEEDED, 2)
        assert await store.runs.logs(run.id) == ((), False)

    async def test_a_requested_cancel_ends_a_retry(self, store: Store) -> None:
        runs = [begun(a_run()) for _ in range(2)]
        await store.runs.begin(runs)
        await store.runs.cancel(runs[0].id, NOW)
        assert await store.runs.finish([an_ending(run, retry_after=1.0) for run in runs]) == [True, True]
        stopped, again = [await fetched(store, run.id) for run in runs]
        assert (stopped.status, stopped.exit_reason, stopped.attempt) == (
            RunStatus.CANCELLED,
            ExitReason.CANCELLED,
            1,
        )
        assert again.status is RunStatus.QUEUED

    async def test_a_requested_cancel_ends_a_lost_run_at_the_attempt_it_had(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.begin([run])
        await store.runs.cancel(run.id, NOW)
        assert not await store.runs.retry(run.id, 1, NOW)
        ended = await fetched(store, run.id)
        assert (ended.status, ended.exit_reason, ended.attempt) == (RunStatus.CANCELLED, ExitReason.CANCELLED, 1)

    async def test_a_success_stays_a_success_though_cancel_was_requested(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.begin([run])
        await store.runs.cancel(run.id, NOW)
        await store.runs.finish([an_ending(run)])
        ended = await fetched(store, run.id)
        assert (ended.status, ended.cancel_requested) == (RunStatus.SUCCEEDED, True)

    async def test_logs_are_those_of_the_last_attempt(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.finish([an_ending(run, retry_after=0.0)])
        lines = (LogLine(at_ms=2, stream="log", text="a\x00b", level="error", fields={"n": 1}),)
        await store.runs.finish([an_ending(run, attempt=2, logs=lines, logs_cut=True)])
        assert await store.runs.logs(run.id) == (lines, True)

    async def test_a_row_the_database_refuses_leaves_nothing_of_its_batch(self, store: Store) -> None:
        good, bad = begun(a_run()), begun(a_run(max_attempts=0))
        with pytest.raises((IntegrityError, ValueError)):
            await store.runs.finish([an_ending(good), an_ending(bad)])
        assert await store.runs.get(good.id) is None


class TestClaim:
    async def test_one_of_many_takes_it(self, store: Store) -> None:
        run = a_run()
        await store.runs.add([run])
        claims = [store.runs.claim(run.id, 1, f"worker-{number}", NOW, NOW + 15) for number in range(8)]
        answers = await asyncio.gather(*claims)
        taken = await fetched(store, run.id)
        assert sum(answers) == 1
        assert taken.worker_id == f"worker-{answers.index(True)}"
        assert (taken.status, taken.started_at, taken.lease_until) == (RunStatus.RUNNING, NOW, NOW + 15)

    async def test_another_attempt_or_state_is_not_taken(self, store: Store) -> None:
        run = a_run()
        assert not await store.runs.claim(run.id, 1, "worker-1", NOW, NOW + 15)
        await store.runs.add([run])
        assert not await store.runs.claim(run.id, 2, "worker-1", NOW, NOW + 15)
        await store.runs.finish([an_ending(run)])
        assert not await store.runs.claim(run.id, 1, "worker-1", NOW, NOW + 15)


class TestRenew:
    async def test_prolongs_what_is_held_and_names_what_to_stop(self, store: Store) -> None:
        held, asked, ended, others, retried, waiting, absent = (a_run() for _ in range(7))
        await store.runs.begin([begun(run) for run in (held, asked, ended, retried)])
        await store.runs.begin([begun(others, worker_id="worker-2")])
        await store.runs.add([waiting])
        await store.runs.cancel(asked.id, NOW)
        await store.runs.finish([an_ending(ended)])
        await store.runs.retry(retried.id, 1, NOW)
        everything = [run.id for run in (held, asked, ended, others, retried, waiting, absent)]
        stop = await store.runs.renew("worker-1", everything, NOW + 99)
        assert set(stop) == {asked.id, ended.id, others.id, retried.id}
        assert (await fetched(store, held.id)).lease_until == NOW + 99
        assert (await fetched(store, others.id)).lease_until == NOW + 15
        assert await store.runs.renew("worker-1", [], NOW) == []


class TestRelease:
    async def test_gives_back_what_the_worker_holds(self, store: Store) -> None:
        mine, others, ended = begun(a_run(), attempt=2), begun(a_run(), worker_id="worker-2"), begun(a_run())
        await store.runs.begin([mine, others, ended])
        await store.runs.finish([an_ending(ended)])
        await store.runs.release([mine.id, others.id, ended.id, "run_none"], "worker-1", NOW + 5)
        back = await fetched(store, mine.id)
        assert (back.status, back.attempt, back.not_before, back.worker_id) == (RunStatus.QUEUED, 2, NOW + 5, "")
        assert (await fetched(store, others.id)).status is RunStatus.RUNNING
        assert (await fetched(store, ended.id)).status is RunStatus.SUCCEEDED
        assert [run.id for run in await store.runs.due(NOW + 5, NOW, 10)] == [mine.id]

    async def test_a_requested_cancel_ends_it(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.begin([run])
        await store.runs.cancel(run.id, NOW)
        await store.runs.release([run.id], "worker-1", NOW + 5)
        ended = await fetched(store, run.id)
        assert (ended.status, ended.finished_at) == (RunStatus.CANCELLED, NOW + 5)


class TestCancel:
    async def test_a_queued_run_ends_at_once(self, store: Store) -> None:
        run = a_run()
        await store.runs.add([run])
        ended = await store.runs.cancel(run.id, NOW + 3)
        assert ended is not None
        assert (ended.status, ended.exit_reason) == (RunStatus.CANCELLED, ExitReason.CANCELLED)
        assert (ended.finished_at, ended.cancel_requested) == (NOW + 3, True)
        assert await store.runs.get(run.id) == ended

    async def test_a_running_run_is_marked(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.begin([run])
        assert await store.runs.cancel(run.id, NOW + 3) == structs.replace(run, cancel_requested=True)

    async def test_a_final_run_stays(self, store: Store) -> None:
        run = a_run()
        await store.runs.finish([an_ending(run)])
        before = await store.runs.get(run.id)
        assert await store.runs.cancel(run.id, NOW + 3) == before

    async def test_cancel_and_claim_at_once_agree(self, store: Store) -> None:
        runs = [a_run() for _ in range(20)]
        await store.runs.add(runs)
        for run in runs:
            seen, claimed = await asyncio.gather(
                store.runs.cancel(run.id, NOW), store.runs.claim(run.id, 1, "worker-1", NOW, NOW + 15)
            )
            now = await fetched(store, run.id)
            assert seen is not None
            assert now.status is (RunStatus.RUNNING if claimed else RunStatus.CANCELLED)
            assert now.cancel_requested


class TestEndAndRetry:
    async def test_end_makes_it_final(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.begin([run])
        error = RunError(message="the worker is lost")
        assert await store.runs.end(run.id, 1, ExitReason.LOST_WORKER, error, NOW + 9)
        assert not await store.runs.end(run.id, 1, ExitReason.LOST_WORKER, error, NOW + 9)
        ended = await fetched(store, run.id)
        assert (ended.status, ended.error, ended.finished_at) == (RunStatus.FAILED, error, NOW + 9)

    async def test_end_leaves_another_attempt(self, store: Store) -> None:
        run = begun(a_run(), attempt=2)
        await store.runs.begin([run])
        assert not await store.runs.end(run.id, 1, ExitReason.LOST_WORKER, RunError(message="lost"), NOW)

    async def test_retry_gives_the_next_attempt(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.begin([run])
        assert await store.runs.retry(run.id, 1, NOW + 9)
        assert not await store.runs.retry(run.id, 1, NOW + 9)
        again = await fetched(store, run.id)
        assert (again.status, again.attempt, again.not_before) == (RunStatus.QUEUED, 2, NOW + 9)
        assert await store.runs.finish([an_ending(run)]) == [False]

    async def test_retry_of_a_run_asked_to_stop_ends_it(self, store: Store) -> None:
        run = begun(a_run())
        await store.runs.begin([run])
        await store.runs.cancel(run.id, NOW)
        assert not await store.runs.retry(run.id, 1, NOW + 9)
        assert (await fetched(store, run.id)).status is RunStatus.CANCELLED
