"""`scrapeyard crawl` beside Scrapy: the whole of one local site into a CSV file, from the start of the program to its
end, politeness off."""

import csv
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import web
from benchmarks.processes import ROOT, StartFailed, clean_environment
from benchmarks.quantiles import median
from benchmarks.report import Goal, Options, Report, Table, figure, ratio

PARTS = ("crawl", "scrapy", "small")
PAGES = 5000
SMALL = 50
_CONCURRENCY = 32
_FAN = 10
_WORDS = "A kettle of enamelled steel, easy to clean, with a handle that stays cool and a whistle that is heard. "

Say = Callable[[str], None]
Spent = tuple[float, float]
"""Seconds on the wall, and of the processor in all processes of the program."""


def pages(count: int) -> dict[str, str]:
    """A tree of pages with a menu on each; the home page is `page.html`."""
    return {"page.html" if number == 0 else f"p{number}.html": _page(number, count) for number in range(count)}


def _page(number: int, count: int) -> str:
    menu = "".join(f'<li><a href="/p{other}.html">Shelf {other}</a></li>' for other in range(1, min(21, count)))
    below = range(_FAN * number + 1, min(_FAN * number + _FAN + 1, count))
    links = "".join(f'<p>{_WORDS * 3}<a href="/p{other}.html">Kettle {other}</a></p>' for other in below)
    head = (
        f'<title>Kettle {number}</title><meta name="description" content="Kettle no. {number}.">'
        f'<link rel="canonical" href="/p{number}.html">'
    )
    body = f'<nav><ul><li><a href="/">Home</a></li>{menu}</ul></nav><h1>Kettle {number}</h1>{links}'
    text = "".join(f"<p>Kettle {number}, part {part}. {_WORDS * 4}</p>" for part in range(8))
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}{text}</body></html>'


def run(options: Options, say: Say) -> Report:
    """Measure what was asked for, in turns."""
    count = max(SMALL, int(PAGES * min(1.0, options.pace)))
    spent: dict[str, list[Spent]] = {}
    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="scrapeyard-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # nginx reads as another user
        try:
            with web.site(folder / "large", pages(count)) as large, web.site(folder / "small", pages(SMALL)) as small:
                work = {
                    "crawl": lambda: _timed(_scrapeyard(large, folder / "ours.csv"), folder / "ours.csv", count),
                    "scrapy": lambda: _timed(_scrapy(large, folder / "theirs.csv"), folder / "theirs.csv", count),
                    "small": lambda: _timed(_scrapeyard(small, folder / "small.csv"), folder / "small.csv", SMALL),
                }
                for number in range(options.rounds):
                    for part in filter(options.wants, PARTS):
                        say(f"round {number + 1} of {options.rounds}: {part}")
                        spent.setdefault(part, []).append(work[part]())
                if options.wants("crawl") and options.wants("scrapy"):
                    _compare(folder / "ours.csv", folder / "theirs.csv")
        except StartFailed as error:
            failures["crawl"] = str(error)
    return _report(count, spent, failures)


def _scrapeyard(url: str, file: Path) -> list[str]:
    program = str(Path(sys.executable).with_name("scrapeyard"))
    polite = ["--ignore-robots", "--no-sitemap", "--rate", "0", "--allow-private"]
    return [program, "crawl", url, "-o", str(file), "--depth", "50", "--limit", "100000", "--formats", "", *polite]


def _scrapy(url: str, file: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.peers.scrapy_site", url, str(file), str(_CONCURRENCY)]


def _timed(argv: list[str], file: Path, count: int) -> Spent:
    file.unlink(missing_ok=True)
    began, used = time.perf_counter(), _processor_seconds()
    done = subprocess.run(
        argv, capture_output=True, text=True, cwd=ROOT, env=clean_environment(), timeout=900, check=False
    )
    took, used = time.perf_counter() - began, _processor_seconds() - used
    found = len(_urls(file)) if file.exists() else 0
    if done.returncode or found < count:
        raise StartFailed(f"{argv[:4]} got {found} of {count} pages: {done.stderr[-800:]}")
    return took, used


def _processor_seconds() -> float:
    """Of every program that was started here and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _urls(file: Path) -> set[str]:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        return {row["url"] for row in csv.DictReader(stream)}


def _compare(ours: Path, theirs: Path) -> None:
    different = _urls(ours) ^ _urls(theirs)
    if different:
        raise StartFailed(f"the two crawls found different pages: {sorted(different)[:5]}")


def _report(count: int, spent: dict[str, list[Spent]], failures: dict[str, str]) -> Report:
    took = {part: median([wall for wall, _ in spent.get(part, ())]) for part in PARTS}
    used = {part: median([processor for _, processor in spent.get(part, ())]) for part in PARTS}
    names = {"crawl": "scrapeyard crawl", "scrapy": "Scrapy", "small": f"scrapeyard crawl, {SMALL} pages"}
    numbers = {"crawl": count, "scrapy": count, "small": SMALL}
    rows = tuple(
        (name, figure(numbers[part] / took[part], ""), figure(took[part], "s"), figure(used[part], "s"))
        for part, name in names.items()
    )
    table = Table(
        title=f"A site of {count:,} pages from nginx on loopback into a CSV file, with the start of the program",
        columns=("program", "pages/s", "time", "processor time"),
        rows=rows,
        note="The same set of URLs, the same fields, politeness off.",
    )
    return Report(bench="crawl", tables=(table,), goals=tuple(_goals(took, used)), failures=failures)


def _goals(took: dict[str, float], used: dict[str, float]) -> Iterator[Goal]:
    times = ratio(took["scrapy"], took["crawl"])
    yield Goal(name="crawl / Scrapy", measured=times, bound=4, at_least=True)
    less = ratio(used["scrapy"], used["crawl"])
    yield Goal(name="crawl / Scrapy, by processor time", measured=less, bound=4, at_least=True)
    yield Goal(name=f"crawl of {SMALL} pages", measured=took["small"], bound=2, at_least=False, unit="s")
