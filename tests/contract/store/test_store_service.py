"""How a store starts, migrates, is crowded, goes away, and by which plans it reads, on SQLite and on PostgreSQL."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from scrapeyard.errors import SettingsInvalid, StoreUnavailable, StoreUncertain
from scrapeyard.model import (
    ExitReason,
    RunStatus,
)
from scrapeyard.store.database.migrate import FOLDER, HEAD
from scrapeyard.store.ports.runs import RunFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.store.sql import SqlStore
from scrapeyard.store.tables.runs import METADATA
from scrapeyard.wiring.backends import store_at
from tests.contract.nouns import NOW, a_run, an_ending, begun
from tests.contract.store.conftest import of_sql
from tests.leaks import PATIENCE, killed_after
from tests.services.dynamo import new_table_url
from tests.services.postgres import PostgresServer
from tests.services.sqs import SqsServer

PROJECT = Path(__file__).parents[3]


@pytest.fixture(params=["sqlite", "postgresql", "dynamodb"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "dynamodb":
        return new_table_url(request.getfixturevalue("sqs_server"))
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/folder/scrapeyard.db"
    return str(request.getfixturevalue("fresh_postgres_url"))


class TestStateMachine:
    @of_sql
    async def test_the_database_refuses_what_cannot_be(self, store: Store, migrated_url: str) -> None:
        run = a_run()
        await store.runs.add([run])
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
        assert await store.runs.get(run.id) == run


class TestStartAndStop:
    async def test_may_be_started_and_stopped_twice(self, store_url: str) -> None:
        store = store_at(store_url)
        for _ in range(2):
            await store.start()
            await store.start()
            assert await store.ping() < PATIENCE * 1000
            await store.stop()
            await store.stop()
        with pytest.raises(StoreUnavailable):
            await store.ping()

    async def test_many_of_one_process_at_once(self, store_url: str) -> None:
        stores = [store_at(store_url) for _ in range(4)]
        await asyncio.gather(*(store.start() for store in stores))
        await stores[0].runs.add([a_run(id="run_1")])
        assert await stores[3].runs.get("run_1") is not None
        await asyncio.gather(*(store.stop() for store in stores))

    def test_two_processes_start_at_once(self, sqs_server: SqsServer, fresh_postgres_url: str, tmp_path: Path) -> None:
        urls = [f"sqlite:///{tmp_path}/folder/scrapeyard.db", fresh_postgres_url, new_table_url(sqs_server)]
        command = [sys.executable, "-W", "error", "-m", "tests.contract.store.starts", *urls]
        pipe = subprocess.PIPE
        with killed_after(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=PROJECT)) as process:
            out, err = process.communicate(timeout=PATIENCE)
            assert (process.returncode, err) == (0, "")
            for url in urls:
                told = [line for line in out.splitlines() if line.startswith(f"{url} ")]
                assert len(told) == 2
                assert all("queued" in line for line in told)

    @of_sql
    async def test_migrations_make_the_tables_that_queries_use(self, store: Store, migrated_url: str) -> None:
        def differences(connection: Connection) -> list[Any]:
            return list(compare_metadata(MigrationContext.configure(connection), METADATA))

        engine = create_async_engine(_with_driver(migrated_url))
        async with engine.connect() as connection:
            assert await connection.run_sync(differences) == []
        await engine.dispose()

    @of_sql
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
            "dynamodb://",
            "dynamodb://eu-west-1/a",
            "dynamodb://eu-west-1/table/more",
            "dynamodb+http://key@host/eu-west-1/table",
            "dynamodb+https://host/",
        ],
    )
    def test_a_url_that_cannot_serve_is_refused(self, url: str) -> None:
        with pytest.raises(SettingsInvalid, match="database_url"):
            store_at(url)

    async def test_the_short_name_of_postgresql(self, fresh_postgres_url: str) -> None:
        store = SqlStore(fresh_postgres_url.replace("postgresql://", "postgres://") + "?sslmode=disable")
        await store.start()
        await store.stop()


class TestCrowd:
    async def test_callers_that_are_cancelled_leave_nothing_locked(self, store: Store) -> None:
        for turns in range(25):
            tasks = [
                asyncio.create_task(store.runs.finish([an_ending(begun(a_run())) for _ in range(8)])),
                asyncio.create_task(store.runs.page(RunFilter(), None, 50)),
            ]
            for _ in range(turns):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert await store.runs.finish([an_ending(begun(a_run()))]) == [True]
        assert await store.ping() < PATIENCE * 1000

    async def test_those_who_meet_at_the_same_runs_all_get_through(self, store: Store, migrated_url: str) -> None:
        other = store_at(migrated_url)
        await other.start()
        runs = [begun(a_run()) for _ in range(40)]
        ids = [run.id for run in runs]
        await store.runs.begin(runs)

        async def upkeep(mine: Store, order: int) -> None:
            for _ in range(3):
                await mine.runs.renew("worker-1", ids[::order], NOW + 20)
                await mine.runs.release(ids[::order][:20], "worker-1", NOW)
                await mine.runs.requeued(ids[::order], NOW)
                await mine.runs.begin(runs[::order])

        async def finish(mine: Store, order: int) -> int:
            return sum(await mine.runs.finish([an_ending(run) for run in runs[::order]]))

        answers = await asyncio.gather(upkeep(store, 1), upkeep(other, -1), finish(store, -1), finish(other, 1))
        await other.stop()
        assert (answers[2] or 0) + (answers[3] or 0) == 40
        assert await store.runs.counts() == {RunStatus.QUEUED: 0, RunStatus.RUNNING: 0}


class TestAway:
    async def test_a_stopped_server_is_told_and_works_again_at_once(self, own_postgres: PostgresServer) -> None:
        store = SqlStore(own_postgres.url)
        await store.start()
        run = begun(a_run())
        await store.runs.begin([run])
        await asyncio.gather(*(store.runs.get(run.id) for _ in range(5)))
        own_postgres.stop()
        for call in (store.ping(), store.runs.get(run.id), store.runs.finish([an_ending(run)]), store.runs.counts()):
            with pytest.raises(StoreUnavailable, match="DATABASE_URL"):
                await call
        own_postgres.start()
        await asyncio.gather(*(store.runs.get(run.id) for _ in range(5)))
        assert await store.runs.finish([an_ending(run)]) == [True]
        await store.stop()

    async def test_a_write_without_an_answer_may_be_done(self, fresh_postgres_url: str) -> None:
        """It differs from one that never reached the database: who was told of it must look."""
        run = a_run()
        async with _cable(fresh_postgres_url) as cable, AsyncExitStack() as stack:
            store, other = SqlStore(cable.url), SqlStore(fresh_postgres_url)
            for each in (store, other):
                await each.start()
                stack.push_async_callback(each.stop)
            await store.runs.add([a_run()])  # from now on the statement is prepared, and one message writes
            cable.cut = True
            with pytest.raises(StoreUncertain):
                await store.runs.add([run])
            with pytest.raises(StoreUnavailable) as never_sent:
                await store.runs.add([a_run()])
            assert not isinstance(never_sent.value, StoreUncertain)
            async with asyncio.timeout(PATIENCE):
                while await other.runs.get(run.id) is None:
                    await asyncio.sleep(0.02)

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


class _Cable:
    """Passes everything on, until it is cut: then one last request gets through, and no answer, and no connection."""

    def __init__(self, url: str) -> None:
        self._server = urlsplit(url)
        self.cut = False
        self.url = ""

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        if self.cut:
            return writer.close()
        assert self._server.port
        there, here = await asyncio.open_connection(self._server.hostname, self._server.port)
        asking = asyncio.create_task(self._pass(reader, here))
        try:
            while not self.cut and (part := await there.read(65_536)) and not self.cut:
                writer.write(part)
        finally:
            asking.cancel()
            writer.close()
            here.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await reader.read(65_536):
            writer.write(part)


@asynccontextmanager
async def _cable(url: str) -> AsyncIterator[_Cable]:
    cable = _Cable(url)
    async with await asyncio.start_server(cable.connect, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        cable.url = url.replace(f":{urlsplit(url).port}/", f":{port}/")
        yield cable


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
            "runs_waiting": sqlite_store.runs.due(NOW, NOW, 10),
            "runs_published": sqlite_store.runs.due(NOW, NOW, 10),
            "runs_leased": sqlite_store.runs.expired(NOW, 10),
            "runs_by_finished_at": sqlite_store.sweeps.old_runs(NOW, 10),
            "runs_to_sweep": sqlite_store.sweeps.runs_due(NOW, 10),
            "jobs_to_sweep": sqlite_store.sweeps.jobs_due(NOW, 10),
            "runs_by_status": sqlite_store.runs.counts(),
            "runs_by_scraper": sqlite_store.runs.page(RunFilter(scraper="shop/product"), None, 10),
            "runs_by_exit_reason": sqlite_store.runs.page(RunFilter(exit_reasons=(ExitReason.TIMEOUT,)), None, 10),
            "sqlite_autoindex_runs_1": sqlite_store.runs.page(RunFilter(), None, 10),
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
