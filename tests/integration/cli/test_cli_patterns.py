"""`patterns`: learn from a few answered pages, read others, make a scraper of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import Stand
from tests.services.linked_site import LinkedSite, linked_site
from tests.services.made_shop import made_page
from tests.unit.sdk.test_extract_patterns import NAMES, page

PATHS = {f"/p/{number}": [] for number in range(10)}


@pytest.fixture
def site() -> Iterator[LinkedSite]:
    with linked_site(PATHS, {path: page(number).encode() for number, path in enumerate(PATHS)}) as site:
        yield site


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def examples(stand: Stand, site: LinkedSite, *numbers: int) -> None:
    rows = [f"{site.url}/p/{number},{NAMES[number % 8]},AB-{1000 + number}" for number in numbers]
    (stand.folder / "examples.csv").write_text("\n".join(["url,title,sku", *rows]))


def test_three_answered_pages_become_a_scraper(stand: Stand, site: LinkedSite) -> None:
    examples(stand, site, 1, 2, 3)
    learned = stand.cli("patterns", "learn", "examples.csv", "-o", "shop.json", "--allow-private")
    assert learned.status == 0, learned.err
    assert "learned title, sku from 3 pages" in learned.err
    read = stand.cli("patterns", "apply", "shop.json", f"{site.url}/p/5", "--allow-private")
    assert json.loads(read.out) == {"page": f"{site.url}/p/5", "title": "Fjord Vase", "sku": "AB-1005"}
    examples(stand, site, 6, 7)
    checked = stand.cli("patterns", "check", "shop.json", "examples.csv", "--allow-private", "--json")
    assert (checked.status, checked.json["sku"]) == (0, {"right": 2, "wrong": 0, "missing": 0})
    written = stand.cli("patterns", "export", "shop.json", "shop/thing", "--host", "127.0.0.1")
    assert written.status == 0, written.err
    ran = stand.cli("run", "shop/thing", f"url={site.url}/p/8", "--allow-private")
    assert ran.status == 0, ran.err
    assert ran.json == {"url": f"{site.url}/p/8", "title": "Aurora Lamp", "sku": "AB-1008"}


def test_files_serve_as_pages_and_a_wrong_value_is_told(stand: Stand) -> None:
    rows = []
    for number in (1, 2):
        (stand.folder / f"{number}.html").write_text(page(number))
        rows.append({"file": f"{number}.html", "sku": f"AB-{1000 + number}", "colour": "red"})
    (stand.folder / "examples.json").write_text(json.dumps(rows))
    learned = stand.cli("patterns", "learn", "examples.json", "-o", "shop.json")
    assert (learned.status, "not learned: colour" in learned.err) == (0, True)
    assert "templates" not in learned.err
    (stand.folder / "3.html").write_text(made_page(3).html)
    odd = [*rows, {"file": "3.html", "sku": "A-3", "colour": "red"}]
    (stand.folder / "odd.json").write_text(json.dumps(odd))
    mixed = stand.cli("patterns", "learn", "odd.json", "-o", "odd-pattern.json")
    assert "the pages are of 2 templates: learn those of each apart" in mixed.err
    rows[0]["sku"] = "AB-1"
    (stand.folder / "examples.json").write_text(json.dumps(rows))
    checked = stand.cli("patterns", "check", "shop.json", "examples.json", "--json")
    assert checked.status == 1
    assert checked.json == {
        "sku": {"right": 1, "wrong": 1, "missing": 0},
        "colour": {"right": 0, "wrong": 0, "missing": 2},
    }


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("none.csv", "url,title\n", "0 examples"),
        ("bad.json", "{", "cannot be read"),
        ("bare.json", '[{"title": "A"}]', "needs a url or a file"),
        ("away.json", '[{"file": "away.html", "title": "A"}]', "away.html"),
        ("other.json", '[{"file": "page.html", "title": "not there"}]', "no value of the examples"),
    ],
)
def test_what_cannot_be_learned_is_told(stand: Stand, name: str, text: str, words: str) -> None:
    (stand.folder / name).write_text(text)
    (stand.folder / "page.html").write_text(page(1))
    ended = stand.cli("patterns", "learn", name)
    assert (ended.status, words in ended.err) == (2, True), ended.err
