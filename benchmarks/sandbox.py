"""The sandbox alone, without HTTP, queue or store: how soon a child has run a no-op, and how many in a second.

The same measurements with every wall the kernel has and with none, by turns, beside the machine's own limit: the forks
per second of one bare warm parent (a scraper has one parent) and of one per worker process.
"""

import asyncio
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import uvloop
from msgspec import Raw, Struct

from benchmarks.forks import fork_limit
from benchmarks.quantiles import median, quantile
from benchmarks.report import Goal, Options, Report, Table, figure, ratio, spread
from benchmarks.systems import SCRAPERS
from scrapeyard.engines.browser.operations import AnyOperation
from scrapeyard.engines.browser.port import ContextOptions, Done
from scrapeyard.engines.port import FetchRequest, FetchResponse
from scrapeyard.errors import BadRequest, FetchFailed, SandboxError
from scrapeyard.model import ExitReason, Limits, LogLine, RunProgress, Scraper, ScraperRef, new_id
from scrapeyard.sandbox.handles.sandbox import ForkSandbox
from scrapeyard.sandbox.port import Sandbox, Verdict, Work
from scrapeyard.settings import LogSettings, SandboxSettings, WorkerSettings
from scrapeyard.telemetry.events import configure

PARTS = ("latency", "throughput")
Mode = Literal["auto", "off"]
MODES: tuple[Mode, ...] = ("auto", "off")
_SECONDS = 1.0
_WARM_RUNS = 10
_TICKS = os.sysconf("SC_CLK_TCK")


class Case(Struct, frozen=True, kw_only=True):
    """One thing to measure."""

    what: str
    part: str
    scraper: str = "noop"
    ahead: int = 2
    """Children forked ahead of need."""
    at_once: int = 1
    pause_seconds: float = 0.0
    """Between runs, so that the next child is there and no fork competes with a run."""


CASES = (
    Case(what="child forked ahead", part="latency", pause_seconds=0.01),
    Case(what="child forked ahead, async script", part="latency", scraper="noop-async", pause_seconds=0.01),
    Case(what="cold child", part="latency", ahead=0, pause_seconds=0.01),
    *(Case(what=f"{at_once} at once", part="throughput", at_once=at_once) for at_once in (1, 8, 32)),
)


class NoServices:
    """A no-op asks for nothing."""

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Refused."""
        raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, f"a benchmark fetches nothing: {request.url}")

    async def download(self, request: FetchRequest, name: str) -> FetchResponse:
        """Refused."""
        raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, f"a benchmark keeps nothing: {name}, {request.url}")

    async def open_browser(self, options: ContextOptions) -> int:
        """Refused."""
        raise FetchFailed(ExitReason.BROWSER_UNAVAILABLE, f"a benchmark opens nothing: {options}")

    async def browse(self, number: int, operation: AnyOperation, raw: bytes = b"") -> Done:
        """Refused."""
        raise FetchFailed(ExitReason.BROWSER_STEP, f"nothing is open: {number}, {operation}, {len(raw)} bytes")

    async def solve_widget(self, number: int, tab: int, seconds: float | None) -> str:
        """Refused."""
        raise FetchFailed(ExitReason.BROWSER_STEP, f"nothing is open: {number}, {tab}, {seconds}")

    async def solve_image(self, image: bytes) -> str:
        """Refused."""
        raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, f"a benchmark solves nothing: {len(image)} bytes")

    async def extract(self, given: dict[str, Any]) -> dict[str, Any]:
        """Refused."""
        raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, f"a benchmark extracts nothing: {len(given)} options")

    async def close_browser(self, number: int) -> None:
        """Nothing is open."""

    async def artifact(self, name: str, content_type: str, data: bytes) -> None:
        """Dropped."""

    def log(self, line: LogLine) -> None:
        """Dropped."""

    def progress(self, progress: RunProgress) -> None:
        """Dropped."""

    def enqueue(self, given: bytes, item_id: str) -> None:
        """Refused."""
        raise BadRequest(f"a benchmark adds nothing: {item_id}, {len(given)} bytes")

    async def read_state(self, key: str) -> bytes | None:
        """There is none."""

    async def change_state(self, key: str, value: bytes | None, old: bytes | None, compare: bool) -> bool:
        """Nothing is kept."""
        return (key, value, old, compare) is None


class Runs(Struct, frozen=True, kw_only=True):
    """Some seconds of no-ops."""

    run_ms: tuple[float, ...]
    start_ms: tuple[float, ...]
    forked_ahead: int
    seconds: float
    processor_ms: tuple[float, ...]
    """Of one run: of the worker, of the scraper's parent, of the child."""

    @property
    def per_second(self) -> float:
        """Runs ended in a second."""
        return len(self.run_ms) / self.seconds


class Figures:
    """What the rounds have gathered: by what was measured and by mode."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, Mode], list[Runs]] = {}
        self.forks: dict[int, list[float]] = {}

    def add(self, what: str, mode: Mode, runs: Runs) -> None:
        """Keep one measurement."""
        self.runs.setdefault((what, mode), []).append(runs)

    def run_ms(self, what: str, mode: Mode) -> float:
        """p50 of the whole run; NaN when not measured."""
        return median(quantile(sorted(runs.run_ms), 0.5) for runs in self.runs.get((what, mode), ()))

    def start_ms(self, what: str, mode: Mode) -> float:
        """p50 from asking for a child to a child holding the run."""
        return median(quantile(sorted(runs.start_ms), 0.5) for runs in self.runs.get((what, mode), ()))

    def per_second(self, what: str, mode: Mode) -> float:
        """Runs per second."""
        return median(runs.per_second for runs in self.runs.get((what, mode), ()))

    def processor_ms(self, what: str, mode: Mode) -> tuple[float, ...]:
        """Of a run in the round that took least: of the worker, the parent and the child."""
        return min((runs.processor_ms for runs in self.runs.get((what, mode), ())), key=sum, default=(math.nan,) * 3)

    def ahead(self, what: str, mode: Mode) -> float:
        """Share of runs whose child had been forked ahead, from 0 to 1."""
        runs = self.runs.get((what, mode), ())
        return ratio(sum(run.forked_ahead for run in runs), sum(len(run.run_ms) for run in runs))


def run(options: Options, say: Callable[[str], None]) -> Report:
    """Measure. A case whose sandbox does not start, or whose no-op does not succeed, is named in `failures`."""
    configure(LogSettings(level="error"))
    figures = Figures()
    failures: dict[str, str] = {}
    for _ in range(min(options.rounds, 2)):
        for parents in sorted({1, options.processes}):
            say(f"forks of {parents} bare warm parents")
            figures.forks.setdefault(parents, []).append(fork_limit(parents=parents, seconds=_SECONDS * options.pace))
        for case in (case for case in CASES if options.wants(case.part)):
            say(f"sandbox: {case.what}")
            for mode in MODES:
                _measure(figures, failures, case, mode, _SECONDS * options.pace)
    return _report(figures, failures, options)


def _measure(figures: Figures, failures: dict[str, str], case: Case, mode: Mode, seconds: float) -> None:
    try:
        figures.add(case.what, mode, uvloop.run(_case(case, mode, seconds)))
    except SandboxError as error:
        failures[f"{case.what}, walls {mode}"] = error.message


async def _case(case: Case, mode: Mode, seconds: float) -> Runs:
    sandbox = ForkSandbox(SandboxSettings(mode=mode), WorkerSettings(ahead=case.ahead), case.at_once)
    await sandbox.start()
    try:
        return await _runs(sandbox, case, seconds)
    finally:
        await sandbox.stop()


async def _runs(sandbox: ForkSandbox, case: Case, seconds: float) -> Runs:
    scraper = _scraper(case.scraper)
    for _ in range(_WARM_RUNS):
        await _one(sandbox, scraper)
    spent: list[tuple[float, Verdict]] = []
    until = time.perf_counter() + seconds

    async def keep_running() -> None:
        while (began := time.perf_counter()) < until:
            verdict = await _one(sandbox, scraper)
            spent.append((time.perf_counter() - began, verdict))
            if case.pause_seconds:
                await asyncio.sleep(case.pause_seconds)

    before, began = _processor_seconds(sandbox), time.perf_counter()
    await asyncio.gather(*(keep_running() for _ in range(case.at_once)))
    took, after = time.perf_counter() - began, _processor_seconds(sandbox)
    return Runs(
        run_ms=tuple(took * 1000 for took, _ in spent),
        start_ms=tuple(verdict.child_start_ms for _, verdict in spent),
        forked_ahead=sum(verdict.forked_ahead for _, verdict in spent),
        seconds=took,
        processor_ms=tuple(1000 * (now - then) / len(spent) for now, then in zip(after, before, strict=True)),
    )


def _processor_seconds(sandbox: ForkSandbox) -> tuple[float, ...]:
    """Of this process, of the parents, and of the children that they have reaped."""
    parents = children = 0.0
    for parent in sandbox._by_number.values():
        fields = Path(f"/proc/{parent.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        own, reaped = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        parents += own / _TICKS
        children += reaped / _TICKS
    return time.process_time(), parents, children


async def _one(sandbox: Sandbox, scraper: Scraper) -> Verdict:
    work = Work(run_id=new_id("run"), attempt=1, input=Raw(b"{}"), limits=scraper.limits)
    verdict = await sandbox.run(scraper, work, NoServices())
    if verdict.exit_reason is not ExitReason.SUCCEEDED:
        raise SandboxError(f"the no-op ended with {verdict.exit_reason}: {verdict.error}")
    return verdict


def _scraper(name: str) -> Scraper:
    ref = ScraperRef(id=f"bench/{name}", version="1.0.0", digest=name)
    return Scraper(ref=ref, folder=SCRAPERS / "bench" / name, limits=Limits(wall_seconds=5))


def _report(figures: Figures, failures: dict[str, str], options: Options) -> Report:
    return Report(
        bench="sandbox",
        tables=tuple(table for table in (_latency(figures), _throughput(figures)) if table.rows),
        goals=_goals(figures, options),
        failures=failures,
        numbers=_numbers(figures),
    )


def _measured(figures: Figures, part: str) -> list[tuple[str, Mode]]:
    whats = [case.what for case in CASES if case.part == part]
    return [(what, mode) for what in whats for mode in MODES if (what, mode) in figures.runs]


def _latency(figures: Figures) -> Table:
    rows = tuple(
        (
            what,
            mode,
            figure(figures.start_ms(what, mode)),
            figure(figures.run_ms(what, mode)),
            f"{figures.ahead(what, mode):.0%}",
        )
        for what, mode in _measured(figures, "latency")
    )
    return Table(
        title="The sandbox alone: one no-op after another",
        columns=("child", "walls", "child start p50 ms", "whole run p50 ms", "were forked ahead"),
        rows=rows,
    )


def _throughput(figures: Figures) -> Table:
    rows = tuple(
        (
            what,
            mode,
            figure(figures.per_second(what, mode)),
            figure(figures.run_ms(what, mode)),
            *map(figure, figures.processor_ms(what, mode)),
        )
        for what, mode in _measured(figures, "throughput")
    )
    limits = ", ".join(f"{spread(rates)} by {parents}" for parents, rates in sorted(figures.forks.items()))
    return Table(
        title="The sandbox alone: no-ops in a second, one scraper, one worker process",
        columns=("runs", "walls", "runs/s", "whole run p50 ms", "worker ms", "parent ms", "child ms"),
        rows=rows,
        note=f"The last three are processor time of a run. Forks a second of bare warm parents: {limits}.",
    )


def _goals(figures: Figures, options: Options) -> tuple[Goal, ...]:
    cold = figures.start_ms("cold child", "auto") - figures.start_ms("cold child", "off")
    rates = [figures.per_second(what, mode) for what, mode in _measured(figures, "throughput") if mode == "auto"]
    fastest = max(rates, default=math.nan)
    limit = median(figures.forks[options.processes])
    return (
        Goal(
            name="a no-op handed to a child forked ahead is answered",
            measured=figures.run_ms("child forked ahead", "auto"),
            bound=2,
            at_least=False,
            unit="ms",
        ),
        Goal(name="walls: added to the start of a cold child", measured=cold, bound=2, at_least=False, unit="ms"),
        Goal(name="throughput / fork limit", measured=ratio(fastest, limit), bound=0.5, at_least=True, aim=True),
    )


def _numbers(figures: Figures) -> dict[str, Any]:
    cases = {
        f"{what}, walls {mode}": {
            "start_p50_ms": figures.start_ms(what, mode),
            "run_p50_ms": figures.run_ms(what, mode),
            "per_second": figures.per_second(what, mode),
            "processor_ms": figures.processor_ms(what, mode),
            "forked_ahead": figures.ahead(what, mode),
        }
        for what, mode in figures.runs
    }
    return {"cases": cases, "forks_per_second": {str(parents): rates for parents, rates in figures.forks.items()}}
