"""The recorder, on a real store."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from scrapeyard.errors import StoreUnavailable
from scrapeyard.model import ExitReason, Run, RunStatus
from scrapeyard.store.database.database import Database
from scrapeyard.store.ports.runs import Ending
from scrapeyard.store.recorder import Recorder
from scrapeyard.store.runs.runs import SqlRuns
from scrapeyard.store.sql import SqlStore
from tests.contract.nouns import a_run, an_ending, begun
from tests.contract.sandboxes import eventually
from tests.leaks import PATIENCE
from tests.services.postgres import PostgresServer

SLOW = 3600.0
"""An interval that no test waits for: only `flush` and `stop` write."""


class NotingRuns(SqlRuns):
    """The real ones, noting which method wrote which runs."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.calls: list[tuple[str, list[str]]] = []
        self.finished = asyncio.Event()

    async def add(self, runs: Sequence[Run]) -> None:
        """Noted."""
        self.calls.append(("add", [run.id for run in runs]))
        await super().add(runs)

    async def begin(self, runs: Sequence[Run]) -> None:
        """Noted."""
        self.calls.append(("begin", [run.id for run in runs]))
        await super().begin(runs)

    async def finish(self, endings: Sequence[Ending]) -> list[bool]:
        """Noted."""
        self.calls.append(("finish", [ending.run.id for ending in endings]))
        recorded = await super().finish(endings)
        self.finished.set()
        return recorded


class NotingStore(SqlStore):
    """The real store, noting its calls for runs."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.runs: NotingRuns = NotingRuns(self._database)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[NotingStore]:
    """A started store on SQLite."""
    store = NotingStore(f"sqlite:///{tmp_path}/runs.db")
    await store.start()
    yield store
    await store.stop()


def patient(store: SqlStore, interval_seconds: float = SLOW) -> Recorder:
    """One that a busy machine does not make give up."""
    return Recorder(store.runs, interval_seconds=interval_seconds, patience_seconds=PATIENCE)


async def status(store: SqlStore, run: Run) -> RunStatus | None:
    found = await store.runs.get(run.id)
    return found.status if found else None


class TestMerging:
    async def test_a_run_accepted_and_finished_is_written_once(self, store: NotingStore) -> None:
        run = a_run()
        async with patient(store) as recorder:
            recorder.accept(run)
            recorder.begin(begun(run))
            recorder.finish(an_ending(begun(run)))
            assert recorder.pending == 1
            await recorder.flush()
            assert recorder.pending == 0
        assert store.runs.calls == [("finish", [run.id])]
        assert await status(store, run) is RunStatus.SUCCEEDED

    async def test_a_run_accepted_and_begun_is_written_once(self, store: NotingStore) -> None:
        run = a_run()
        async with patient(store) as recorder:
            recorder.accept(run)
            recorder.begin(begun(run))
            await recorder.flush()
        assert store.runs.calls == [("begin", [run.id])]
        assert await store.runs.get(run.id) == begun(run)

    async def test_kinds_are_written_in_order(self, store: NotingStore) -> None:
        accepted, began, ended = a_run(), a_run(), a_run()
        async with patient(store) as recorder:
            recorder.finish(an_ending(begun(ended)))
            recorder.begin(begun(began))
            recorder.accept(accepted)
            await recorder.flush()
        assert store.runs.calls == [("add", [accepted.id]), ("begin", [began.id]), ("finish", [ended.id])]

    async def test_the_beginning_of_a_later_attempt_survives_the_end_of_an_earlier(self, store: NotingStore) -> None:
        run = a_run()
        async with patient(store) as recorder:
            recorder.begin(begun(run, attempt=2))
            recorder.finish(an_ending(begun(run)))
            await recorder.flush()
        kept = await store.runs.get(run.id)
        assert kept is not None
        assert (kept.status, kept.attempt) == (RunStatus.RUNNING, 2)

    async def test_in_later_batches_the_same_run_goes_on(self, store: NotingStore) -> None:
        run = a_run()
        async with patient(store) as recorder:
            recorder.accept(run)
            await recorder.flush()
            assert await status(store, run) is RunStatus.QUEUED
            recorder.begin(begun(run))
            await recorder.flush()
            assert await status(store, run) is RunStatus.RUNNING
            recorder.finish(an_ending(begun(run)))
            await recorder.flush()
            assert await status(store, run) is RunStatus.SUCCEEDED


class TestWriting:
    async def test_writes_by_itself(self, store: NotingStore) -> None:
        async with patient(store, 0.01) as recorder:
            recorder.finish(an_ending(begun(a_run())))
            await asyncio.wait_for(store.runs.finished.wait(), PATIENCE)

    async def test_flush_of_nothing_returns(self, store: NotingStore) -> None:
        async with patient(store) as recorder:
            await recorder.flush()
        assert store.runs.calls == []

    async def test_many_are_written_in_parts(self, store: NotingStore) -> None:
        runs = [begun(a_run()) for _ in range(2500)]
        async with patient(store) as recorder:
            for run in runs:
                recorder.finish(an_ending(run))
            await recorder.flush()
        assert [len(ids) for _, ids in store.runs.calls] == [1000, 1000, 500]
        assert len(await store.runs.finals([run.id for run in runs])) == 2500

    async def test_flush_returns_though_more_keeps_coming(self, store: NotingStore) -> None:
        async with patient(store, 0.001) as recorder:
            for _ in range(20):
                run = a_run()
                recorder.accept(run)
                waiting = asyncio.gather(recorder.flush(), recorder.flush())
                recorder.accept(a_run())
                await waiting
                assert await status(store, run) is RunStatus.QUEUED

    async def test_stop_writes_what_waits_and_may_be_called_twice(self, store: NotingStore) -> None:
        recorder = patient(store)
        run = begun(a_run())
        await recorder.start()
        await recorder.start()
        recorder.finish(an_ending(run))
        await recorder.stop(PATIENCE)
        await recorder.stop(PATIENCE)
        assert await status(store, run) is RunStatus.SUCCEEDED


class TestLimits:
    async def test_accept_is_refused_when_too_much_waits_but_endings_never(self, store: NotingStore) -> None:
        recorder = Recorder(store.runs, interval_seconds=SLOW, max_pending=3)
        runs = [a_run() for _ in range(3)]
        for run in runs:
            recorder.accept(run)
        with pytest.raises(StoreUnavailable):
            recorder.accept(a_run())
        other = begun(a_run())
        recorder.begin(other)
        recorder.finish(an_ending(other))
        assert recorder.pending == 4
        await recorder.start()
        await recorder.stop(PATIENCE)
        assert await status(store, other) is RunStatus.SUCCEEDED


class TestRefusedRows:
    async def test_a_refused_row_holds_up_no_other(self, store: NotingStore) -> None:
        good, bad, began, ended = a_run(), a_run(max_attempts=0), a_run(), a_run()
        with capture_logs() as logs:
            async with patient(store) as recorder:
                recorder.accept(bad)
                recorder.accept(good)
                recorder.begin(begun(began))
                recorder.begin(begun(a_run(attempt=0)))
                recorder.finish(an_ending(begun(ended)))
                await recorder.flush()
        assert [await status(store, run) for run in (good, bad, began, ended)] == [
            RunStatus.QUEUED,
            None,
            RunStatus.RUNNING,
            RunStatus.SUCCEEDED,
        ]
        assert next(entry["run"] for entry in logs if entry["event"] == "store.row_refused") == bad.id

    async def test_a_run_whose_ending_is_refused_still_ends(self, store: NotingStore) -> None:
        run, good = begun(a_run()), begun(a_run())
        async with patient(store) as recorder:
            recorder.finish(an_ending(run, result_bytes=2**70))
            recorder.finish(an_ending(good))
            await recorder.flush()
        ended = await store.runs.get(run.id)
        assert ended is not None
        assert ended.error is not None
        assert (ended.status, ended.exit_reason) == (RunStatus.FAILED, ExitReason.INTERNAL_ERROR)
        assert await status(store, good) is RunStatus.SUCCEEDED


class TestAway:
    @pytest.fixture(autouse=True)
    def connects_patiently(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server that is gone is known at once all the same."""
        monkeypatch.setattr("scrapeyard.store.database.postgres.CONNECT_SECONDS", PATIENCE)
        monkeypatch.setattr("scrapeyard.store.database.postgres.ANSWER_SECONDS", PATIENCE)

    async def test_nothing_is_lost_while_the_database_is_away(self, own_postgres: PostgresServer) -> None:
        store = SqlStore(own_postgres.url)
        await store.start()
        recorder = Recorder(store.runs, interval_seconds=0.01, patience_seconds=0.5)
        await recorder.start()
        before, during, ended = a_run(), a_run(), begun(a_run())
        recorder.accept(before)
        await eventually(lambda: not recorder.pending)
        own_postgres.stop()
        with capture_logs() as logs:
            recorder.accept(during)
            recorder.finish(an_ending(ended))
            with pytest.raises(StoreUnavailable):
                await recorder.flush()
            await eventually(lambda: recorder.away)
            assert recorder.pending == 2
            recorder.finish(an_ending(begun(before)))
            own_postgres.start()
            await recorder.stop(limit_seconds=PATIENCE)
        assert (recorder.away, recorder.pending) == (False, 0)
        assert [await status(store, run) for run in (before, during, ended)] == [
            RunStatus.SUCCEEDED,
            RunStatus.QUEUED,
            RunStatus.SUCCEEDED,
        ]
        assert [entry["event"] for entry in logs] == ["store.away", "store.back"]
        await store.stop()

    async def test_stop_ends_though_the_database_stays_away(self, own_postgres: PostgresServer) -> None:
        store = SqlStore(own_postgres.url)
        await store.start()
        recorder = Recorder(store.runs, interval_seconds=0.01)
        await recorder.start()
        own_postgres.stop()
        with capture_logs() as logs:
            recorder.accept(a_run())
            recorder.accept(a_run())
            await recorder.stop(limit_seconds=0.3)
        assert logs[-1]["event"] == "store.unwritten"
        assert logs[-1]["count"] == recorder.pending == 2
        await store.stop()
