"""Pages of a crawl as files: their names, and what stands in them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.cli.crawls.page_files import PageFolder, parts_of, write_pages
from scrapeyard.errors import BadRequest

SHOP = "https://shop.example"
NAMES = [
    ("/", "index"),
    ("", "index"),
    ("/docs/", "docs/index"),
    ("/docs/a.html", "docs/a"),
    ("/docs/a.pdf", "docs/a.pdf"),
    ("/a?x=1&y=/etc", "a-x=1&y=-etc"),
    ("/%2e%2e/%2e%2e/etc/passwd", "etc/passwd"),
    ("/a%2Fb", "a/b"),
    ("/a%5C..%5Cb", "a-..-b"),
    ("/.git/config", "_git/config"),
    ("/stra%C3%9Fe", "straße"),
    ("/%00nul", "-nul"),
]


def page(path: str, **more: Any) -> dict[str, Any]:
    return {"url": f"{SHOP}{path}", "item_status": "success", "http_status": 200, "markdown": "# Hi", **more}


@pytest.mark.parametrize(("path", "expected"), NAMES)
def test_a_file_is_named_for_the_path_of_its_page(path: str, expected: str) -> None:
    assert "/".join(parts_of(SHOP + path)) == expected


@given(st.lists(st.text(max_size=150), min_size=1, max_size=12))
def test_no_path_leads_out_of_the_folder_and_no_two_pages_share_a_file(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str]
) -> None:
    root = tmp_path_factory.mktemp("pages")
    folder = PageFolder(root)
    written = []
    for path in paths:
        try:
            written.append(folder.write(page("/" + path)))
        except ValueError:
            continue  # no URL at all, such as //[
    assert all(file.resolve().is_relative_to(root.resolve()) and file.is_file() for file in written)
    assert len({str(file).casefold() for file in written}) == len(written)


def test_names_that_would_clash_are_told_apart(tmp_path: Path) -> None:
    folder = PageFolder(tmp_path)
    paths = ["/a", "/A", "/a.html", "/b.md/c", "/b", "/" + "x" * 300, "/" + "x" * 299 + "y"]
    files = [str(folder.write(page(path)).relative_to(tmp_path)) for path in paths]
    assert files[:5] == ["a.md", "A-2.md", "a-3.md", "b.md/c.md", "b-2.md"]
    assert len(set(files)) == len(files)
    assert max(len(name) for name in files) < 110


def test_pages_of_other_hosts_have_a_folder_of_their_own(tmp_path: Path) -> None:
    folder = PageFolder(tmp_path)
    urls = ["https://www.shop.example/a", "https://shop.example/b", "https://img.shop.example/a"]
    files = [str(folder.write({**page(""), "url": url}).relative_to(tmp_path)) for url in urls]
    assert files == ["a.md", "b.md", "img.shop.example/a.md"]


def test_a_file_has_front_matter_and_markdown(tmp_path: Path) -> None:
    title = 'A "title": with # odd\u2028 things \x85 and 😀\n---'
    facts = {"title": title, "description": None, "fetched_at": "2026-01-02T03:04:05.000Z", "duplicate_of": None}
    text = PageFolder(tmp_path).write(page("/p", **facts)).read_text()
    _, head, body = text.split("---\n", 2)
    found = yaml.safe_load(head)
    assert (found["url"], found["title"], found["status"]) == (f"{SHOP}/p", title, 200)
    assert list(found) == ["url", "title", "status", "fetched_at"]
    assert body == "\n# Hi\n"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "docs").symlink_to(tmp_path)
    with pytest.raises(BadRequest, match="leads out of"):
        PageFolder(tmp_path / "pages").write(page("/docs/a"))
    assert not (tmp_path / "a.md").exists()


def test_only_pages_that_were_read_are_written(tmp_path: Path) -> None:
    rows = [page("/a"), page("/b", http_status=404), page("/c", item_status="error", http_status=None)]
    assert write_pages([json.dumps(row).encode() for row in rows], tmp_path / "site") == 1
    assert [file.name for file in (tmp_path / "site").iterdir()] == ["a.md"]
