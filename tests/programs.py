"""The real programs as processes: on free ports, in folders of their own, gone without a trace when their test is.

`Embedded` is `scrapeyard up`; `Cluster` is Valkey, PostgreSQL and any number of gateways, workers and dispatchers.
"""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import httpx

from tests.leaks import PATIENCE, Process, descendants, in_session, living, until
from tests.services.dynamo import DynamoServer
from tests.services.kafka import KafkaServer
from tests.services.nats import NatsServer
from tests.services.postgres import PostgresServer
from tests.services.sqs import SqsServer
from tests.services.valkey import ValkeyServer
from tests.services.warm import Started, warm

ROOT = Path(__file__).parent.parent
QUICK = {
    "SCRAPEYARD_WORKER__SLOTS": "4",
    "SCRAPEYARD_WORKER__LEASE_SECONDS": "15",
    "SCRAPEYARD_WORKER__HEARTBEAT_SECONDS": "0.5",
    "SCRAPEYARD_WORKER__DRAIN_SECONDS": "20",
    "SCRAPEYARD_LOG__FORMAT": "json",
    "SCRAPEYARD_SECRETS__MASTER_KEY": base64.b64encode(b"one master key for every process").decode(),
}
"""A busy machine may hold a worker up for seconds: a shorter lease would call it lost."""


class Program:
    """One process in a session of its own, with its own folder for temporary files. Its stderr goes to a file.

    `is_warm`: the command is words of `scrapeyard`, forked from a process that has it loaded.
    """

    def __init__(
        self, command: list[str], home: Path, environment: Mapping[str, str] | None = None, *, is_warm: bool = False
    ) -> None:
        self._home = home
        self._command = command
        home.mkdir(parents=True)
        self._temporary = Path((environment or {}).get("TMPDIR", home / "tmp"))
        self._temporary.mkdir(exist_ok=True)
        self.log = home / "stderr"
        given = {**_clean_environment(), "TMPDIR": str(self._temporary), **(environment or {})}
        self._process: subprocess.Popen[bytes] | Started
        with self.log.open("wb") as log, Path(os.devnull).open("wb") as nothing:
            if is_warm:
                self._process = warm().start(command, home, given, nothing.fileno(), log.fileno())
            else:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=nothing,
                    stderr=log,
                    cwd=home,
                    env=given,
                    start_new_session=True,
                )

    @property
    def pid(self) -> int:
        """Of the process, dead or alive."""
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def events(self) -> list[dict[str, Any]]:
        """What it logged, as events."""
        lines = self.log.read_text("utf-8", errors="replace").splitlines()
        return [event for line in lines if (event := _event(line)) is not None]

    def wait_for(self, event: str) -> dict[str, Any]:
        """The first event of that name. Fails when the process ends before, or after a while."""

        def found() -> dict[str, Any] | None:
            told = next((each for each in self.events() if each["event"] == event), None)
            assert told or self.runs, f"{self._command} ended with {self._process.returncode}: {self.tail()}"
            return told

        return until(found, f"{event} from {self._command}; it said: {self.tail()}")

    def tail(self) -> str:
        """The end of what it wrote."""
        return self.log.read_text("utf-8", errors="replace")[-3000:]

    def terminate(self) -> None:
        """Send SIGTERM and go on."""
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """SIGTERM, and wait. Its status. Fails when it leaves a process or a temporary file. May be called twice."""
        if not self.runs:
            return int(self._process.returncode or 0)
        tree = self.tree()
        self.terminate()
        try:
            status = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self._command} did not stop on SIGTERM: {self.tail()}") from None
        self._assert_gone(tree)
        left = sorted(path.name for path in self._temporary.iterdir())
        assert not left, f"{self._command} left temporary files: {left}"
        return status

    def kill(self) -> None:
        """SIGKILL, and wait until all that it started is gone with it. May be called twice."""
        tree = self.tree()
        self._process.kill()
        self._process.wait()
        self._assert_gone(tree)

    def tree(self) -> list[Process]:
        """Everything it started, directly or not."""
        return descendants(self.pid) if self.runs else []

    def zygote(self) -> Process | None:
        """Of a worker; None while it has none."""
        return next((each for each in self.tree() if "scrapeyard.sandbox.inside.zygote" in each.words), None)

    def scraper_parents(self) -> list[Process]:
        """Of a worker: one for each scraper in use."""
        zygote = self.zygote()
        return [] if zygote is None else [each for each in self.tree() if each.parent == zygote.pid]

    def children(self) -> list[Process]:
        """Of a worker: those that run a script and those that wait ahead."""
        parents = {each.pid for each in self.scraper_parents()}
        return [each for each in self.tree() if each.parent in parents]

    def _assert_gone(self, tree: list[Process]) -> None:
        def left() -> list[Process]:
            return living([*tree, *in_session(self.pid)])

        until(lambda: not left(), f"all of {self._command} is gone; left: {[each.words for each in left()]}")


class Shop(Program):
    """The practice shop."""

    def __init__(self, home: Path) -> None:
        super().__init__(["demo-site", "--port", "0"], home, is_warm=True)
        said = until(lambda: re.search(r"open at (\S+)/ ", self.tail()), "the shop listens")
        self.url = said[1]


class Yard:
    """What an embedded yard and a cluster have in common. Use it as a context; leaving it asserts that nothing is left.

    `scrapers` is a copy of the examples and of the lab's scrapers, for the test to change.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, *, is_fresh: bool = False) -> None:
        self._is_fresh = is_fresh
        """Whether the first program of each role is started afresh, which takes longer and shows that it loads what it
        needs."""
        self._started: set[str] = set()
        self.folder = Path(tempfile.mkdtemp(prefix="yard-"))
        self.folder.chmod(0o755)
        self.scrapers = self.folder / "scrapers"
        self.programs: list[Program] = []
        self.gateways: list[Program] = []
        self.workers: list[Program] = []
        self.dispatchers: list[Program] = []
        self.environment = {**QUICK, **(environment or {})}
        self._count = 0
        self._urls: dict[int, str] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.callback(shutil.rmtree, self.folder)
        try:
            shutil.copytree(ROOT / "examples" / "scrapers", self.scrapers)
            shutil.copytree(ROOT / "tests" / "chaos" / "scrapers", self.scrapers, dirs_exist_ok=True)
            self.shop = Shop(self._home("shop"))
            self._stack.callback(self.shop.stop)
            self._start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything by SIGTERM and see that it is gone. A fault of one does not keep the others."""
        faults: list[Exception | AssertionError] = []
        for program in reversed(self.programs):
            try:
                status = program.stop()
                assert status in (0, -signal.SIGKILL), f"status {status}: {program.tail()}"
            except (AssertionError, OSError) as fault:
                faults.append(fault)
        self._stack.close()
        if faults:
            raise faults[0]

    def kill(self) -> None:
        """End everything at once, asserting little."""
        for program in self.programs:
            program.kill()
        self._stack.close()

    @property
    def urls(self) -> list[str]:
        """Where the gateways listen that run and were once found ready."""
        return [self._urls[program.pid] for program in self.gateways if program.pid in self._urls and program.runs]

    def client(self, number: int = 0) -> httpx.Client:
        """Calls one of the running gateways. The caller closes it."""
        # Certificates, which nothing here has, would take longer to load than most calls take.
        return httpx.Client(base_url=self.urls[number], timeout=PATIENCE, trust_env=False, verify=False)

    def ready(self, gateway: Program) -> None:
        """Wait until this gateway takes calls."""
        url = str(gateway.wait_for("gateway.listening")["url"])
        with httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False, verify=False) as client:
            until(lambda: client.get("/api/ready").status_code == 200, f"{url} is ready")
        self._urls[gateway.pid] = url

    def launch(self, role: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Program:
        """Start a program of this yard and return at once."""
        command = [role, "--data-dir", str(self.folder / "data"), *arguments]
        is_fresh = self._is_fresh and role not in self._started
        if is_fresh:
            command = [sys.executable, str(Path(sys.executable).with_name("scrapeyard")), *command]
        self._started.add(role)
        given = {**self.environment, **(environment or {})}
        program = Program(command, self._home(role), given, is_warm=not is_fresh)
        self.programs.append(program)
        return program

    def add_scraper(self, name: str, script: str, manifest: str = "") -> None:
        """Write `lab/NAME` in version 1.0.0, with more lines of its manifest, and let the gateway know it."""
        folder = self.scrapers / "lab" / name
        folder.mkdir(parents=True)
        (folder / "scraper.py").write_text(script)
        (folder / "scraper.toml").write_text(f'id = "lab/{name}"\nversion = "1.0.0"\n{manifest}')
        with self.client() as api:
            api.post("/api/scrapers/refresh").raise_for_status()

    def errors(self) -> Iterator[dict[str, Any]]:
        """Every event of level error that any program logged."""
        for program in self.programs:
            yield from (event for event in program.events() if event.get("level") == "error")

    def _start(self) -> None:
        raise NotImplementedError

    def _home(self, name: str) -> Path:
        self._count += 1
        return self.folder / f"{self._count:03}-{name}"


class Embedded(Yard):
    """`scrapeyard up`: every role in one process, on SQLite and a queue in memory."""

    @property
    def temporary(self) -> Path:
        """Where its temporary files are."""
        return self.folder / "tmp"

    def _start(self) -> None:
        self.ready(self.add())

    def add(self) -> Program:
        """Start it, for the first time or after it was killed, with the same folder for temporary files."""
        arguments = ("--port", "0", "--scrapers", str(self.scrapers), "--allow-private")
        program = self.launch("up", *arguments, environment={"TMPDIR": str(self.temporary)})
        self.gateways = self.workers = self.dispatchers = [program]
        program.wait_for("gateway.listening")
        return program


class Cluster(Yard):
    """Valkey and PostgreSQL, or another broker and database, of its own, and the roles as processes of their own."""

    def __init__(
        self,
        *,
        gateways: int = 2,
        workers: int = 2,
        dispatchers: int = 1,
        environment: Mapping[str, str] | None = None,
        is_fresh: bool = False,
        broker: ValkeyServer | NatsServer | KafkaServer | SqsServer | None = None,
        database: PostgresServer | DynamoServer | None = None,
    ) -> None:
        super().__init__(environment, is_fresh=is_fresh)
        self._wanted = (gateways, workers, dispatchers)
        self.hands = self._stack.enter_context(ThreadPoolExecutor(1, "cluster"))
        """Starts and stops the servers where the caller must not wait. PostgreSQL dies with the thread that started
        it, so that thread must last as long as the cluster."""
        self.broker = broker or ValkeyServer()
        self.database = database or PostgresServer()
        if isinstance(self.database, PostgresServer):
            self._stack.callback(self.database.close)

    def _start(self) -> None:
        self._stack.enter_context(self.broker)
        self._stack.enter_context(self.database)
        name = "REDIS_URL" if isinstance(self.broker, ValkeyServer) else "SCRAPEYARD_QUEUE__URL"
        self.environment |= {name: self.broker.url, "DATABASE_URL": self.database.url}
        gateways, workers, dispatchers = self._wanted
        for _ in range(gateways):
            self.add_gateway()
        for _ in range(workers):
            self.add_worker()
        for _ in range(dispatchers):
            self.add_dispatcher()
        self.wait_until_up()

    @property
    def postgres(self) -> PostgresServer:
        """Its database, unless it has another one."""
        assert isinstance(self.database, PostgresServer)
        return self.database

    def add_gateway(self) -> Program:
        """Start one more. Returns at once."""
        program = self.launch("gateway", "--port", "0", "--scrapers", str(self.scrapers))
        self.gateways.append(program)
        return program

    def add_worker(self, environment: Mapping[str, str] | None = None) -> Program:
        """Start one more. Returns at once."""
        arguments = ("--scrapers", str(self.scrapers), "--allow-private")
        program = self.launch("worker", *arguments, environment=environment)
        self.workers.append(program)
        return program

    def add_dispatcher(self) -> Program:
        """Start one more. Returns at once."""
        program = self.launch("dispatcher")
        self.dispatchers.append(program)
        return program

    def wait_until_up(self) -> None:
        """Every program that was started and not killed does its work, and one dispatcher leads."""
        for gateway in running(self.gateways):
            self.ready(gateway)
        for worker in running(self.workers):
            worker.wait_for("worker.started")
        if running(self.dispatchers):
            until(self.leader, "a dispatcher leads")

    def leader(self) -> Program | None:
        """The dispatcher that leads; None while there is none."""
        return next((program for program in running(self.dispatchers) if _leads(program)), None)


def running(programs: list[Program]) -> list[Program]:
    """Those that have not ended."""
    return [program for program in programs if program.runs]


def _leads(program: Program) -> bool:
    told = [event["event"] for event in program.events() if event["event"] in ("dispatch.leads", "dispatch.follows")]
    return told[-1:] == ["dispatch.leads"]


def _event(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


def _clean_environment() -> dict[str, str]:
    """Ours without settings of the platform; bytecode may be kept, since a start compiles a hundred modules."""
    strangers = ("SCRAPEYARD_", "REDIS_URL", "DATABASE_URL", "OTEL_", "PYTHONDONTWRITEBYTECODE", "LOG_LEVEL")
    return {name: value for name, value in os.environ.items() if not name.startswith(strangers)}
