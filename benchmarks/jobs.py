"""A job of a million items with a scraper that does nothing, from a list that is uploaded to files that can be opened.

Beside it a Celery group of no-op tasks with results, on the same machine in the same run: fewer of them, as a rate,
once before and once after, since a shared machine is not equally quick all the time.
With a pace below 1 (`--quick`) a job has 50,000 items.
"""

import contextlib
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from benchmarks import web
from benchmarks.core import Say, ground_of
from benchmarks.jobs_road import Road, drain, travel
from benchmarks.jobs_watch import Peaks, Times, interactive
from benchmarks.load import LoadFailed
from benchmarks.processes import ROOT, StartFailed, clean_environment
from benchmarks.quantiles import median
from benchmarks.report import Goal, Options, Report, Table, figure, ratio
from benchmarks.systems import Ground, Running, System, celery_workers, cluster, embedded

PARTS = ("embedded-job", "cluster-job", "script-job", "pages-job", "celery-group")
_SMALL = 10_000
_CORES = {"one core": ("taskset", "-c", "0"), "all cores": ()}
_FIRST_PAGES = 500
"""Unmeasured, so that the processes that read pages are there."""
_MORE_MB = 60
_SYSTEMS = (
    System(key="embedded", name="`up`, embedded", isolation="", start=embedded),
    System(key="cluster", name="Redis + PostgreSQL", isolation="", start=cluster),
)


class Sizes(Struct, frozen=True, kw_only=True):
    """How many items each part has."""

    items: int = 1_000_000
    drained: int = 200_000
    script: int = 50_000
    pages: int = 20_000
    celery: int = 5_000
    calls: int = 50


class Measured(Struct, frozen=True, kw_only=True):
    """One way to run the platform."""

    road: Road
    peaks: dict[str, float]
    """MB of each process at most, with all items."""
    small_peaks: dict[str, float]
    """With few."""
    idle: Times
    drained: float
    """Items a second of a job that was read before it ran."""


class Paged(Struct, frozen=True, kw_only=True):
    """A job of pages on some cores."""

    rate: float
    """Pages a second."""
    main_ms: float
    """Processor time of the main process for a page."""
    all_ms: float
    """The same of all its processes."""


class Figures(Struct, kw_only=True):
    """What the parts have gathered so far."""

    ways: dict[str, Measured] = field(default_factory=dict)
    scripts: dict[str, Road] = field(default_factory=dict)
    pages: dict[str, list[Paged]] = field(default_factory=dict)
    """By cores, one of every round."""
    celery_rates: list[float] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def celery(self) -> float:
        """Tasks a second, on average; not a number when it was not measured."""
        return statistics.fmean(self.celery_rates) if self.celery_rates else math.nan


def run(options: Options, say: Say) -> Report:
    """Measure what was asked for. A part that cannot be measured is named in `failures`; the others go on."""
    sizes = (
        Sizes()
        if options.pace >= 1
        else Sizes(items=50_000, drained=20_000, script=5_000, pages=2_000, celery=1_000, calls=20)
    )
    figures = Figures()
    with ground_of(options) as ground:
        _note_celery(figures, options, ground, sizes, say)
        for system in _SYSTEMS:
            if options.wants(f"{system.key}-job"):
                with _noting(figures, f"{system.key}-job"):
                    figures.ways[system.key] = _measured(system, ground, sizes, say)
            if options.wants("script-job"):
                say(f"{system.key}: {sizes.script:,} items of a script, a child for many of them")
                with _noting(figures, f"script-job, {system.key}"), system.start(ground) as running:
                    policy = {"isolation": "job"}
                    figures.scripts[system.key] = travel(running.target.port, sizes.script, "bench/noop", policy=policy)
        if options.wants("pages-job"):
            _note_pages(figures, ground, sizes, options.rounds, say)
        _note_celery(figures, options, ground, sizes, say)
    return _report(figures)


def _note_pages(figures: Figures, ground: Ground, sizes: Sizes, rounds: int, say: Say) -> None:
    """Turns of one core and all cores, so that a slow minute of the machine falls on both."""
    with _noting(figures, "pages-job"), tempfile.TemporaryDirectory() as folder, web.site(Path(folder)) as url:
        for _ in range(rounds):
            for cores, before in _CORES.items():
                say(f"{sizes.pages:,} pages on {cores}")
                allowed = {"SCRAPEYARD_HTTP__ALLOW_HOSTS": '["127.0.0.1"]'}
                with embedded(ground, extra=allowed, before=before) as running:
                    drain(running.target.port, _FIRST_PAGES, "builtin/page", site=url)
                    figures.pages.setdefault(cores, []).append(_paged(running, sizes.pages, url))


def _paged(running: Running, pages: int, url: str) -> Paged:
    (up,) = running.programs
    main, tree = up.processor_seconds(), up.tree_seconds()
    rate = drain(running.target.port, pages, "builtin/page", site=url)
    spent = up.processor_seconds() - main, up.tree_seconds() - tree
    return Paged(rate=rate, main_ms=1000 * spent[0] / pages, all_ms=1000 * spent[1] / pages)


def _note_celery(figures: Figures, options: Options, ground: Ground, sizes: Sizes, say: Say) -> None:
    if options.wants("celery-group"):
        say(f"Celery, {sizes.celery:,} tasks in groups")
        with _noting(figures, "celery-group"):
            figures.celery_rates.append(_celery(ground, sizes.celery))


@contextlib.contextmanager
def _noting(figures: Figures, part: str) -> Iterator[None]:
    try:
        yield
    except (StartFailed, LoadFailed) as error:
        figures.failures[part] = str(error)


def _measured(system: System, ground: Ground, sizes: Sizes, say: Say) -> Measured:
    """Two starts: the kernel keeps each process's peak for as long as it lives. A process of the small job lives so
    shortly that its peak is missed unless one looks often."""
    say(f"{system.key}: {_SMALL:,} items")
    with system.start(ground) as running, Peaks(running.programs, 0.02).watched() as small:
        travel(running.target.port, _SMALL, ask=True)
    say(f"{system.key}: {sizes.items:,} items")
    with system.start(ground) as running:
        port = running.target.port
        idle = interactive(port, sizes.calls)
        with Peaks(running.programs).watched() as large:
            road = travel(port, sizes.items, ask=True)
        say(f"{system.key}: {sizes.drained:,} items, read before they run")
        drained = drain(port, sizes.drained, "builtin/echo")
    return Measured(road=road, peaks=large.rss_mb, small_peaks=small.rss_mb, idle=idle, drained=drained)


def _celery(ground: Ground, tasks: int) -> float:
    env, worker = celery_workers(ground, prefetch=64)
    with worker:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.peers.celery_group", str(tasks)],
            env=clean_environment() | env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    if done.returncode:
        raise LoadFailed(f"Celery: {done.stderr[-1000:]}")
    return float(done.stdout)


def _report(figures: Figures) -> Report:
    tables = (_stages(figures), _pages(figures), _answers(figures), _memory(figures))
    return Report(
        bench="jobs",
        tables=tuple(table for table in tables if table.rows),
        goals=_goals(figures),
        failures=figures.failures,
        numbers=_numbers(figures),
    )


def _stages(figures: Figures) -> Table:
    rows = []
    roads = {system.name: figures.ways[system.key].road for system in _SYSTEMS if system.key in figures.ways}
    scripts = {f"{s.name}, script": figures.scripts[s.key] for s in _SYSTEMS if s.key in figures.scripts}
    for name, road in (roads | scripts).items():
        stages = (road.upload, road.ran, road.manifest, *(road.exports[kind] for kind in ("csv", "xlsx", "parquet")))
        rates = [figure(road.per_second(seconds)) for seconds in stages]
        rows.append((f"{name}, {road.items:,}", *rates, figure(road.per_second(road.whole)), figure(road.whole)))
    if not math.isnan(figures.celery):
        rows.append(("Celery group", "", figure(figures.celery), "", "", "", "", figure(figures.celery), ""))
    return Table(
        title="A job of no-op items, items/s",
        columns=("", "upload", "run", "manifest", "CSV", "XLSX", "Parquet", "end to end", "seconds"),
        rows=tuple(rows),
        note="Items are read and run at the same time; a script's items run in children that serve many of them.",
    )


def _pages(figures: Figures) -> Table:
    rows = [
        (
            cores,
            figure(median([each.rate for each in found])),
            figure(median([each.main_ms for each in found])),
            figure(median([each.all_ms for each in found])),
        )
        for cores, found in figures.pages.items()
    ]
    columns = ("`up` on", "pages/s", "main process, ms", "all processes, ms")
    note = "Milliseconds are processor time for a page of 18 KB, read by `builtin/page`."
    return Table(title="A job of pages of one own site", columns=columns, rows=tuple(rows), note=note)


def _worst_gain(figures: Figures) -> float:
    """Of the rounds: pages a second on all cores, beside those on one."""
    pairs = zip(figures.pages.get("all cores", ()), figures.pages.get("one core", ()), strict=False)
    return min((ratio(more.rate, one.rate) for more, one in pairs), default=math.nan)


def _answers(figures: Figures) -> Table:
    rows = []
    for system in _SYSTEMS:
        if (way := figures.ways.get(system.key)) is not None:
            named = {"a call, nothing else going on": way.idle, **way.road.seen}
            rows += [
                (f"{system.name}: {name}", *(figure(ms) for ms in (seen.p50_ms, seen.p95_ms, seen.max_ms)))
                for name, seen in named.items()
            ]
    columns = ("answers while the job goes on", "p50 ms", "p95 ms", "max ms")
    return Table(title="Looking and calling meanwhile", columns=columns, rows=tuple(rows))


def _memory(figures: Figures) -> Table:
    rows = []
    for way in figures.ways.values():
        for name, peak in sorted(way.peaks.items()):
            small = way.small_peaks.get(name, math.nan)
            rows.append((name, figure(small), figure(peak), figure(peak - small)))
    columns = ("process", f"{_SMALL:,} items", "all items", "more")
    return Table(title="Peak memory, RSS MB", columns=columns, rows=tuple(rows))


def _goals(figures: Figures) -> tuple[Goal, ...]:
    goals = []
    for system in _SYSTEMS:
        key, way, script = system.key, figures.ways.get(system.key), figures.scripts.get(system.key)
        if way is not None:
            end_to_end = ratio(way.road.per_second(way.road.whole), figures.celery)
            goals.append(Goal(name=f"{key}: end to end / Celery", measured=end_to_end, bound=20, at_least=True))
            goals += _quick(key, way)
        if script is not None:
            rate = ratio(script.per_second(script.whole), figures.celery)
            goals.append(Goal(name=f"{key}: script / Celery", measured=rate, bound=5, at_least=True))
    if (way := figures.ways.get("cluster")) is not None:
        name = "cluster: enqueue to done"
        goals.append(Goal(name=name, measured=way.drained, bound=10_000, at_least=True, unit="items/s", aim=True))
    if figures.pages:
        gain = _worst_gain(figures)
        goals.append(Goal(name="pages: all cores / one core, worst round", measured=gain, bound=1.7, at_least=True))
    return tuple(goals)


def _quick(key: str, way: Measured) -> list[Goal]:
    """What must stay small: memory, and the time of answers."""
    both = way.peaks.keys() & way.small_peaks.keys()  # not what only a large job has
    grown = max((way.peaks[name] - way.small_peaks[name] for name in both), default=math.nan)
    seen = way.road.seen
    called = ratio(seen["interactive"].p50_ms, way.idle.p50_ms)
    return [
        Goal(name=f"{key}: memory grows by", measured=grown, bound=_MORE_MB, at_least=False, unit="MB"),
        *(
            Goal(name=f"{key}: {name}, p50", measured=seen[name].p50_ms, bound=20, at_least=False, unit="ms")
            for name in ("status", "items", "filtered")
        ),
        Goal(name=f"{key}: a call meanwhile / idle, p50", measured=called, bound=3, at_least=False),
    ]


def _numbers(figures: Figures) -> dict[str, Any]:
    return {
        "ways": figures.ways,
        "scripts": figures.scripts,
        "pages": figures.pages,
        "celery_per_second": figures.celery_rates,
    }
