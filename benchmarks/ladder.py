"""The ladder of extraction: a site that changes, a model that invents, and whether confidence means what it says.

The model is a script: what it knows is the truth, of which it spoils a share. So the figures tell what the ladder does
with answers of a given quality, not how good any real model is. PATTERN_PAGES and EXTRACTION_PAGES name folders of
saved pages, as the benches `patterns` and `extraction` have them.
"""

import asyncio
import gzip
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

from benchmarks.report import Goal, Options, Report, Table, figure
from scrapeyard.builtin.extraction.asking import candidates_in
from scrapeyard.builtin.extraction.confidence import Candidate, weigh
from scrapeyard.builtin.extraction.fields import FieldSpec, WantedFields, same, wanted_of
from scrapeyard.builtin.extraction.reading import KnownPattern, ReadTask, read
from scrapeyard.builtin.extraction.reduced import pieces_of, shown
from scrapeyard_sdk.extract.patterns import Example, learn
from scrapeyard_sdk.extract.patterns.template import marks
from scrapeyard_sdk.extract.patterns.tree import PageTree, fold

PARTS = ("site", "inventions", "reliability", "reading")
PAGES = 500
BINS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.01)
SPOILED = {"good": (0.04, 0.01), "fair": (0.1, 0.04), "poor": (0.2, 0.1)}
"""Of a model: the share of answers that are another text of the page, and that stand nowhere."""
Say = Callable[[str], None]
Told = list[tuple[float, bool]]
"""Confidence, and whether the value was right."""


def run(options: Options, say: Say) -> Report:
    """One pass over each part."""
    tables: list[Table] = []
    goals: list[Goal] = []
    for part, measure in _MEASURES.items():
        if options.wants(part):
            say(part)
            more, also = measure(say)
            tables += more
            goals += also
    return Report(bench="ladder", tables=tuple(tables), goals=tuple(goals))


@contextmanager
def _scripted() -> Iterator[tuple[Any, Any]]:
    from tests.services.made_shop import ShopModel
    from tests.services.models import ModelServer

    shop = ShopModel()
    with ModelServer(shop) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield shop, server
        server.shutdown()


def _site(_say: Say) -> tuple[list[Table], list[Goal]]:
    with _scripted() as (shop, server), tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(_read_site(shop, server, Path(folder)))
    rows = (
        ("pages", PAGES),
        ("pages that the model answered", len(server.asked)),
        ("accuracy over all values", f"{found['right'] / found['values']:.4f}"),
        ("tokens", found["tokens"]),
        ("pages/s, one process, the model's share included", figure(PAGES / found["seconds"])),
    )
    goals = [
        Goal(name="pages that the model answered", measured=len(server.asked), bound=5, at_least=False, unit=""),
        Goal(
            name="accuracy with a new template halfway",
            measured=found["right"] / found["values"],
            bound=0.97,
            at_least=True,
            unit="",
        ),
        Goal(name="tokens of the budget", measured=found["tokens"], bound=20_000, at_least=False, unit=""),
    ]
    title = f"{PAGES} pages of a made shop, a new template at page {PAGES // 2}"
    return [Table(title=title, columns=("", ""), rows=tuple((name, str(each)) for name, each in rows))], goals


async def _read_site(shop: Any, server: Any, folder: Path) -> dict[str, Any]:
    from tests.services.ladders import open_ladder
    from tests.services.made_shop import FIELDS, made_page

    from scrapeyard.model import BudgetLimits

    right = values = 0
    async with open_ladder(folder, server.url) as ladder:
        ladder.budget(BudgetLimits(ai_tokens=20_000))
        began = time.perf_counter()
        for number in range(PAGES):
            page = shop.add(made_page(number, "old" if number < PAGES // 2 else "new"))
            answer = await ladder.extract(html=page.html, url=page.url, fields=FIELDS)
            right += sum(answer["data"][name] == value for name, value in page.truth.items())
            values += len(page.truth)
        seconds = time.perf_counter() - began
        tokens = ladder.caller.ledger.spent.ai_tokens
    return {"right": right, "values": values, "tokens": tokens, "seconds": seconds}


def _inventions(_say: Say) -> tuple[list[Table], list[Goal]]:
    with _scripted() as (shop, server), tempfile.TemporaryDirectory() as folder:
        server.invents = 0.2
        told = asyncio.run(_read_inventions(shop, server, Path(folder)))
    share = told / len(server.invented)
    table = Table(
        title="a model that invents 20 % of the values",
        columns=("inventions", "told", "share"),
        rows=((str(len(server.invented)), str(told), f"{share:.4f}"),),
    )
    return [table], [Goal(name="inventions that are told", measured=share, bound=0.99, at_least=True, unit="")]


async def _read_inventions(shop: Any, server: Any, folder: Path) -> int:
    from tests.services.ladders import open_ladder
    from tests.services.made_shop import FIELDS, made_page

    told = 0
    async with open_ladder(folder, server.url) as ladder:
        for number in range(PAGES):
            page = shop.add(made_page(number))
            answer = await ladder.extract(html=page.html, url=page.url, fields=FIELDS, learn=False)
            told += sum("does not stand in the page" in each for each in answer["warnings"])
    return told


def _reliability(say: Say) -> tuple[list[Table], list[Goal]]:
    ways: dict[str, Told] = {}
    for kind, spoiled in SPOILED.items():
        ways[f"model, {kind}"] = []
        ways[f"pattern of a {kind} model"] = []
        for site in _sites():
            _judge_site(site, spoiled, ways[f"model, {kind}"], ways[f"pattern of a {kind} model"])
    ways["structured data"] = list(_judge_products())
    ways = {name: told for name, told in ways.items() if told}
    if not ways:
        say("left out; PATTERN_PAGES and EXTRACTION_PAGES name no folders")
        return [], []
    every = [each for told in ways.values() for each in told]
    error = _calibration_error(every)
    columns = ("confidence", "values", "mean confidence", "right")
    tables = [
        Table(title=f"reliability: {name}, error {_calibration_error(told):.3f}", columns=columns, rows=_curve(told))
        for name, told in {**ways, "all ways": every}.items()
    ]
    return tables, [Goal(name="calibration error over all", measured=error, bound=0.05, at_least=False, unit="")]


def _curve(told: Told) -> tuple[tuple[str, ...], ...]:
    rows = []
    for low, high in pairwise(BINS):
        inside = [(sure, right) for sure, right in told if low <= sure < high]
        if inside:
            mean = sum(sure for sure, _ in inside) / len(inside)
            share = sum(right for _, right in inside) / len(inside)
            rows.append((f"{low:g} to {min(high, 1):g}", str(len(inside)), f"{mean:.3f}", f"{share:.3f}"))
    return tuple(rows)


def _calibration_error(told: Told) -> float:
    """How far confidence is from the share that is right, weighted by how many values have it."""
    off = 0.0
    for low, high in pairwise(BINS):
        inside = [(sure, right) for sure, right in told if low <= sure < high]
        off += abs(sum(sure for sure, _ in inside) - sum(right for _, right in inside))
    return off / max(1, len(told))


def _sites() -> Iterator[tuple[str, dict[str, Any], dict[str, bytes]]]:
    folder = os.environ.get("PATTERN_PAGES", "")
    for path in sorted(Path(folder).glob("*/truth.json")) if folder else ():
        truth = json.loads(path.read_text("utf-8"))
        yield path.parent.name, truth, {page: (path.parent / page).with_suffix(".htm").read_bytes() for page in truth}


def _judge_site(
    site: tuple[str, dict[str, Any], dict[str, bytes]], spoiled: tuple[float, float], asked: Told, learned: Told
) -> None:
    """A model answers three pages of a site; a pattern learned of them reads twelve others."""
    name, truth, pages = site
    chance = random.Random(f"{name} {spoiled}")
    fields = list(next(iter(truth.values())))
    wanted = wanted_of({"fields": dict.fromkeys(fields, "text")})
    chosen = chance.sample(sorted(truth), min(15, len(truth)))
    examples = []
    for page in chosen[:3]:
        tree = PageTree(pages[page])
        answers = _answered(tree, truth[page], wanted, spoiled, chance)
        for field, candidate in answers.items():
            asked.append((weigh([candidate]).confidence, _is_right(candidate.value, truth[page][field])))
        sure = {field: each.value for field, each in answers.items() if weigh([each]).confidence >= 0.85}
        examples.append(Example(html=tree.html(), values=dict.fromkeys(fields) | sure))
    pattern = learn(examples)
    known = KnownPattern(
        id="p", pattern=pattern.to_json(), marks=marks(PageTree(pages[chosen[0]])), examples=3, absent=tuple(fields)
    )
    for page in chosen[3:]:
        task = ReadTask(fields=wanted.fields, patterns=(known,), sure=0.0)
        reading = read(pages[page].decode("utf-8", "replace"), "", task)
        for field, answer in reading.answers(wanted.fields).items():
            if answer.how == "pattern":
                learned.append((answer.confidence, _is_right(answer.value, truth[page][field])))


def _answered(
    tree: PageTree,
    truth: dict[str, list[str]],
    wanted: WantedFields,
    spoiled: tuple[float, float],
    chance: random.Random,
) -> dict[str, Candidate]:
    """What the ladder makes of a model's answers."""
    pieces = pieces_of(tree)
    visible, _ = shown(pieces, 10**9)
    said: dict[str, Any] = {}
    for field in wanted.fields:
        values = [fold(each) for each in truth.get(field.name, ()) if fold(each) and fold(each) in visible]
        if values:
            said[field.name] = _spoiled(values[0], pieces, spoiled, chance)
    return candidates_in(said, pieces, wanted.fields, "")


def _spoiled(value: str, pieces: list[Any], spoiled: tuple[float, float], chance: random.Random) -> dict[str, Any]:
    draw = chance.random()
    if draw < spoiled[0]:
        value = chance.choice(pieces).text[:200]
    elif draw < sum(spoiled):
        value = f"Zq{chance.random()}"
    node = next((number for number, piece in enumerate(pieces, 1) if value in piece.text), None)
    return {"node": node, "quote": value, "value": value}


def _is_right(value: Any, truth: list[str]) -> bool:
    return any(same(value, fold(each)) for each in truth)


def _judge_products() -> Iterator[tuple[float, bool]]:
    folder = Path(os.environ.get("EXTRACTION_PAGES", "/nowhere")) / "products"
    if not folder.is_dir():
        return
    kinds = {"price": "number", "sku": "text", "brand": "text", "availability": "text", "gtin": "text"}
    truth = json.loads((folder / "ground-truth.json").read_text("utf-8"))
    fields = tuple(FieldSpec(name=name, kind=kind) for name, kind in kinds.items())  # type: ignore[arg-type]
    for name, known in truth.items():
        html = gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()).decode("utf-8", "replace")
        reading = read(html, known.get("url") or "https://site.invalid/", ReadTask(fields=fields, sure=1.0))
        for field, answer in reading.answers(fields).items():
            if answer.how is not None and field in known:
                yield answer.confidence, _is_same(field, answer.value, known[field])


def _is_same(field: str, value: Any, truth: list[Any]) -> bool:
    if field == "price":
        return any(abs(float(value) - float(each)) < 0.005 for each in truth)
    if field == "availability":
        return any(("In" in str(value)) is ("In" in str(each)) for each in truth)
    return any(same(str(value), str(each)) for each in truth)


def _reading(_say: Say) -> tuple[list[Table], list[Goal]]:
    """Pages a second of the learned road, on small pages, in one process."""
    from tests.services.made_shop import FIELDS, made_page

    wanted = wanted_of({"fields": FIELDS})
    pages = [made_page(number) for number in range(200)]
    examples = [Example(html=each.html, values={**each.shown, "price": each.truth["price"]}) for each in pages[:3]]
    known = KnownPattern(
        id="p", pattern=learn(examples).to_json(), marks=marks(PageTree(pages[0].html)), examples=3, absent=("weight",)
    )
    task = ReadTask(fields=wanted.fields, patterns=(known,))
    began, size, rounds = time.process_time(), 0, 5
    for page in pages * rounds:
        read(page.html, page.url, task)
        size += len(page.html)
    took = time.process_time() - began
    rate = rounds * len(pages) / took
    table = Table(
        title="the learned road, one core, pages of about 1.5 KB",
        columns=("pages/s", "MB/s"),
        rows=((figure(rate), figure(size / took / 1e6)),),
    )
    return [table], [Goal(name="pages/s by pattern", measured=rate, bound=1000, at_least=True, unit="")]


_MEASURES = {"site": _site, "inventions": _inventions, "reliability": _reliability, "reading": _reading}
