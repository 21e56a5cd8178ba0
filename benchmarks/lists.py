"""Record lists and next pages, found without selectors on made pages whose records are known."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from benchmarks.list_pages import ListPage, list_pages
from benchmarks.report import Goal, Options, Report, Table, figure
from scrapeyard.builtin.pages.page import extract_page

PARTS = ("made",)
_FIELDS = ("title", "url", "price")
_NOT_THERE = {("links only", "price"), ("table without links", "url"), ("table", "title"), ("table", "price")}
"""Fields that the layout is without; those of a table are named by its header."""


class _Score:
    """What was found, what of it is right, and what there was."""

    def __init__(self) -> None:
        self.found = self.right = self.there = 0

    def add(self, found: set[Any], there: set[Any]) -> None:
        self.found += len(found)
        self.right += len(found & there)
        self.there += len(there)

    @property
    def row(self) -> tuple[str, str]:
        return f"{self.precision:.3f}", f"{self.recall:.3f}"

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.there if self.there else 1.0


def run(options: Options, say: Callable[[str], None]) -> Report:
    """One pass over the made pages."""
    if not options.wants("made"):
        return Report(bench="lists", tables=())
    pages = list(list_pages())
    say(f"{len(pages)} made pages")
    layouts: defaultdict[str, _Score] = defaultdict(_Score)
    fields: defaultdict[str, _Score] = defaultdict(_Score)
    pagers: defaultdict[str, _Score] = defaultdict(_Score)
    took = 0.0
    for page in pages:
        began = time.process_time()
        read = extract_page(page.html, page.url, include=["records", "next_page"])
        took += time.process_time() - began
        _count(page, read, layouts[page.layout], fields)
        pagers[page.pager].add({read["next_page"]} - {None}, {page.next_page} - {None})
    size = sum(len(page.html) for page in pages) / len(pages) / 1000
    speed = f"{figure(len(pages) / took)} pages/s of {size:.0f} KB on one core"
    tables = (
        Table(
            title=f"records of {len(pages)} pages, {speed}",
            columns=("layout", "precision", "recall"),
            rows=_rows(layouts),
        ),
        Table(title="fields", columns=("field", "precision", "recall"), rows=_rows(fields)),
        Table(title="next page", columns=("pager", "precision", "recall"), rows=_rows(pagers)),
    )
    goals = [goal for name, scores in (("records", layouts), ("next page", pagers)) for goal in _goals(name, scores)]
    return Report(bench="lists", tables=tables, goals=tuple(goals))


def _count(page: ListPage, read: dict[str, Any], layout: _Score, fields: dict[str, _Score]) -> None:
    records = (read["records"] or {"records": []})["records"]
    titles = Counter(str(value) for record in records for value in {str(value) for value in record.values()})
    there = {record.title for record in page.records}
    whole = {title for title in there if any(str(title) in str(value) for value in titles)}
    layout.add(whole | {f"extra {number}" for number in range(len(records) - len(whole))}, there)
    for name in _FIELDS:
        if page.records and (page.layout, name) not in _NOT_THERE:
            given = {_as_written(record.get(name)) for record in records} - {"None"}
            fields[name].add(given, {_wanted(record, name, page.layout) for record in page.records})


def _wanted(record: Any, name: str, layout: str) -> str:
    if name == "title" and layout == "links only":
        return f"{record.title} {record.text[:40]}".strip()
    return _as_written(float(record.price) if name == "price" else getattr(record, name))


def _as_written(value: Any) -> str:
    return " ".join(str(value).split())


def _rows(scores: dict[str, _Score]) -> tuple[tuple[str, ...], ...]:
    return (*((name, *score.row) for name, score in scores.items()), ("all", *_all(scores).row))


def _all(scores: dict[str, _Score]) -> _Score:
    total = _Score()
    for score in scores.values():
        total.found += score.found
        total.right += score.right
        total.there += score.there
    return total


def _goals(name: str, scores: dict[str, _Score]) -> tuple[Goal, Goal]:
    total = _all(scores)
    return (
        Goal(name=f"{name}: precision", measured=total.precision, bound=0.95, at_least=True, unit=""),
        Goal(name=f"{name}: recall", measured=total.recall, bound=0.95, at_least=True, unit=""),
    )
