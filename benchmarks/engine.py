"""The HTTP engine beside wrk, Scrapy and Crawlee: one process each, the same page from nginx on loopback."""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from benchmarks import web
from benchmarks.processes import ROOT, StartFailed, clean_environment
from benchmarks.quantiles import median
from benchmarks.report import Goal, Options, Report, Table, figure, ratio

PARTS = (
    *("wrk", "bare", "engine", "fields", "child", "scrapy", "scrapy-fields", "scrapy-child", "scrapy-child-fields"),
    *("crawlee", "crawlee-fields", "cost", "memory"),
)
_CONCURRENCY = 32
_SECONDS = 3.0

Say = Callable[[str], None]


class Crawl(Struct, frozen=True, kw_only=True):
    """One program of the comparison."""

    part: str
    name: str
    module: str
    pages: int
    extract: bool = False


CRAWLS = (
    Crawl(part="bare", name="wreq alone", module="bare_crawl", pages=20_000),
    Crawl(part="engine", name="Scrapeyard's engine", module="engine_crawl", pages=10_000),
    Crawl(part="fields", name="Scrapeyard's engine, fields read", module="engine_crawl", pages=4_000, extract=True),
    Crawl(part="child", name="Scrapeyard, `ctx.fetch` in a child", module="child_crawl", pages=10_000),
    Crawl(part="scrapy", name="Scrapy", module="scrapy_crawl", pages=600),
    Crawl(part="scrapy-fields", name="Scrapy, fields read", module="scrapy_crawl", pages=300, extract=True),
    Crawl(part="scrapy-child", name="the Scrapy spider as a scraper", module="scrapy_child", pages=600),
    Crawl(
        part="scrapy-child-fields",
        name="the Scrapy spider as a scraper, fields read",
        module="scrapy_child",
        pages=300,
        extract=True,
    ),
    Crawl(part="crawlee", name="Crawlee", module="crawlee_crawl", pages=1_500),
    Crawl(part="crawlee-fields", name="Crawlee, fields read", module="crawlee_crawl", pages=400, extract=True),
)
_FLAT_PAGES = 200_000
_COST_PAGES = 14_000
_COSTS = {"bare": "wreq alone", "client": "Scrapeyard's client alone", "engine": "Scrapeyard's engine"}


class Figures:
    """What the rounds have gathered."""

    def __init__(self) -> None:
        self.rates: dict[str, list[float]] = {}
        self.latency: dict[str, list[float]] = {}
        self.grown_mb = float("nan")
        self.costs: list[dict[str, float]] = []
        self.child_costs: list[dict[str, float]] = []
        self.failures: dict[str, str] = {}

    def rate(self, part: str) -> float:
        """Pages a second, median of the rounds; NaN when not measured."""
        return median(self.rates.get(part, ()))

    def cost(self, name: str) -> float:
        """One figure of what a fetch costs, median of the rounds; NaN when not measured."""
        return median([told[name] for told in self.costs])

    def least(self, name: str) -> float:
        """One figure of what a fetch of a script costs, the lowest of the rounds; NaN when not measured."""
        return min((told[name] for told in self.child_costs), default=float("nan"))

    def added_ms(self) -> float:
        """What the stages add to one fetch after another."""
        return median(self.latency.get("engine", ())) - median(self.latency.get("bare", ()))


def run(options: Options, say: Say) -> Report:
    """Measure what was asked for; programs take turns, so that a slow minute of the machine falls on all."""
    figures = Figures()
    with contextlib.ExitStack() as stack, _noting(figures, "nginx"):
        url = stack.enter_context(_served())
        for number in range(options.rounds):
            say(f"round {number + 1} of {options.rounds}")
            _round(figures, url, options, say)
        if options.wants("memory"):
            with _noting(figures, "memory"):
                pages = int(_FLAT_PAGES * min(1.0, options.pace))
                say(f"memory over {pages:,} fetches")
                figures.grown_mb = crawl("engine_crawl", url, pages=pages)["grown_mb"]
    return _report(figures)


@contextlib.contextmanager
def _served() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="scrapeyard-bench-") as folder, web.site(Path(folder)) as url:
        yield url


@contextlib.contextmanager
def _noting(figures: Figures, part: str) -> Iterator[None]:
    try:
        yield
    except StartFailed as error:
        figures.failures[part] = str(error)


def _round(figures: Figures, url: str, options: Options, say: Say) -> None:
    if options.wants("wrk"):
        say("wrk")
        with _noting(figures, "wrk"):
            rate = web.wrk(url, connections=_CONCURRENCY, seconds=_SECONDS * options.pace)
            figures.rates.setdefault("wrk", []).append(rate)
    for each in CRAWLS:
        if options.wants(each.part) and each.part not in figures.failures:
            say(each.name)
            with _noting(figures, each.part):
                told = crawl(each.module, url, pages=max(100, int(each.pages * options.pace)), extract=each.extract)
                figures.rates.setdefault(each.part, []).append(told["pages"] / told["seconds"])
                if "child_us" in told:
                    figures.child_costs.append(told)
                if "p50_ms" in told:
                    figures.latency.setdefault(each.part, []).append(told["p50_ms"])

    if options.wants("cost") and "cost" not in figures.failures:
        say("the cost of a fetch")
        with _noting(figures, "cost"):
            figures.costs.append(crawl("fetch_cost", url, pages=max(1400, int(_COST_PAGES * options.pace))))


def crawl(
    module: str, url: str, *, pages: int, extract: bool = False, concurrency: int = _CONCURRENCY
) -> dict[str, float]:
    """Run one program of the comparison; what it printed. Raises StartFailed."""
    argv = [sys.executable, "-m", f"benchmarks.peers.{module}", url, "--pages", str(pages)]
    argv += ["--concurrency", str(concurrency), *(["--extract"] if extract else [])]
    done = subprocess.run(
        argv, capture_output=True, text=True, cwd=ROOT, env=clean_environment(), timeout=600, check=False
    )
    try:
        told: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise StartFailed(f"{module} ended with {done.returncode}: {done.stderr[-800:]}") from None
    if told["pages"] < pages:
        raise StartFailed(f"{module} got {told['pages']:.0f} of {pages} pages: {done.stderr[-800:]}")
    return told


def _report(figures: Figures) -> Report:
    names = {"wrk": "wrk, one thread", **{crawl.part: crawl.name for crawl in CRAWLS}}
    rows = tuple((name, figure(figures.rate(part), "")) for part, name in names.items())
    table = Table(
        title="One page of 18 KB from nginx on loopback, 32 at once, one process",
        columns=("program", "pages/s"),
        rows=rows,
        note=f"One after another, the engine's stages add {figure(figures.added_ms(), 'ms')} to wreq alone.",
    )
    return Report(
        bench="engine",
        tables=(table, _cost_table(figures), _child_table(figures)),
        goals=tuple(_goals(figures)),
        failures=figures.failures,
    )


def _cost_table(figures: Figures) -> Table:
    columns = ("us", "loop_us", "wall_us", "calls")
    rows = tuple(
        (name, *(figure(figures.cost(f"{part}_{column}"), "") for column in columns)) for part, name in _COSTS.items()
    )
    return Table(
        title="What one fetch costs, the three in turns in one process",
        columns=("program", "µs of processor", "of it in the event loop", "µs by the clock", "calls in Python"),
        rows=rows,
    )


def _child_table(figures: Figures) -> Table:
    columns = ("worker, all threads", "of it in the event loop", "child")
    row = tuple(figure(figures.least(name), "") for name in ("us", "loop_us", "child_us"))
    return Table(
        title="What one `ctx.fetch` costs through a child, µs of processor, the lowest of the rounds",
        columns=("", *columns),
        rows=(("`ctx.fetch`", *row),),
    )


def _goals(figures: Figures) -> Iterator[Goal]:
    rate = figures.rate
    for name, top, bottom, bound in (
        ("engine / wrk", "engine", "wrk", 0.4),
        ("engine / wreq alone", "engine", "bare", 0.55),
        ("through a child / wreq alone", "child", "bare", 0.4),
        ("engine / Scrapy", "engine", "scrapy", 15),
        ("engine / Crawlee", "engine", "crawlee", 15),
        ("engine / Scrapy, fields read", "fields", "scrapy-fields", 8),
        ("through a child / Scrapy", "child", "scrapy", 3),
        ("a Scrapy spider as a scraper / Scrapy", "scrapy-child", "scrapy", 0.8),
        ("a Scrapy spider as a scraper / Scrapy, fields read", "scrapy-child-fields", "scrapy-fields", 0.8),
    ):
        yield Goal(name=name, measured=ratio(rate(top), rate(bottom)), bound=bound, at_least=True)
    costs = ratio(figures.cost("bare_wall_us"), figures.cost("engine_wall_us"))
    yield Goal(name="engine / wreq alone, in turns in one process", measured=costs, bound=0.55, at_least=True)
    yield Goal(name="added by the stages, p50", measured=figures.added_ms(), bound=0.3, at_least=False, unit="ms")
    yield Goal(name="memory grown over 200,000 fetches", measured=figures.grown_mb, bound=20, at_least=False, unit="MB")
