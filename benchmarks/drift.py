"""How soon a changed template is noticed, and how often an unchanged one raises an alarm.

Patterns are learned from three answered pages of a site. Its other pages come in random order; then the template
changes: classes, wrappers, moved fields, removed fields. A break is a change after which the pattern reads a field that
most pages had differently on at least half of them. The pages are those of the bench `patterns`.
"""

import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.patterns import ANSWERED, _Site
from benchmarks.report import Goal, Options, Report, Table, figure
from scrapeyard.model.drift import WINDOW, DriftSketch, Sight, sights_of
from scrapeyard_sdk.extract.patterns import Example, Pattern, learn

PARTS = ("breaks", "mended", "unchanged", "speed")
BEFORE = 100
"""Pages before the change."""
LEAST_F1 = 0.9
UNCHANGED = 10_000
"""Pages of all sites together without a change."""
_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9]*)([^<>]*)>")
_NAMES = re.compile(rb"""\b(class|id|itemprop)\s*=\s*("[^"]*"|'[^']*'|[^\s>"']+)""", re.IGNORECASE)


def _renamed(html: bytes, _values: list[str]) -> bytes:
    """Every class and id has another name."""
    return _NAMES.sub(lambda found: found[1] + b'="z' + str(abs(hash(found[2])) % 10**8).encode() + b'"', html)


def _wrapped(html: bytes, _values: list[str]) -> bytes:
    """A box around the content of every cell, item, paragraph, heading and box."""
    names = (b"td", b"li", b"p", b"dd", b"h1", b"h2", b"h3", b"span", b"div")

    def box(tag: re.Match[bytes]) -> bytes:
        if tag[2].lower() not in names or tag[3].endswith(b"/"):
            return tag[0]
        return b"</div>" + tag[0] if tag[1] else tag[0] + b'<div class="w">'

    return _TAG.sub(box, html)


def _moved(html: bytes, values: list[str]) -> bytes:
    """The values stand at the end of the page, and others at their places."""
    return _replaced(html, values, "See below").replace(
        b"</body>", b"<div>" + b"".join(f"<p>{value}</p>".encode() for value in values) + b"</div></body>"
    )


def _removed(html: bytes, values: list[str]) -> bytes:
    return _replaced(html, values, "")


def _replaced(html: bytes, values: list[str], by: str) -> bytes:
    for value in sorted(values, key=len, reverse=True):
        if len(value) > 1:
            html = html.replace(value.encode(), by.encode())
    return html


Change = Callable[[bytes, list[str]], bytes]
"""Of a page whose values are known."""
MUTATIONS: dict[str, Change] = {
    "classes renamed": _renamed,
    "boxes added": _wrapped,
    "fields moved": _moved,
    "fields removed": _removed,
}


class _Watched:
    """A site with its pattern, and what that reads of each page."""

    def __init__(self, site: _Site) -> None:
        draw = random.Random(site.name)
        self._answered = draw.sample(sorted(site.truth), ANSWERED)
        self.rest = [page for page in sorted(site.truth) if page not in self._answered]
        self._site = site
        self.pattern: Pattern = self.learned(lambda html, _: html)
        self.read = {page: self.pattern.extract(site.pages[page]) for page in self.rest}

    def learned(self, change: Change) -> Pattern:
        """A pattern of three answered pages, after a change of the template."""
        truth = self._site.truth
        examples = [Example(html=self._page(page, change), values=dict(truth[page])) for page in self._answered]
        return learn(examples, [self._page(page, change) for page in self.rest])

    def mutated(self, change: Change, pattern: Pattern | None = None) -> dict[str, dict[str, Any]]:
        """What a pattern reads of each page after a change of the template."""
        return {page: (pattern or self.pattern).extract(self._page(page, change)) for page in self.rest}

    def f1(self, found: dict[str, dict[str, Any]]) -> float:
        """Over the fields."""
        return self._site._rates(found)["F1"]

    def _page(self, page: str, change: Change) -> bytes:
        values = [value for values in self._site.truth[page].values() for value in values]
        return change(self._site.pages[page], values)

    def broken(self, after: dict[str, dict[str, Any]]) -> list[str]:
        """Fields that most pages had and that are read differently on at least half of them."""
        found = []
        for name in self.pattern.fields:
            had = [page for page in self.rest if self.read[page][name] not in (None, [])]
            other = sum(after[page][name] != self.read[page][name] for page in had)
            if len(had) >= 0.5 * len(self.rest) and other >= 0.5 * len(had):
                found.append(name)
        return found


def run(options: Options, say: Callable[[str], None]) -> Report:
    """Breaks of each kind on each site, then pages without a change."""
    folder = os.environ.get("PATTERN_PAGES", "")
    sites = [_Site(each.parent) for each in sorted(Path(folder).glob("*/truth.json"))] if folder else []
    if not sites:
        say("left out; PATTERN_PAGES names no folder with sites")
        return Report(bench="drift", tables=())
    watched = [_Watched(site) for site in sites]
    say(f"{len(watched)} patterns learned")
    tables: list[Table] = []
    goals: list[Goal] = []
    if options.wants("breaks"):
        table, goal = _breaks(watched)
        tables.append(table)
        goals.append(goal)
    if options.wants("mended"):
        table, goal = _mended(watched)
        tables.append(table)
        goals.append(goal)
    if options.wants("unchanged"):
        goals.append(_unchanged(watched, say))
    if options.wants("speed"):
        goals.append(_speed(watched))
    return Report(bench="drift", tables=tuple(tables), goals=tuple(goals))


def _breaks(watched: list[_Watched]) -> tuple[Table, Goal]:
    counts: Counter[tuple[str, str]] = Counter()
    delays: list[int] = []
    for name, change in MUTATIONS.items():
        for site in watched:
            after = site.mutated(change)
            broken = site.broken(after)
            noticed = _noticed(site, after, random.Random(f"{name} {site.rest}")) if broken else {}
            delays += noticed.values()
            counts[name, "breaks"] += len(broken)
            counts[name, "noticed"] += sum(field in noticed for field in broken)
            counts[name, "sites"] += bool(broken)
            counts[name, "noticed sites"] += bool(noticed)
    columns = ("breaks", "noticed", "sites", "noticed sites")
    rows = tuple((name, *(str(counts[name, column]) for column in columns)) for name in MUTATIONS)
    breaks, seen = (sum(counts[name, column] for name in MUTATIONS) for column in ("breaks", "noticed"))
    mean = sum(delays) / len(delays) if delays else 0.0
    title = f"fields broken and noticed within {WINDOW} pages, after {mean:.1f} pages in the mean"
    goal = Goal(name="breaks noticed", measured=seen / breaks, bound=0.95, at_least=True, unit="")
    return Table(title=title, columns=("change", *columns), rows=rows), goal


def _mended(watched: list[_Watched]) -> tuple[Table, Goal]:
    """F1 of the sites that a change breaks: before it, after it, and with a pattern of three pages that were answered
    anew. Fields that are removed cannot be learned again."""
    rows, all_after = [], list[float]()
    for name in ("classes renamed", "boxes added", "fields moved"):
        change = MUTATIONS[name]
        broken = [(site, after) for site in watched if site.broken(after := site.mutated(change))]
        scores = [
            (site.f1(site.read), site.f1(after), site.f1(site.mutated(change, site.learned(change))))
            for site, after in broken
        ]
        means = [sum(each[number] for each in scores) / max(1, len(scores)) for number in range(3)]
        all_after += [each[2] for each in scores]
        low = sum(each[2] < LEAST_F1 for each in scores)
        rows.append((name, str(len(scores)), *(f"{mean:.3f}" for mean in means), str(low)))
    columns = ("change", "sites", "F1 before", "after it", "learned anew", f"sites below {LEAST_F1}")
    mean = sum(all_after) / max(1, len(all_after))
    goal = Goal(name="F1 learned anew", measured=mean, bound=LEAST_F1, at_least=True, unit="")
    return Table(title="F1 of broken sites", columns=columns, rows=tuple(rows)), goal


def _noticed(site: _Watched, after: dict[str, dict[str, Any]], draw: random.Random) -> dict[str, int]:
    """By field: pages after the change until it was noticed."""
    sketch = DriftSketch(version="1")
    for _ in range(BEFORE):
        sketch.add(sights_of(site.read[draw.choice(site.rest)]), 0.0)
    found: dict[str, int] = {}
    for number in range(WINDOW):
        for name in sketch.add(sights_of(after[draw.choice(site.rest)]), 0.0):
            found.setdefault(name, number + 1)
    return found


def _unchanged(watched: list[_Watched], say: Callable[[str], None]) -> Goal:
    pages = alarms = 0
    for site in watched:
        draw = random.Random(f"unchanged {site.rest}")
        sketch = DriftSketch(version="1")
        for _ in range(UNCHANGED // len(watched) + 1):
            pages += 1
            alarms += bool(sketch.add(sights_of(site.read[draw.choice(site.rest)]), 0.0))
    say(f"{alarms} false alarms in {pages} unchanged pages")
    return Goal(name="false alarms per unchanged page", measured=alarms / pages, bound=0.01, at_least=False, unit="")


def _speed(watched: list[_Watched]) -> Goal:
    """Milliseconds of a core for one page: what is kept of it, and the comparison."""
    sketch, results = DriftSketch(version="1"), list(watched[0].read.values())
    seen: list[dict[str, Sight]] = []
    began = time.process_time()
    for number in range(5000):
        seen = [sights_of(results[number % len(results)])]
        sketch.add(seen[0], 0.0)
    took = 1000 * (time.process_time() - began) / 5000
    return Goal(name="a page of four fields", measured=float(figure(took)), bound=1.0, at_least=False, unit=" ms")
