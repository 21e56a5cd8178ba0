"""Patterns learned from three answered pages of a site, tried on its other pages.

The pages are other people's and do not come with the project. PATTERN_PAGES names a folder with a folder for each site:
`truth.json` (page → field → values) and the pages as `PAGE.htm`, the layout of the SWDE data set.
"""

import json
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.report import Goal, Options, Report, Table, figure
from scrapeyard_sdk.extract.patterns import Example, learn
from scrapeyard_sdk.extract.patterns.template import marks, templates_of
from scrapeyard_sdk.extract.patterns.tree import PageTree, fold

NOISE = {"clean": 0.0, "noise 10 %": 0.1, "noise 20 %": 0.2, "noise 20 %, answered pages alone": 0.2}
PARTS = (*NOISE, "templates")
ALONE = "answered pages alone"
"""Without the pages that nobody answered."""
ANSWERED = 3
"""Pages of a site whose values are given."""
DRAWS = 3
"""How often they are drawn anew."""
Truth = dict[str, dict[str, list[str]]]


class _Site:
    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.truth: Truth = json.loads((folder / "truth.json").read_text("utf-8"))
        self.pages = {page: (folder / page).with_suffix(".htm").read_bytes() for page in self.truth}

    def score(self, noise: float, *, alone: bool) -> dict[str, float]:
        """Precision, recall and F1 over the fields, seconds to learn, pages and megabytes per second: means of the
        draws, and the longest time to learn."""
        every = [self._score(noise, number, alone=alone) for number in range(DRAWS)]
        means = {name: sum(each[name] for each in every) / DRAWS for name in every[0]}
        return means | {"learn": max(each["learn"] for each in every)}

    def _score(self, noise: float, number: int, *, alone: bool) -> dict[str, float]:
        draw = random.Random(f"{self.name} {noise} {number}")
        answered = draw.sample(sorted(self.truth), ANSWERED)
        rest = [page for page in sorted(self.truth) if page not in answered]
        examples = [Example(html=self.pages[page], values=self._answers(page, noise, draw)) for page in answered]
        began = time.process_time()
        pattern = learn(examples, [] if alone else [self.pages[page] for page in rest])
        learned = time.process_time()
        found = {page: pattern.extract(self.pages[page]) for page in rest}
        took = time.process_time() - learned
        size = sum(len(self.pages[page]) for page in rest)
        rates = {"learn": learned - began, "pages": len(rest) / took, "megabytes": size / took / 1e6}
        return self._rates(found) | rates

    def _answers(self, page: str, noise: float, draw: random.Random) -> dict[str, Any]:
        """The truth, of which a share is missing or another text of the page."""
        answers: dict[str, Any] = dict(self.truth[page])
        for field, values in self.truth[page].items():
            if values and draw.random() < noise:
                answers[field] = [] if draw.random() < 0.5 else draw.choice(PageTree(self.pages[page]).texts).text
        return answers

    def _rates(self, found: dict[str, dict[str, Any]]) -> dict[str, float]:
        scores: defaultdict[str, list[float]] = defaultdict(list)
        for field in {field for answers in self.truth.values() for field in answers}:
            wanted = {page: {fold(value) for value in self.truth[page].get(field, ())} - {""} for page in found}
            given = {page: _set(found[page].get(field)) for page in found}
            right = sum(bool(given[page]) and given[page] <= wanted[page] for page in found)
            told, there = sum(map(bool, given.values())), sum(map(bool, wanted.values()))
            if not there and not told:
                continue  # no page has it, and none is said to
            scores["precision"].append(right / max(told, 1))
            scores["recall"].append(right / max(there, 1))
            scores["F1"].append(2 * right / max(told + there, 1))
        return {name: sum(each) / len(each) for name, each in scores.items()}


def _set(value: Any) -> set[str]:
    return set(value) if isinstance(value, list) else set() if value is None else {str(value)}


def run(options: Options, say: Callable[[str], None]) -> Report:
    """One pass over each site for each share of wrong answers."""
    folder = os.environ.get("PATTERN_PAGES", "")
    sites = [_Site(each.parent) for each in sorted(Path(folder).glob("*/truth.json"))] if folder else []
    if not sites:
        say("left out; PATTERN_PAGES names no folder with sites")
        return Report(bench="patterns", tables=())
    tables, means = [], {}
    goals: list[Goal] = []
    slowest = 0.0
    for part in filter(options.wants, NOISE):
        say(f"{part}: {len(sites)} sites")
        scores = {site.name: site.score(NOISE[part], alone=ALONE in part) for site in sites}
        means[part] = sum(each["F1"] for each in scores.values()) / len(scores)
        tables.append(_table(part, scores, means[part]))
        slowest = max(slowest, *(each["learn"] for each in scores.values()))
    if options.wants("templates"):
        tables.append(_templates(sites))
    if not means:
        return Report(bench="patterns", tables=tuple(tables))
    goals.append(Goal(name="learning the slowest site", measured=slowest, bound=2.0, at_least=False, unit=" s"))
    clean = means.get("clean", float("nan"))
    goals.append(Goal(name="F1 over sites and fields", measured=clean, bound=0.92, at_least=True, unit=""))
    for part, bound in (("noise 10 %", 0.03), ("noise 20 %", 0.08)):
        lost = clean - means.get(part, float("nan"))
        goals.append(Goal(name=f"F1 lost by {part}", measured=lost, bound=bound, at_least=False, unit=""))
    return Report(bench="patterns", tables=tuple(tables), goals=tuple(goals))


def _templates(sites: list[_Site]) -> Table:
    """The pages of all sites together, by template."""
    pages = [(site.name, marks(PageTree(html))) for site in sites for html in site.pages.values()]
    groups = templates_of([each for _, each in pages])
    mixed = sum(len({pages[number][0] for number in group}) > 1 for group in groups)
    rows = ((str(len(pages)), str(len(sites)), str(len(groups)), str(mixed)),)
    return Table(title="templates", columns=("pages", "sites", "groups", "groups of several sites"), rows=rows)


def _table(part: str, scores: dict[str, dict[str, float]], mean: float) -> Table:
    columns = ("precision", "recall", "F1")
    rows = [
        (
            name,
            *(f"{each[column]:.3f}" for column in columns),
            *(figure(each[rate]) for rate in ("learn", "pages", "megabytes")),
        )
        for name, each in scores.items()
    ]
    rows.append(
        ("all", *(f"{sum(each[c] for each in scores.values()) / len(scores):.3f}" for c in columns), "", "", "")
    )
    title = f"{part}: {ANSWERED} answered pages of each site, {DRAWS} draws, F1 {mean:.3f}"
    return Table(title=title, columns=("site", *columns, "learn s", "pages/s", "MB/s"), rows=tuple(rows))
