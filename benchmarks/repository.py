"""The repository on the hot path and at rest: what a range costs to resolve, and what an unchanged source costs to ask.

Resolving is measured beside `packaging`, the library that pip compares versions with, over the same versions in memory:
parse the range, filter, take the newest. The unchanged refresh is that of a whole catalogue over a real HTTP server.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from benchmarks.quantiles import median, quantile
from benchmarks.report import Goal, Options, Report, Table, figure, ratio, spread
from scrapeyard.model import Limits, Scraper, ScraperRef
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue, Upkeep
from scrapeyard.repository.catalogue.entries import Stock, VersionEntry
from scrapeyard.repository.catalogue.loading import LoadTerms
from scrapeyard.repository.catalogue.resolve import Index
from scrapeyard.repository.publish.publish import pack_scraper
from scrapeyard.repository.sources.indexed.source import http_source
from scrapeyard.repository.sources.port import Release
from scrapeyard.settings import LogSettings, SourceSettings
from scrapeyard.telemetry.events import configure

PARTS = ("resolve", "refresh")
SCRAPERS = 1000
VERSIONS = 20
WANTED = "^1.2"
_PEER_WANTED = ">=1.2,<2"


class Refreshes(Struct, frozen=True, kw_only=True):
    """What asking an unchanged source cost, one round."""

    bytes_sent: float
    """By the server: heads and bodies."""
    archives: int
    ms: float


class Figures:
    """What the rounds have gathered."""

    def __init__(self) -> None:
        self.micros: dict[str, list[float]] = {}
        self.refreshes: list[Refreshes] = []

    def p50(self, what: str) -> float:
        """Microseconds; NaN when not measured."""
        return median(self.micros.get(what, ()))

    def refresh(self, field: str) -> float:
        """The median of one figure of the refreshes; NaN when not measured."""
        return median(float(getattr(each, field)) for each in self.refreshes)


def run(options: Options, say: Callable[[str], None]) -> Report:
    """Measure. A server that does not start is named in `failures`."""
    configure(LogSettings(level="error"))
    figures = Figures()
    failures: dict[str, str] = {}
    for _ in range(options.rounds):
        if options.wants("resolve"):
            say(f"resolving {WANTED} among {SCRAPERS} scrapers of {VERSIONS} versions")
            _resolve(figures)
        if options.wants("refresh"):
            say(f"refreshing an unchanged HTTP index of {SCRAPERS} scrapers")
            try:
                figures.refreshes.append(asyncio.run(_refresh()))
            except OSError as error:
                failures["refresh"] = str(error)
    return _report(figures, failures)


def _resolve(figures: Figures) -> None:
    names = [f"site-{number}/task" for number in range(SCRAPERS)]
    versions = [f"{1 + minor // 15}.{minor % 15}.{minor % 3}" for minor in range(VERSIONS)]
    index = _index(names, versions)
    wanted = [f"{name}@{WANTED}" for name in names]
    peers = {name: [Version(version) for version in versions] for name in names}

    def peer(name: str) -> Version:
        return max(SpecifierSet(_PEER_WANTED).filter(peers[name]))

    agreed = index.resolve(wanted[0]).ref.version, str(peer(names[0]))
    if agreed[0] != agreed[1]:
        raise AssertionError(f"resolved differently: {agreed}")
    index = _index(names, versions)
    figures.micros.setdefault("first", []).append(_p50(index.resolve, wanted))
    figures.micros.setdefault("again", []).append(_p50(index.resolve, wanted))
    figures.micros.setdefault("packaging", []).append(_p50(peer, names))


def _index(names: list[str], versions: list[str]) -> Index:
    return Index({}, [Stock(source="bench", families={name: _family(name, versions) for name in names})])


def _family(name: str, versions: list[str]) -> tuple[VersionEntry, ...]:
    entries = []
    for version in versions:
        scraper = Scraper(ref=ScraperRef(id=name, version=version, digest="0" * 64), folder=Path("copy"))
        entries.append(VersionEntry(release=Release(id=name, version=version, mark="", place=version), scraper=scraper))
    return tuple(entries)


def _p50(do: Callable[[str], Any], names: list[str]) -> float:
    """Microseconds of one call, each name once."""
    spent = []
    for name in names:
        began = time.perf_counter_ns()
        do(name)
        spent.append((time.perf_counter_ns() - began) / 1000)
    return quantile(sorted(spent), 0.5)


async def _refresh() -> Refreshes:
    from tests.services.static_site import StaticSite

    with tempfile.TemporaryDirectory(prefix="scrapeyard-bench-") as folder:
        site = Path(folder) / "site"
        await asyncio.to_thread(_write_site, site, Path(folder) / "work")
        server = StaticSite(site).start()
        try:
            source = http_source(SourceSettings(type="http", url=server.url), 60)
            upkeep = Upkeep(poll_seconds=3600, versions=1, start_seconds=300)
            catalogue = SourcedCatalogue(
                [source], Path(folder) / "cache" / "scrapers", {}, LoadTerms(ceiling=Limits()), upkeep
            )
            return await _measured(catalogue, server)
        finally:
            server.stop()


async def _measured(catalogue: SourcedCatalogue, server: Any) -> Refreshes:
    await catalogue.start()
    try:
        usable = sum(listing.scraper is not None for listing in catalogue.listings())
        if usable != SCRAPERS:
            raise OSError(f"only {usable} of {SCRAPERS} scrapers came: {catalogue.sources()[0].stale}")
        server.forget()
        began = time.perf_counter()
        await catalogue.refresh()
        ms = (time.perf_counter() - began) * 1000
        archives = sum(not path.endswith(".json") for path in server.paths())
        return Refreshes(bytes_sent=server.sent, archives=archives, ms=ms)
    finally:
        await catalogue.stop()


def _write_site(site: Path, work: Path) -> None:
    """An index of 1,000 scrapers with ten versions each; only the newest are there, since only they are fetched."""
    scrapers: dict[str, Any] = {}
    for number in range(SCRAPERS):
        name = f"site-{number}/task"
        parcel = pack_scraper(_write_scraper(work / str(number), name), work / f"packed-{number}", Limits())
        target = site / parcel.entry.archive
        target.parent.mkdir(parents=True)
        parcel.file.rename(target)
        older = {f"1.{minor}.0": parcel.entry for minor in range(9)}
        scrapers[name] = {"versions": {**older, "1.9.0": parcel.entry}}
    (site / "index.json").write_bytes(msgspec.json.encode({"schema": 1, "scrapers": scrapers}))


def _write_scraper(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "scraper.toml").write_text(f'id = "{name}"\nversion = "1.9.0"\n')
    (folder / "scraper.py").write_text("async def run(ctx, url: str):\n    return url\n")
    return folder


def _report(figures: Figures, failures: dict[str, str]) -> Report:
    first, again, peer = figures.p50("first"), figures.p50("again"), figures.p50("packaging")
    rows = tuple(
        (name, f"{spread(figures.micros.get(key, ()))} µs", figure(ratio(peer, figures.p50(key)), "x"))
        for name, key in (
            ("Scrapeyard, a name for the first time", "first"),
            ("Scrapeyard, a name again", "again"),
            ("packaging: parse, filter, max", "packaging"),
        )
    )
    kilobytes = figures.refresh("bytes_sent") / 1000
    return Report(
        bench="repository",
        tables=(
            Table(
                title=f"Resolving {WANTED} among {SCRAPERS:,} scrapers of {VERSIONS} versions",
                columns=("", "p50", "as fast"),
                rows=rows,
            ),
            Table(
                title=f"An unchanged HTTP index of {SCRAPERS:,} scrapers with ten versions each",
                columns=("sent by the server", "archives", "time"),
                rows=(
                    (
                        figure(kilobytes, "KB"),
                        figure(figures.refresh("archives")),
                        figure(figures.refresh("ms"), "ms"),
                    ),
                ),
            ),
        ),
        goals=(
            Goal(name="resolving, p50", measured=first, bound=20, at_least=False, unit="µs"),
            Goal(name="resolving, beside packaging", measured=ratio(peer, first), bound=1, at_least=True),
            Goal(name="unchanged refresh", measured=kilobytes, bound=100, at_least=False, unit="KB"),
            Goal(name="archives fetched", measured=figures.refresh("archives"), bound=0, at_least=False, unit=""),
        ),
        failures=failures,
        numbers={
            "resolve_us": {"first": first, "again": again, "packaging": peer},
            "refresh": [msgspec.to_builtins(each) for each in figures.refreshes],
        },
    )
