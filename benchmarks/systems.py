"""The systems that are compared, each started from nothing and answering when its context is entered."""

import contextlib
import http.client
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from benchmarks.load import Target
from benchmarks.processes import ROOT, Program, StartFailed, beside_python, free_port

SCRAPERS = ROOT / "benchmarks" / "scrapers"
SCRAPE = '{"scraper":"bench/noop","input":{}}'
SCRAPE_WARM = '{"scraper":"bench/noop_warm","input":{}}'
_READY_SECONDS = 40.0


class Ground(Struct, frozen=True, kw_only=True):
    """What every system stands on in one run of the benchmark."""

    folder: Path
    """For logs and data; removed at the end."""
    redis_url: str
    postgres_url: str
    processes: int = 2
    """Worker processes of each system."""
    slots: int = 8
    """Runs that one Scrapeyard worker process has in hand at once."""


class Running(Struct, frozen=True, kw_only=True):
    """A system that answers."""

    target: Target
    programs: tuple[Program, ...]


class System(Struct, frozen=True, kw_only=True):
    """One way to run a script behind an HTTP call."""

    key: str
    name: str
    isolation: str
    """What stands around one run."""
    start: Callable[[Ground], AbstractContextManager[Running]]


@contextlib.contextmanager
def cluster(ground: Ground, body: str = SCRAPE) -> Iterator[Running]:
    """Gateway, workers and dispatcher as programs of their own, on Redis and PostgreSQL."""
    port = free_port()
    env = _scrapeyard_env(ground) | {
        "REDIS_URL": ground.redis_url,
        "DATABASE_URL": ground.postgres_url,
        "SCRAPEYARD_DATA_DIR": str(ground.folder / "cluster"),
        "SCRAPEYARD_REPOSITORY__SCRAPERS": str(SCRAPERS),
        "SCRAPEYARD_WORKER__SLOTS": str(ground.slots),
    }
    commands = {
        "gateway": ["gateway", "--port", str(port)],
        **{f"worker-{number}": ["worker"] for number in range(ground.processes)},
        "dispatcher": ["dispatcher"],
    }
    programs = [
        Program(name, [beside_python("scrapeyard"), *command], env=env, folder=ground.folder)
        for name, command in commands.items()
    ]
    with _running(Target(port=port, path="/api/scrape", body=body), programs) as running:
        yield running


@contextlib.contextmanager
def embedded(
    ground: Ground,
    extra: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    body: str = SCRAPE,
    before: Sequence[str] = (),
) -> Iterator[Running]:
    """`scrapeyard up`: every role in one process, with as many slots as the cluster's workers together. `before` stands
    before its command, such as `taskset`."""
    port = free_port()
    env = {"SCRAPEYARD_WORKER__SLOTS": str(ground.slots * ground.processes)} | dict(extra or {})
    program = scrapeyard_up(ground, port, env, before)
    target = Target(port=port, path="/api/scrape", body=body, headers=dict(headers or {}))
    with _running(target, [program]) as running:
        yield running


def scrapeyard_up(ground: Ground, port: int, env: Mapping[str, str], before: Sequence[str] = ()) -> Program:
    """The embedded server as it ships, in a fresh data directory."""
    data = ground.folder / f"up-{port}"
    argv = [
        *before,
        beside_python("scrapeyard"),
        "up",
        "--port",
        str(port),
        "--scrapers",
        str(SCRAPERS),
        "--data-dir",
        str(data),
    ]
    return Program("up", argv, env=_scrapeyard_env(ground) | dict(env), folder=ground.folder)


@contextlib.contextmanager
def rq(ground: Ground) -> Iterator[Running]:
    """FastAPI + RQ workers, which fork for each job."""
    env = {"BENCH_REDIS": _database(ground.redis_url, 1)}
    worker = [beside_python("rq"), "worker", "--quiet", "--url", env["BENCH_REDIS"], "--path", str(ROOT), "bench"]
    workers = [Program(f"rq-{number}", worker, env=env, folder=ground.folder) for number in range(ground.processes)]
    with _fastapi("rq_api", ground, env, workers) as running:
        yield running


@contextlib.contextmanager
def celery(ground: Ground) -> Iterator[Running]:
    """FastAPI + a Celery prefork pool, whose processes serve one task after another without a wall between them."""
    env, worker = celery_workers(ground)
    with _fastapi("celery_api", ground, env, [worker]) as running:
        yield running


def celery_workers(ground: Ground, prefetch: int = 1) -> tuple[dict[str, str], Program]:
    """The pool, not started yet, and the environment by which a client finds it. `prefetch`: tasks that each of its
    processes has in hand; one is best where callers wait for each."""
    env = {"BENCH_BROKER": _database(ground.redis_url, 2), "BENCH_RESULTS": _database(ground.redis_url, 3)}
    options = ["--pool", "prefork", "--concurrency", str(ground.processes), "--loglevel", "WARNING"]
    options += ["--prefetch-multiplier", str(prefetch)]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    argv = [beside_python("celery"), "-A", "benchmarks.peers.celery_tasks", "worker", *options, *quiet]
    return env, Program("celery", argv, env=env | {"C_FORCE_ROOT": "1"}, folder=ground.folder)


@contextlib.contextmanager
def fresh(ground: Ground) -> Iterator[Running]:
    """FastAPI + a new interpreter for each call."""
    with _fastapi("fresh_api", ground, {"BENCH_PROCESSES": str(ground.processes)}, []) as running:
        yield running


@contextlib.contextmanager
def echo(ground: Ground) -> Iterator[Running]:
    """A server that only answers: the load generator's own ceiling."""
    port = free_port()
    argv = [sys.executable, "-m", "benchmarks.peers.echo", str(port)]
    with _running(
        Target(port=port, path="/", body="{}"), [Program("echo", argv, env={}, folder=ground.folder)]
    ) as running:
        yield running


SYSTEMS = (
    System(key="scrapeyard", name="Scrapeyard: HTTP + Redis + child", isolation="process and walls", start=cluster),
    System(key="embedded", name="Scrapeyard: `up`, embedded", isolation="process and walls", start=embedded),
    System(
        key="scrapeyard-warm",
        name="Scrapeyard: HTTP + Redis + warm child",
        isolation="version and walls",
        start=partial(cluster, body=SCRAPE_WARM),
    ),
    System(
        key="embedded-warm",
        name="Scrapeyard: `up`, embedded, warm child",
        isolation="version and walls",
        start=partial(embedded, body=SCRAPE_WARM),
    ),
    System(key="rq", name="FastAPI + RQ", isolation="process", start=rq),
    System(key="celery", name="FastAPI + Celery prefork", isolation="none", start=celery),
    System(key="fresh", name="FastAPI + fresh python", isolation="process", start=fresh),
)


def wait_until_answers(target: Target, programs: tuple[Program, ...]) -> None:
    """Ask until a 200 comes. Raises StartFailed when a program ends or none came in time."""
    until = time.monotonic() + _READY_SECONDS
    last = "nothing"
    while time.monotonic() < until:
        for program in programs:
            program.check()
        last = ask(target)
        if last.startswith("200 "):
            return
        time.sleep(0.05)
    logs = "\n".join(f"{program.name}: {program.tail(600)}" for program in programs)
    raise StartFailed(f"no answer within {_READY_SECONDS:.0f} s; last: {last}\n{logs}")


def ask(target: Target) -> str:
    """One call, outside any measurement: the status and the start of what was answered."""
    connection = http.client.HTTPConnection(target.host, target.port, timeout=30)
    try:
        connection.request(
            target.method, target.path, target.body, {"Content-Type": "application/json", **target.headers}
        )
        answer = connection.getresponse()
        return f"{answer.status} {answer.read().decode('utf-8', 'replace')[:300]}"
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        connection.close()


@contextlib.contextmanager
def _running(target: Target, programs: list[Program]) -> Iterator[Running]:
    with contextlib.ExitStack() as stack:
        for program in programs:
            stack.enter_context(program)
        running = Running(target=target, programs=tuple(programs))
        try:
            wait_until_answers(target, running.programs)
            yield running
        finally:
            for program in programs:
                program.ask_to_end()


def _fastapi(
    module: str, ground: Ground, env: Mapping[str, str], workers: list[Program]
) -> AbstractContextManager[Running]:
    port = free_port()
    options = ["--loop", "uvloop", "--http", "httptools", "--log-level", "warning", "--no-access-log"]
    options += ["--timeout-graceful-shutdown", "1"]
    argv = [sys.executable, "-m", "uvicorn", f"benchmarks.peers.{module}:app", "--port", str(port), *options]
    api = Program(module, argv, env=env, folder=ground.folder)
    return _running(Target(port=port, path="/run", body='{"input":{}}'), [*workers, api])


def _database(url: str, number: int) -> str:
    """Another database of the same Redis server, so that no system meets another's keys."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{number}"))


def _scrapeyard_env(ground: Ground) -> dict[str, str]:
    return {"LOG_LEVEL": "warning", "HOME": str(ground.folder)}
