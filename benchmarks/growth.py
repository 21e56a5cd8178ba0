"""How the cost of a fetch, a call and a job grows with the load: processor time at 1, 2, 4, 8 and 16 times as much.

Processor time is counted, not the clock, so that a busy machine changes little: of the whole tree of processes for
calls and jobs, of the engine's process for fetches. The slope is that of the total cost over the load, both as
logarithms: 1.00 is linear, 2.00 would be quadratic.
"""

import math
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import web
from benchmarks.engine import crawl
from benchmarks.jobs_road import drain
from benchmarks.load import LoadFailed, Plan, drive
from benchmarks.processes import StartFailed
from benchmarks.quantiles import median
from benchmarks.report import Goal, Options, Report, Table, figure
from benchmarks.systems import SCRAPE, SCRAPE_WARM, Ground, Running, embedded

PARTS = ("fetch", "call", "warm", "job")
_LOADS = (1, 2, 4, 8, 16)
_NAMES = {
    "fetch": "fetch, so many at once",
    "call": "call, so many clients",
    "warm": "warm call, so many clients",
    "job": "item of a job of 1,000 times so many",
}
_FETCHES = 2_000
_CALL_SECONDS = 2.0
_ITEMS = 1_000
_SLOPE = 1.15

Say = Callable[[str], None]
Costs = dict[str, dict[int, list[float]]]
"""Milliseconds of processor time for one, by part and load, of every round."""


def run(options: Options, say: Say) -> Report:
    """Measure what was asked for, every load in every round."""
    costs: Costs = {part: {load: [] for load in _LOADS} for part in PARTS if options.wants(part)}
    failures: dict[str, str] = {}
    for number in range(options.rounds):
        say(f"round {number + 1} of {options.rounds}")
        for part in costs:
            try:
                _measure(part, costs[part], options, say)
            except (StartFailed, LoadFailed) as error:
                failures[part] = str(error)
    return Report(bench="growth", tables=(_table(costs),), goals=tuple(_goals(costs)), failures=failures)


def _measure(part: str, costs: dict[int, list[float]], options: Options, say: Say) -> None:
    if part == "fetch":
        with tempfile.TemporaryDirectory(prefix="scrapeyard-bench-") as folder, web.site(Path(folder)) as url:
            for load in _LOADS:
                say(f"{part}, {load} times")
                told = crawl("engine_crawl", url, pages=max(200, int(_FETCHES * options.pace)), concurrency=load)
                costs[load].append(1000 * told["cpu_seconds"] / told["pages"])
        return
    with _server(options, SCRAPE_WARM if part == "warm" else SCRAPE) as running:
        for load in _LOADS:
            say(f"{part}, {load} times")
            spend = _job if part == "job" else _calls
            spend(running, load, options)  # once unmeasured, so that what is made once is made
            before = _spent(running)
            count = spend(running, load, options)
            costs[load].append(1000 * (_spent(running) - before) / count)


@contextmanager
def _server(options: Options, body: str) -> Iterator[Running]:
    with tempfile.TemporaryDirectory(prefix="scrapeyard-bench-") as folder:
        ground = Ground(
            folder=Path(folder), redis_url="", postgres_url="", processes=options.processes, slots=options.slots
        )
        with embedded(ground, body=body) as running:
            yield running


def _calls(running: Running, load: int, options: Options) -> int:
    plan = Plan(target=running.target, clients=load, seconds=_CALL_SECONDS * options.pace, warmup_seconds=0.0)
    return drive(plan).answers


def _job(running: Running, load: int, options: Options) -> int:
    items = max(100, int(_ITEMS * load * options.pace))
    drain(running.target.port, items, "builtin/echo")
    return items


def _spent(running: Running) -> float:
    return sum(program.tree_seconds() for program in running.programs)


def _slope(costs: dict[int, list[float]]) -> float:
    """Of the total cost over the load, by least squares; NaN where a load was not measured."""
    points = [(math.log(load), math.log(load * median(found))) for load, found in costs.items() if found]
    if len(points) < len(_LOADS):
        return math.nan
    loads, totals = [load for load, _ in points], [total for _, total in points]
    return statistics.linear_regression(loads, totals).slope


def _table(costs: Costs) -> Table:
    rows = [
        (_NAMES[part], *(figure(median(found[load])) for load in _LOADS), figure(_slope(found)))
        for part, found in costs.items()
    ]
    return Table(
        title="Processor time of one, in ms, by the load",
        columns=("what", *(f"{load}x" for load in _LOADS), "slope"),
        rows=tuple(rows),
        note="The slope is that of the total cost over the load; 1.00 is linear.",
    )


def _goals(costs: Costs) -> Iterator[Goal]:
    for part, found in costs.items():
        yield Goal(name=f"slope: {part}", measured=_slope(found), bound=_SLOPE, at_least=False, unit="")
