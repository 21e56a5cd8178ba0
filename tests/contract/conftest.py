"""A migrated store of each kind, for every contract that speaks of one."""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from scrapeyard.store.database.migrate import migrate
from scrapeyard.store.database.postgres import Postgres
from scrapeyard.store.database.sqlite import Sqlite
from scrapeyard.store.ports.store import DurableStore
from scrapeyard.wiring.backends import store_at
from tests.contract.unhurried import unhurried
from tests.services.dynamo import new_table_url
from tests.services.postgres import PostgresServer


@pytest.fixture(scope="package", autouse=True)
def patient() -> Iterator[None]:
    """No test here fails because the machine is busy."""
    with unhurried():
        yield


@pytest.fixture(scope="package")
def migrated_file(patient: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that stands at the newest revision, to be copied: migrating for each test takes longer."""
    path = tmp_path_factory.mktemp("store") / "template.db"
    migrate(Sqlite(make_url(f"sqlite:///{path}")))
    return path


@pytest.fixture(scope="package")
def migrated_database(patient: None, postgres_server: PostgresServer) -> str:
    """The same on PostgreSQL; its name. Nobody writes to it."""
    name = postgres_server.create_database()
    migrate(Postgres(make_url(postgres_server.database_url(name))))
    return name


@pytest.fixture(scope="package")
def emptied_database(postgres_server: PostgresServer, migrated_database: str) -> str:
    """A copy that tests use one after the other: emptying it takes a thousandth of the time of a new copy."""
    return postgres_server.create_database(migrated_database)


@contextmanager
def database_url(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """An empty migrated database. `new postgresql` is one whose planner knows nothing of other tests."""
    if kind == "sqlite":
        shutil.copy(request.getfixturevalue("migrated_file"), folder / "copy.db")
        yield f"sqlite:///{folder}/copy.db"
        return
    if kind == "dynamodb":
        yield new_table_url(request.getfixturevalue("sqs_server"))
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    if kind == "new postgresql":
        name = server.create_database(request.getfixturevalue("migrated_database"))
        yield server.database_url(name)
        server.drop_database(name)
        return
    name = request.getfixturevalue("emptied_database")
    yield server.database_url(name)
    server.empty_database(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty migrated database of each kind of SQL."""
    with database_url(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture
async def store(migrated_url: str) -> AsyncIterator[DurableStore]:
    """A started store."""
    store = store_at(migrated_url)
    await store.start()
    yield store
    await store.stop()
