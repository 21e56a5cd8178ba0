"""Markdown and products against saved pages with known answers, and how many pages a second are read.

The pages are other people's and do not come with the project. EXTRACTION_PAGES names a folder with `articles`
(ground-truth.json: id → articleBody, url) or `products` (id → url, price, sku, availability, brand as lists), each with
`html/ID.html.gz`: the layout of scrapinghub's article-extraction-benchmark and product-extraction-benchmark.
"""

import gzip
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.page_kinds import MadePage, made_pages
from benchmarks.report import Goal, Options, Report, Table, figure
from scrapeyard.builtin.pages.page import extract_page

PARTS = ("articles", "products", "kinds")
_NEAR = 0.95
"""Share of plain trafilatura's F1 that Markdown must have, on pages of every kind."""
_BAD_LINK = re.compile(r"(?<!!)\[\s*\]\([^)]*\)|\]\(\s*(?:javascript:[^)]*)?\)", re.IGNORECASE)
_FIELDS = ("price", "sku", "availability", "brand")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W\u3040-\u30ff\u4e00-\u9fff]+")
_SPEEDS = (("links", "text"), ("markdown",), ("links", "text", "markdown"), ("product",))

Say = Callable[[str], None]
Scores = dict[str, tuple[float, float, float]]


class _Page:
    def __init__(self, folder: Path, name: str, truth: dict[str, Any]) -> None:
        self.html = gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes())
        self.url: str = truth.get("url") or "https://site.invalid/"
        self.truth = truth

    def read(self, *parts: str) -> dict[str, Any]:
        return extract_page(self.html, self.url, include=parts)


def run(options: Options, say: Say) -> Report:
    """One pass over each folder that is there."""
    tables: list[Table] = []
    goals: list[Goal] = []
    for part, (score, bounds) in _SCORED.items():
        if not options.wants(part):
            continue
        pages = list(_pages(part))
        if not pages:
            say(f"{part}: left out; EXTRACTION_PAGES names no folder with {part}")
            continue
        say(f"{part}: {len(pages)} pages")
        scores = score(pages)
        rows = tuple((name, *(f"{each:.3f}" for each in found)) for name, found in scores.items())
        tables.append(Table(title=f"{len(pages)} {part}", columns=("", "precision", "recall", "F1"), rows=rows))
        tables.append(_speeds(part, pages))
        goals += [
            Goal(name=f"{part}: F1 of {name}", measured=scores[name][2], bound=bound, at_least=True, unit="")
            for name, bound in bounds.items()
        ]
    if options.wants("kinds"):
        say("kinds: made pages of seven kinds")
        table, kinds = markdown_by_kind(list(made_pages()))
        tables.append(table)
        goals += kinds
    return Report(bench="extraction", tables=tuple(tables), goals=tuple(goals))


def markdown_by_kind(pages: list[MadePage]) -> tuple[Table, list[Goal]]:
    """Markdown beside what plain trafilatura extracts, each against the known text; and links that lead nowhere."""
    import trafilatura

    scores: dict[str, list[tuple[float, float]]] = {}
    bad = 0
    for page in pages:
        markdown = extract_page(page.html, "https://site.invalid/", include=["markdown"])["markdown"] or ""
        theirs = trafilatura.extract(page.html, include_comments=True) or ""
        bad += len(_BAD_LINK.findall(markdown))
        found = (overlap(words_of_markdown(markdown), page.text)[2], overlap(theirs, page.text)[2])
        scores.setdefault(page.kind, []).append(found)
    means = {kind: tuple(sum(each) / len(found) for each in zip(*found, strict=True)) for kind, found in scores.items()}
    rows = tuple((kind, f"{ours:.3f}", f"{theirs:.3f}") for kind, (ours, theirs) in means.items())
    goals = [
        Goal(
            name=f"{kind}: F1 of markdown beside trafilatura's",
            measured=ours / theirs,
            bound=_NEAR,
            at_least=True,
            unit=" of it",
        )
        for kind, (ours, theirs) in means.items()
    ]
    nowhere = Goal(name="links that are empty or run a script", measured=float(bad), bound=0.0, at_least=False, unit="")
    return Table(title=f"{len(pages)} made pages", columns=("kind", "markdown", "trafilatura"), rows=rows), [
        *goals,
        nowhere,
    ]


def _pages(part: str) -> Iterator[_Page]:
    folder = Path(os.environ.get("EXTRACTION_PAGES", "")) / part
    answers = folder / "ground-truth.json"
    if os.environ.get("EXTRACTION_PAGES") and answers.exists():
        for name, truth in json.loads(answers.read_text("utf-8")).items():
            if (folder / "html" / f"{name}.html.gz").exists():
                yield _Page(folder, name, truth)


def _articles(pages: list[_Page]) -> Scores:
    """The mean over pages of what words of the reference and of ours have in common."""
    found: dict[str, list[tuple[float, float, float]]] = {"markdown": [], "article": [], "text": []}
    for page in pages:
        fields = page.read(*found)
        texts = {**fields, "markdown": words_of_markdown(fields["markdown"] or "")}
        texts["article"] = (fields["article"] or {}).get("text")
        for name, scores in found.items():
            scores.append(overlap(texts[name] or "", page.truth["articleBody"]))
    return {name: _mean(scores) for name, scores in found.items()}


def words_of_markdown(text: str) -> str:
    """Without the addresses of links and images."""
    return _LINK.sub(r"\1", _IMAGE.sub("", text))


def overlap(ours: str, reference: str) -> tuple[float, float, float]:
    """Precision, recall and F1 of the words, each as often as it comes."""
    mine, theirs = (Counter(_WORD.findall(text.lower())) for text in (ours, reference))
    common = (mine & theirs).total()
    if not common:
        return 0.0, 0.0, 0.0
    precision, recall = common / mine.total(), common / theirs.total()
    return precision, recall, 2 * precision * recall / (precision + recall)


def _mean(scores: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    precision, recall, both = (sum(each) / len(scores) for each in zip(*scores, strict=True))
    return precision, recall, both


def _products(pages: list[_Page]) -> Scores:
    right, given, wanted = Counter[str](), Counter[str](), Counter[str]()
    for page in pages:
        product = page.read("product")["product"] or {}
        for name in _FIELDS:
            ours = _comparable(name, product.get(name))
            theirs = {_comparable(name, each) for each in page.truth.get(name) or ()}
            given[name] += ours is not None
            wanted[name] += bool(theirs)
            right[name] += ours in theirs
    return {name: _rates(right[name], given[name], wanted[name]) for name in _FIELDS}


def _comparable(name: str, value: Any) -> Any:
    return float(value) if name == "price" and value is not None else value


def _rates(right: int, given: int, wanted: int) -> tuple[float, float, float]:
    precision, recall = right / max(given, 1), right / max(wanted, 1)
    return precision, recall, 2 * right / max(given + wanted, 1)


def _speeds(part: str, pages: list[_Page]) -> Table:
    rows = []
    for parts in _SPEEDS:
        began = time.process_time()
        for page in pages:
            page.read(*parts)
        rows.append((", ".join(parts), figure(len(pages) / (time.process_time() - began))))
    return Table(title=f"{part} read by one core", columns=("include", "pages/s"), rows=tuple(rows))


_SCORED: dict[str, tuple[Callable[[list[_Page]], Scores], dict[str, float]]] = {
    "articles": (_articles, {"markdown": 0.9}),
    "products": (_products, {"price": 0.92, "sku": 0.95, "availability": 0.95}),
}
