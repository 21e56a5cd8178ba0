"""What is compared, what is passed over, and how a difference reads."""

import time
from typing import Any

import pytest

from scrapeyard.authoring.comparing import MAX_SHOWN, difference, masked, parse_mask
from scrapeyard.errors import ScraperInvalid


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        (1, 1.0, False),
        (1, True, False),
        (None, {}, False),
        ({"a": None}, {}, False),
        ("é", "é", True),
        ("", "\ud800", False),
    ],
)
def test_what_is_equal(one: Any, other: Any, same: bool) -> None:
    assert (difference(one, other) == []) is same


def test_a_difference_reads_as_a_unified_diff() -> None:
    before = {"title": "Lamp", "price": 9, "tags": list(range(20))}
    assert difference(before, before | {"title": "Lantern"}) == [
        "--- expected.json",
        "+++ this run",
        "@@ -22,5 +22,5 @@",
        "     18,",
        "     19",
        "   ],",
        '-  "title": "Lamp"',
        '+  "title": "Lantern"',
        " }",
    ]


def test_long_differences_are_cut_and_quick() -> None:
    began = time.process_time()
    lines = difference(list(range(200_000)), list(range(1, 200_000, 2)))
    assert time.process_time() - began < 5
    assert len(lines) == MAX_SHOWN + 1
    assert lines[-1].startswith("… and ")
    assert "not compared" in lines[-1]


@pytest.mark.parametrize(
    ("paths", "value", "left"),
    [
        (["at"], {"at": 1, "b": 2}, {"at": "(ignored)", "b": 2}),
        (["items[].id"], {"items": [{"id": 1}, {"x": 2}]}, {"items": [{"id": "(ignored)"}, {"x": 2}]}),
        (["[].a.b"], [{"a": {"b": 1}}], [{"a": {"b": "(ignored)"}}]),
        (["[1]"], [1, 2, 3], [1, "(ignored)", 3]),
        (["[][]"], [[1], 2], [["(ignored)"], 2]),
        (["a.b"], {"a": [1]}, {"a": [1]}),
        (["at"], None, None),
        (["최근"], {"최근": 1}, {"최근": "(ignored)"}),
    ],
)
def test_masks(paths: list[str], value: Any, left: Any) -> None:
    assert masked(value, tuple(parse_mask(path, "case.toml") for path in paths)) == left


def test_a_masked_field_must_still_be_there() -> None:
    masks = (parse_mask("at", "case.toml"),)
    assert difference(masked({"at": 1}, masks), masked({"at": 2}, masks)) == []
    assert difference(masked({"at": 1}, masks), masked({}, masks)) != []


@pytest.mark.parametrize("path", ["", ".", "a.", "a..b", "[x]", "a[", "[]a", "a b[] c", "[" + "9" * 9 + "]", "a" * 501])
def test_a_bad_path_is_refused(path: str) -> None:
    with pytest.raises(ScraperInvalid, match="not a path"):
        parse_mask(path, "case.toml")
