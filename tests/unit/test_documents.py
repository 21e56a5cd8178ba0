"""docs/documents.md: each row of a document works, says under which name, or says why not."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapeyard.gateway.http.dialects import DIALECTS, FILTERS
from scrapeyard.model import RunStatus
from scrapeyard.model.job import ItemStatus, JobStatus

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "documents.md").read_text("utf-8")
WAYS = ("works", "alias", "ours", "not yet", "declined")
ROW = re.compile(r"^\| (?P<line>\d[\d, -]*) \| (?P<statement>.+) \| (?P<way>[a-z ]+) \| (?P<here>.+) \|$", re.MULTILINE)
ROWS = [found.groupdict() for found in ROW.finditer(PAGE)]


@pytest.fixture(scope="module")
def tests() -> set[str]:
    """The name of every test there is."""
    files = (ROOT / "tests").rglob("test_*.py")
    return {name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text("utf-8"))}


def test_every_line_of_a_table_is_a_row() -> None:
    body = PAGE.partition("## The gateway-worker document")[2]
    lines = [line for line in body.splitlines() if re.match(r"\| \d", line)]
    assert len(ROWS) == len(lines) > 100


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['line']} {row['statement']}"[:60])
def test_a_row_has_a_test_or_a_sentence(row: dict[str, str], tests: set[str]) -> None:
    assert row["way"] in WAYS
    named = re.findall(r"`(test_\w+)`", row["here"])
    assert set(named) <= tests, f"no such test: {set(named) - tests}"
    if not named:
        assert row["here"].endswith("."), "neither a test nor a sentence"
        assert len(row["here"].split()) >= 4


def test_the_words_of_status_are_those_of_the_code() -> None:
    kinds = {"run": RunStatus, "job": JobStatus, "item": ItemStatus}
    seen = set()
    for noun, ours, tasks, site, filters in _words():
        kind = kinds[noun]
        for status in ours:
            seen.add((noun, status))
            for column, dialect in ((tasks, "tasks"), (site, "site")):
                word = DIALECTS[dialect].words.get(kind, {}).get(status, status)
                assert column in ([], [word]), (noun, status, dialect)
        assert set(filters) == {word for word, meant in FILTERS[kind].items() if meant in ours}, (noun, ours)
    assert seen >= {(noun, status.value) for noun, kind in kinds.items() for status in kind if status != "cancelled"}


def _words() -> Iterator[tuple[str, list[str], list[str], list[str], list[str]]]:
    for line in PAGE.splitlines():
        if re.match(r"\| (run|job|item) \|", line):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            ours, tasks, site, filters = (re.findall(r"`(\w+)`", cells[number]) for number in (1, 3, 4, 5))
            yield cells[0], ours, tasks, site, filters
