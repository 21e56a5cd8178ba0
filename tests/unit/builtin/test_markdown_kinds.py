"""Markdown of pages of seven kinds, beside what plain trafilatura extracts."""

from benchmarks.extraction import markdown_by_kind
from benchmarks.page_kinds import made_pages


def test_markdown_is_as_good_on_every_kind_of_page() -> None:
    pages = list(made_pages())
    _, goals = markdown_by_kind(pages)
    assert len(pages) >= 60
    assert len(goals) == 8
    assert [goal.name for goal in goals if not goal.met] == []
