"""Sketches of fields, on SQLite and on PostgreSQL; and the watch of a worker that adds to them."""

import random
from typing import Any

from msgspec import Raw, json

from scrapeyard.model.drift import LEAST_BEFORE, MAX_FIELDS, WINDOW, DriftSketch, sight_of, sights_of
from scrapeyard.store.ports.store import Store
from scrapeyard.worker.attempts.drift import MAX_RESULT, MOST_PAGES, DriftWatch
from tests.contract.nouns import NOW

ID, URL = "shop/product", "https://shop.example/p/1"
WORDS = ("oak", "kettle", "blue", "lamp", "north", "vase", "iron", "chair", "wool", "teapot")
SOON = LEAST_BEFORE + WINDOW
"""Pages after which drift can be told."""


def product(number: int, **other: Any) -> dict[str, Any]:
    words = random.Random(number).sample(WORDS, 3)
    return {"title": " ".join(words), "price": 3.5 + number % 40, "offer": {"sku": f"A-{number:05}"}, **other}


def pages(count: int, first: int = 0, **other: Any) -> list[dict[str, Any]]:
    return [product(number, **other) for number in range(first, first + count)]


def begun(sketch: DriftSketch, results: list[dict[str, Any]]) -> dict[str, int]:
    """By field: the page at which it began to drift."""
    return {name: number for number, result in enumerate(results) for name in sketch.add(sights_of(result), NOW)}


def watched_for(count: int = 60) -> DriftSketch:
    sketch = DriftSketch(version="1")
    assert begun(sketch, pages(count)) == {}
    return sketch


def test_a_field_that_empties_is_noticed_and_recovers() -> None:
    sketch = watched_for()
    found = begun(sketch, pages(WINDOW, 60, price=None))
    assert list(found) == ["price"]
    assert found["price"] < WINDOW
    field = sketch.fields["price"]
    assert (field.drift, field.before, field.recent_fill_rate) == ("emptied", "filled on 100% of pages", 0.0)
    assert begun(sketch, pages(3 * WINDOW, 100)) == {}
    assert sketch.drifted == []


def test_a_field_that_is_gone_from_the_result_is_empty() -> None:
    sketch = watched_for()
    without = [{"title": page["title"]} for page in pages(WINDOW, 60)]
    assert set(begun(sketch, without)) == {"price", "offer.sku"}


def test_a_field_of_another_form_is_noticed() -> None:
    for value, kind in (("Add to cart", "changed"), (True, "changed"), (["a", "b"], "changed")):
        sketch = watched_for()
        assert list(begun(sketch, pages(WINDOW, 60, price=value))) == ["price"]
        assert sketch.fields["price"].drift == kind
    sketch = watched_for()
    assert list(begun(sketch, pages(WINDOW, 60, title="blue oak lamp"))) == ["title"]
    assert sketch.fields["title"].drift == "repeated"


def test_a_field_that_is_often_empty_is_let_be_and_a_new_one_is_told() -> None:
    draw = random.Random(1)
    seldom = [product(n, **({"badge": "new"} if draw.random() < 0.2 else {})) for n in range(2000)]
    assert begun(DriftSketch(version="1"), seldom) == {}
    assert list(begun(watched_for(), pages(WINDOW, 60, rating=4.5))) == ["rating"]


def test_what_lasts_becomes_normal() -> None:
    sketch = watched_for()
    begun(sketch, pages(1100, 60, price=None))
    assert sketch.drifted == []


def test_sights_are_small() -> None:
    wide = {f"field{number}": {f"inner{each}": "x" for each in range(20)} for number in range(20)}
    assert len(sights_of(wide)) == MAX_FIELDS
    sketch = DriftSketch(version="1")
    for number in range(200):
        sketch.add(sights_of({f"f{number}-{each}": f"{each} " * 500 for each in range(80)}), NOW)
    assert len(sketch.fields) == MAX_FIELDS
    assert len(json.encode(sketch)) < 100_000
    assert [sight_of(value) for value in (None, "", [], {})] == [()] * 4
    assert all(sight_of(value) for value in (0, False, " ", "\ud800", [None], 1e300))
    assert sights_of("text") == {}


async def test_pages_of_all_workers_are_added_together(store: Store) -> None:
    one, other = DriftWatch(store.drift), DriftWatch(store.drift)
    for number, page in enumerate(pages(SOON)):
        (one if number % 2 else other).note_result(ID, "1.0.0", URL, Raw(json.encode(page)))
    await one.flush()
    await other.flush()
    for page in pages(WINDOW, 100, price=None):
        one.note_result(ID, "1.0.0", URL, Raw(json.encode(page)))
    await one.flush()
    (known,) = await store.drift.watched(ID)
    assert (known.site, known.sketch.pages, known.sketch.drifted) == ("shop.example", SOON + WINDOW, ["price"])
    assert [each.subject for each in await store.drift.watched(drifted=True)] == [ID]
    other.note_result(ID, "1.1.0", URL, Raw(json.encode(product(1))))
    await other.flush()
    (mended,) = await store.drift.watched(ID)
    assert (mended.sketch.version, mended.sketch.pages, mended.sketch.drifted) == ("1.1.0", 1, [])
    await store.drift.forget(ID)
    assert await store.drift.watched() == ()


async def test_a_watch_is_bounded(store: Store) -> None:
    watch = DriftWatch(store.drift)
    for page in pages(MOST_PAGES + 50):
        watch.note_result(ID, "1.0.0", URL, Raw(json.encode([page])))
    for bad in (b'"' + b"x" * MAX_RESULT + b'"', b"{", b"[1, 2]", b"null"):
        watch.note_result("shop/other", "1.0.0", "http://[", Raw(bad))
    await watch.flush()
    assert [(each.subject, each.sketch.pages) for each in await store.drift.watched()] == [(ID, MOST_PAGES)]
    await store.drift.forget_before(4e9)
    assert await store.drift.watched() == ()


async def test_what_the_store_does_not_take_is_written_later(store: Store) -> None:
    watch = DriftWatch(store.drift)
    for page in pages(2):
        watch.note_result(ID, "1.0.0", URL, Raw(json.encode(page)))
    await store.stop()
    await watch.flush()
    watch.note_result(ID, "1.0.0", URL, Raw(json.encode(product(2))))
    await store.start()
    await watch.flush()
    await watch.flush()
    assert [each.sketch.pages for each in await store.drift.watched(ID)] == [3]


async def test_whoever_reads_by_a_pattern_is_called_when_it_drifts(store: Store) -> None:
    told: list[tuple[str, ...]] = []

    async def on_drift(fields: tuple[str, ...]) -> None:
        told.append(fields)

    watch = DriftWatch(store.drift)
    for page in (*pages(SOON), *pages(WINDOW, 100, title=None)):
        watch.note("pat_1", "3", "shop.example", page, on_drift)
    await watch.flush()
    assert told == [("title",)]
