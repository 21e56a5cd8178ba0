"""One no-op script, called over HTTP, on Scrapeyard and on what else one would build.

Every system gets the same number of worker processes. Systems take turns, each started from nothing and alone on the
machine for its turn, so that a slow minute of the machine falls on all of them; figures are medians over the rounds.
"""

import contextlib
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from benchmarks import idle, walls
from benchmarks.forks import fork_limit
from benchmarks.load import Load, LoadFailed, Plan, drive
from benchmarks.processes import StartFailed
from benchmarks.quantiles import median, quantile
from benchmarks.report import Goal, Options, Report, Table, figure, ratio, spread
from benchmarks.systems import SYSTEMS, Ground, System, echo

PARTS = (*(system.key for system in SYSTEMS), "forks", "walls", "idle")
_LATENCY_SECONDS = 3.0
_THROUGHPUT_SECONDS = 4.0
_FORK_SECONDS = 1.5

Say = Callable[[str], None]


class Turn(Struct, frozen=True, kw_only=True):
    """One system, measured once."""

    one: Load
    """With one client."""
    many: Load
    """With all of them."""
    left_behind: int = 0


class Figures:
    """What the rounds have gathered so far."""

    def __init__(self) -> None:
        self.turns: dict[str, list[Turn]] = {}
        self.forks: list[float] = []
        self.ceiling = math.nan
        self.failures: dict[str, str] = {}

    def p50(self, key: str) -> float:
        """Median over the rounds, one client; NaN when the system was not measured."""
        return median(turn.one.p50_ms for turn in self.turns.get(key, ()))

    def p95(self, key: str) -> float:
        """As `p50`."""
        return median(turn.one.p95_ms for turn in self.turns.get(key, ()))

    def per_second(self, key: str) -> float:
        """Median over the rounds, all clients."""
        return median(turn.many.per_second for turn in self.turns.get(key, ()))

    def fork_limit(self) -> float:
        """Median over the rounds."""
        return median(self.forks)

    def timing(self, key: str, field: str) -> float:
        """p50 over all rounds of one field of the answers' `timing`, one client."""
        found = [timing.get(field) for turn in self.turns.get(key, ()) for timing in turn.one.timing]
        return quantile(sorted(float(value) for value in found if value is not None), 0.5)

    def handed(self, key: str) -> float:
        """p50 of handing a run to a child that had been forked ahead."""
        found = [timing for turn in self.turns.get(key, ()) for timing in turn.one.timing]
        ahead = [float(timing["child_start_ms"]) for timing in found if timing.get("forked_ahead")]
        return quantile(sorted(ahead), 0.5)

    def errors(self, key: str) -> int:
        """Answers that were not a 200, in all rounds."""
        loads = [load for turn in self.turns.get(key, ()) for load in (turn.one, turn.many)]
        return sum(sum(load.errors.values()) for load in loads)


def run(options: Options, say: Say) -> Report:
    """Measure what was asked for. A part that cannot be measured is named in `failures`; the others go on."""
    figures = Figures()
    with ground_of(options) as ground:
        with _noting(figures, "load generator"):
            say("load generator's ceiling")
            figures.ceiling = _ceiling(ground, options)
        for number in range(options.rounds):
            say(f"round {number + 1} of {options.rounds}")
            _round(figures, ground, options, say)
        cost = None
        with _noting(figures, "walls"):
            cost = walls.measure(ground, options, say) if options.wants("walls") else None
        memory = None
        with _noting(figures, "idle"):
            memory = idle.measure(ground, say) if options.wants("idle") else None
    return _report(figures, cost, memory, options)


@contextlib.contextmanager
def ground_of(options: Options) -> Iterator[Ground]:
    """A folder, a Redis and a PostgreSQL of our own, gone when the context is left."""
    # The wheels that carry the servers warn at import where there is no desktop session.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        from tests.services.postgres import PostgresServer
        from tests.services.valkey import ValkeyServer

    with (
        tempfile.TemporaryDirectory(prefix="scrapeyard-bench-") as folder,
        ValkeyServer() as valkey,
        PostgresServer() as postgres,
    ):
        yield Ground(
            folder=Path(folder),
            redis_url=valkey.url,
            postgres_url=postgres.url,
            processes=options.processes,
            slots=options.slots,
        )


@contextlib.contextmanager
def _noting(figures: Figures, part: str) -> Iterator[None]:
    """Let the other parts go on when this one cannot be measured."""
    try:
        yield
    except (StartFailed, LoadFailed) as error:
        figures.failures[part] = str(error)


def _ceiling(ground: Ground, options: Options) -> float:
    with echo(ground) as running:
        plan = Plan(target=running.target, clients=options.clients, seconds=1.5 * options.pace)
        return drive(plan).per_second


def _round(figures: Figures, ground: Ground, options: Options, say: Say) -> None:
    if options.wants("forks"):
        say("forks of a bare warm parent")
        figures.forks.append(fork_limit(parents=options.processes, seconds=_FORK_SECONDS * options.pace))
    for system in SYSTEMS:
        if options.wants(system.key) and system.key not in figures.failures:
            say(system.name)
            with _noting(figures, system.key):
                turn = _turn(system, ground, options)
                figures.turns.setdefault(system.key, []).append(turn)
                if turn.left_behind:
                    figures.failures[f"{system.key}, its end"] = f"{turn.left_behind} processes had to be killed"


def _turn(system: System, ground: Ground, options: Options) -> Turn:
    with system.start(ground) as running:
        one = Plan(target=running.target, clients=1, seconds=_LATENCY_SECONDS * options.pace, keep_timing=True)
        seconds = _THROUGHPUT_SECONDS * options.pace
        many = Plan(target=running.target, clients=options.clients, seconds=seconds, warmup_seconds=1.0)
        turn = Turn(one=drive(one), many=drive(many))
    return msgspec.structs.replace(turn, left_behind=sum(program.left_behind for program in running.programs))


def _report(figures: Figures, cost: walls.Cost | None, memory: idle.Idle | None, options: Options) -> Report:
    tables = [_comparison(figures, options), _road(figures)]
    tables += [cost.table()] if cost else []
    tables += [memory.table()] if memory else []
    goals = [*_goals(figures), *(cost.goals() if cost else ()), *(memory.goals() if memory else ())]
    return Report(
        bench="core",
        tables=tuple(table for table in tables if table.rows),
        goals=tuple(goals),
        failures=figures.failures,
        numbers=_numbers(figures) | {"walls": cost, "idle": memory},
    )


def _comparison(figures: Figures, options: Options) -> Table:
    rows = []
    for system in SYSTEMS:
        if figures.turns.get(system.key):
            key = system.key
            numbers = [figure(value) for value in (figures.p50(key), figures.p95(key), figures.per_second(key))]
            rows.append((system.name, system.isolation, *numbers, str(figures.errors(key))))
    forks = f"Forks a second of bare warm parents: {spread(figures.forks)}. " if figures.forks else ""
    return Table(
        title=f"A no-op script behind HTTP, {options.processes} worker processes",
        columns=("system", "around one run", "p50 ms", "p95 ms", f"runs/s, {options.clients} clients", "errors"),
        rows=tuple(rows),
        note=f"{forks}The load generator alone reaches {figure(figures.ceiling)} calls/s.",
    )


def _road(figures: Figures) -> Table:
    fields = ("queue_ms", "resolve_ms", "child_start_ms", "script_ms", "record_ms")
    rows = []
    for key in ("scrapeyard", "embedded", "scrapeyard-warm", "embedded-warm"):
        if figures.turns.get(key):
            known = [figures.timing(key, field) for field in fields]
            rest = figures.p50(key) - sum(value for value in known if not math.isnan(value))
            rows.append((key, *(figure(value) for value in known), figure(rest)))
    columns = ("one client, p50 ms", "queue", "resolve", "child start", "script", "record", "the rest")
    return Table(title="Where a call's time goes", columns=columns, rows=tuple(rows))


def _goals(figures: Figures) -> tuple[Goal, ...]:
    p50, rate = figures.p50, figures.per_second
    ours = rate("scrapeyard")

    def least(name: str, measured: float, bound: float, *, aim: bool = False) -> Goal:
        return Goal(name=name, measured=measured, bound=bound, at_least=True, aim=aim)

    return (
        least("p50: RQ / Scrapeyard", ratio(p50("rq"), p50("scrapeyard")), 6),
        least("p50: fresh python / Scrapeyard", ratio(p50("fresh"), p50("scrapeyard")), 50),
        least("throughput: Scrapeyard / RQ", ratio(ours, rate("rq")), 4),
        least("throughput: Scrapeyard / Celery", ratio(ours, rate("celery")), 1),
        least("throughput: Scrapeyard / fork limit", ratio(ours, figures.fork_limit()), 0.5, aim=True),
        least("throughput: cluster / embedded", ratio(ours, rate("embedded")), 0.9),
        least("throughput: warm / one child per run, cluster", ratio(rate("scrapeyard-warm"), ours), 3),
        least("throughput: warm / one child per run, embedded", ratio(rate("embedded-warm"), rate("embedded")), 3),
        least("throughput: warm on the cluster / Celery", ratio(rate("scrapeyard-warm"), rate("celery")), 1),
        *(
            Goal(
                name=f"p50: warm / one child per run, {key}",
                measured=ratio(p50(f"{key}-warm"), p50(key)),
                bound=0.7,
                at_least=False,
            )
            for key in ("scrapeyard", "embedded")
        ),
        least("p50: Scrapeyard on Redis / embedded", ratio(p50("scrapeyard"), p50("embedded")), 1),
        Goal(
            name="a child forked ahead gets its run",
            measured=figures.handed("scrapeyard"),
            bound=2,
            at_least=False,
            unit="ms",
        ),
    )


def _numbers(figures: Figures) -> dict[str, Any]:
    systems = {
        key: {
            "p50_ms": figures.p50(key),
            "p95_ms": figures.p95(key),
            "per_second": figures.per_second(key),
            "handed_ms": figures.handed(key),
            "rounds": [_turn_numbers(turn) for turn in turns],
        }
        for key, turns in figures.turns.items()
    }
    return {"systems": systems, "forks_per_second": figures.forks, "load_ceiling_per_second": figures.ceiling}


def _turn_numbers(turn: Turn) -> dict[str, Any]:
    loads = {name: msgspec.structs.asdict(load) for name, load in (("one", turn.one), ("many", turn.many))}
    for load in loads.values():
        del load["timing"]
    return {**loads, "left_behind": turn.left_behind}
