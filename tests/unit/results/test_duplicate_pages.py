"""The export `pages`: which pages are duplicates, and what is told of the crawl."""

import csv
import io
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.model.job import ExportWish
from scrapeyard.results.exports.builder import ExportBuilder
from scrapeyard.results.exports.columns import PAGES
from scrapeyard.results.exports.protocol import Line, Written

SHOP = "http://shop.example"


def page(path: str, text: str = "", **more: Any) -> Line:
    url = f"{SHOP}{path}"
    found = {"status": 200, "url": url, "final_url": url, "text_hash": text or path, "word_count": 9, **more}
    asked = json.dumps({"url": url}).encode()
    return Line(path, "success", 1.0, None, asked, json.dumps(found).encode(), "succeeded", depth=1)


def failed(path: str, reason: str) -> Line:
    return Line(path, "error", 1.0, None, json.dumps({"url": f"{SHOP}{path}"}).encode(), b"", reason)


def written(form: Any, *lines: Line, live: bool = False) -> tuple[bytes, Written]:
    pieces: list[bytes] = []
    builder = ExportBuilder(ExportWish(type="pages", format=form, bom=False), pieces.append, live=live)
    for line in lines:
        builder.add_lines([line])
    list(builder.finish())
    return b"".join(pieces), builder.written


def originals(*lines: Line) -> dict[str, str | None]:
    rows = [json.loads(line) for line in written("jsonl", *lines)[0].splitlines()]
    return {row["url"].removeprefix(SHOP): row["duplicate_of"] for row in rows if row["duplicate_of"]}


def test_a_page_duplicates_the_crawled_page_that_it_names_as_its_canonical() -> None:
    found = originals(
        page("/a?ref=1", canonical=f"{SHOP}/a"),
        page("/a", canonical=f"{SHOP}/a#top"),
        page("/b", canonical=f"{SHOP}/not-crawled"),
        page("/c", canonical=f"{SHOP}/gone"),
        page("/gone", status=404),
        page("/d", canonical=f"{SHOP}/down"),
        failed("/down", "fetch_timeout"),
    )
    assert found == {"/a?ref=1": f"{SHOP}/a"}


def test_a_page_duplicates_the_first_one_with_the_same_text() -> None:
    found = originals(page("/1", "same"), page("/2", "same"), page("/3", "other"), page("/4", "same"))
    assert found == {"/2": f"{SHOP}/1", "/4": f"{SHOP}/1"}


def test_pages_without_text_and_error_pages_are_no_duplicates() -> None:
    lines = [page(f"/{number}", "same", word_count=0) for number in range(2)]
    assert originals(*lines, page("/x", "404", status=404), page("/y", "404", status=404)) == {}


def test_of_two_pages_that_name_each_other_the_first_is_the_original() -> None:
    assert originals(page("/1", canonical=f"{SHOP}/2"), page("/2", canonical=f"{SHOP}/1")) == {"/2": f"{SHOP}/1"}


def test_the_canonical_wins_over_the_order_of_pages_with_the_same_text() -> None:
    found = originals(page("/print", "same", canonical=f"{SHOP}/1"), page("/1", "same"), page("/2", "same"))
    assert found == {"/print": f"{SHOP}/1", "/2": f"{SHOP}/1"}


def test_a_redirect_to_another_crawled_page_is_a_duplicate() -> None:
    assert originals(page("/old", final_url=f"{SHOP}/new"), page("/new")) == {"/old": f"{SHOP}/new"}


def test_the_notes_tell_of_robots_failures_and_duplicates() -> None:
    lines = [failed("/1", "fetch_robots"), failed("/2", "fetch_robots"), failed("/3", "fetch_timeout")]
    file, end = written("csv", *lines, page("/a", "same"), page("/b", "same", markdown="# B"))
    assert end.notes == (
        "robots.txt forbids 2 pages",
        "failed: fetch_timeout 1",
        "1 page duplicates another (duplicate_of)",
    )
    rows = list(csv.DictReader(io.StringIO(file.decode())))
    assert list(rows[0]) == [column.name for column in PAGES]
    assert [row["exit_reason"] for row in rows] == ["fetch_robots", "fetch_robots", "fetch_timeout", *["succeeded"] * 2]
    assert (rows[4]["markdown"], rows[4]["duplicate_of"], rows[4]["depth"]) == ("# B", f"{SHOP}/a", "1")


PATHS = st.sampled_from(["/1", "/2", "/3", "/4", "/5"])


@given(st.lists(st.tuples(PATHS, st.sampled_from("abc"), st.one_of(st.none(), PATHS)), max_size=8))
def test_who_reads_along_gets_what_the_file_says_or_is_not_told(pages: list[tuple[str, str, str | None]]) -> None:
    lines = [page(path, text, **({"canonical": SHOP + other} if other else {})) for path, text, other in pages]
    whole = [json.loads(line) for line in written("jsonl", *lines)[0].splitlines()]
    file, end = written("jsonl", *lines, live=True)
    seen = [json.loads(line) for line in file.splitlines()]
    assert seen == [
        said if "duplicate_of" in row else {name: cell for name, cell in said.items() if name != "duplicate_of"}
        for said, row in zip(whole, seen, strict=True)
    ]
    late = sum(said["duplicate_of"] is not None for said, row in zip(whole, seen, strict=True) if len(said) > len(row))
    assert any("without duplicate_of" in note for note in end.notes) == bool(late)


def test_only_a_page_that_pages_to_come_decide_is_written_without_duplicate_of() -> None:
    lines = [page("/new"), page("/1", "same"), page("/2", "same"), page("/old", final_url=f"{SHOP}/new")]
    lines += [page("/print", "print", canonical=f"{SHOP}/3"), page("/copy", "print"), page("/3")]
    file, end = written("jsonl", *lines, live=True)
    rows = [json.loads(line) for line in file.splitlines()]
    known = {row["url"].removeprefix(SHOP): row["duplicate_of"] for row in rows if "duplicate_of" in row}
    assert known == {"/new": None, "/1": None, "/2": f"{SHOP}/1", "/old": f"{SHOP}/new", "/3": None}
    assert end.notes == (
        "3 pages duplicate others (duplicate_of)",
        "1 of them without duplicate_of: it was known too late; -o FILE has it",
    )
