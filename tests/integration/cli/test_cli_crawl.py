"""`crawl` and `map`: whole sites by the real program, interrupted and resumed, here and on a server."""

import csv
import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import PATIENCE, Stand
from tests.leaks import until
from tests.services.linked_site import LinkedSite, linked_site

SAME = b"<html><head><title>Same</title></head><body><h1>One text</h1><p>Twice on this site.</p></body></html>"
PAGES = {
    "/": ["/a", "/b", "/private/x", "https://other.example/"],
    "/a": ["/a/1", "/same", "/same?again=1", "/"],
    "/b": ["/a", "/gone"],
    "/a/1": ["/deep/1"],
    "/deep/1": ["/deeper/1", "/deeper/2"],
    "/same": [],
    "/same?again=1": [],
    "/lonely": [],
    "/private/x": [],
}
FILES = {
    "/robots.txt": b"User-agent: *\nDisallow: /private/\nSitemap: /map.txt\n",
    "/same": SAME,
    "/same?again=1": SAME,
}
READ = ("/", "/a", "/b", "/a/1", "/deep/1", "/same", "/same?again=1", "/lonely")


@pytest.fixture
def site() -> Iterator[LinkedSite]:
    files = dict(FILES)
    with linked_site(PAGES, files) as site:
        files["/map.txt"] = f"{site.url}/lonely\n{site.url}/a\n".encode()
        yield site


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    stand = Stand(tmp_path)
    yield stand
    assert list(stand.temporary.iterdir()) == [], "a command left temporary files"


def crawl(stand: Stand, site: LinkedSite, *words: str) -> tuple[int, str, str]:
    ended = stand.cli("crawl", f"{site.url}/", "--allow-private", *words)
    return ended.status, ended.out, ended.err


def rows(stand: Stand, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((stand.folder / name).read_text("utf-8-sig"))))


def test_a_site_becomes_a_table_and_the_last_line_tells_what_was_left_out(stand: Stand, site: LinkedSite) -> None:
    status, out, err = crawl(stand, site, "-o", "site.csv", "--json")
    assert status == 0, err
    assert json.loads(out)["source"]["found"] == {"sitemap_urls": 2, "beyond_depth": 2}
    found = {row["url"].removeprefix(site.url): row for row in rows(stand, "site.csv")}
    assert {path for path, row in found.items() if row["http_status"] == "200"} == set(READ)
    assert found["/private/x"]["exit_reason"] == "fetch_robots"
    assert found["/gone"]["exit_reason"] == "gone"
    assert {found["/same"]["duplicate_of"], found["/same?again=1"]["duplicate_of"]} - {""} <= {
        *(f"{site.url}/same", f"{site.url}/same?again=1")
    }
    last = err.splitlines()[-1]
    for words in ("depth 3 reached: 2 links not followed", "from the sitemap", "robots.txt forbids 1 page"):
        assert words in last
    assert "1 page duplicates another" in last
    assert "Obeys robots.txt" in err
    assert not site.asked["/private/x"]
    assert sorted(file.name for file in stand.folder.glob("site*")) == ["site.csv"]


def test_a_site_becomes_a_folder_of_markdown(stand: Stand, site: LinkedSite) -> None:
    status, _, err = crawl(stand, site, "-o", "pages/")
    assert status == 0, err
    files = {str(file.relative_to(stand.folder / "pages")) for file in (stand.folder / "pages").rglob("*.md")}
    assert files == {
        *("index.md", "a.md", "b.md", "a/1.md", "deep/1.md", "same.md", "same-again=1.md", "lonely.md"),
    }
    text = (stand.folder / "pages" / "a.md").read_text()
    assert text.startswith(f'---\nurl: "{site.url}/a"\ntitle: "Page /a"\nstatus: 200\n')
    assert "[to /a/1]" in text


def test_without_a_file_each_page_is_a_line(stand: Stand, site: LinkedSite) -> None:
    words = ("--depth", "1", "--no-sitemap", "--ignore-robots", "--exclude", "/b")
    status, out, err = crawl(stand, site, *words)
    assert status == 0, err
    pages = [json.loads(line) for line in out.splitlines()]
    assert {page["url"].removeprefix(site.url) for page in pages} == {"/", "/a", "/private/x"}
    assert all(page["markdown"] for page in pages)


def test_the_last_line_tells_how_many_links_the_limit_left(stand: Stand, site: LinkedSite) -> None:
    status, out, err = crawl(stand, site, "--no-sitemap", "--limit", "2", "-o", "two.jsonl", "--json")
    assert status == 0, err
    assert json.loads(out)["source"]["found"] == {"beyond_limit": 5}
    assert "the limit of 2 pages was reached, and 5 links beyond it were not followed" in err.splitlines()[-1]


def test_lines_come_while_the_crawl_goes_on(stand: Stand, site: LinkedSite) -> None:
    site.held = frozenset({"/b"})
    with stand.started("crawl", f"{site.url}/", "--allow-private", "--no-sitemap") as process:
        assert process.stdout is not None
        first = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert {page["url"].removeprefix(site.url) for page in first} == {"/", "/a"}
        site.released.set()
        rest, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert len(rest.splitlines()) == 7


def test_an_interrupted_crawl_keeps_its_pages_and_goes_on(stand: Stand, site: LinkedSite) -> None:
    site.held = frozenset({"/a/1"})
    with stand.started("crawl", f"{site.url}/", "--allow-private", "-o", "site.csv") as process:
        # Only a page that has ended leads on to its links: `/gone` stands on `/b` alone.
        until(lambda: site.asked["/a/1"] and site.asked["/gone"], "the pages before the one that hangs have ended")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "go on with --resume" in err.decode().splitlines()[-1]
    had = {row["url"].removeprefix(site.url) for row in rows(stand, "site.csv")}
    assert {"/", "/a", "/b"} <= had < {*READ, "/gone", "/private/x"}
    assert "/a/1" not in had
    assert (stand.folder / "site.csv.crawl").is_dir()
    status, _, err = crawl(stand, site, "-o", "site.csv")
    assert (status, "--resume" in err) == (2, True)
    site.released.set()
    status, _, err = crawl(stand, site, "-o", "site.csv", "--resume", "--rate", "1000")
    assert status == 0, err
    assert "goes on after " in err
    assert "starts at most 1000 pages a second" in err
    assert {row["url"].removeprefix(site.url) for row in rows(stand, "site.csv")} == {*READ, "/gone", "/private/x"}
    assert [site.asked[path] for path in ("/", "/a", "/b")] == [1, 1, 1]
    assert not (stand.folder / "site.csv.crawl").exists()


def test_a_private_host_is_refused_with_the_option_that_allows_it(stand: Stand, site: LinkedSite) -> None:
    ended = stand.cli("crawl", f"{site.url}/", "-o", "site.csv")
    assert ended.status == 1
    assert "--allow-private lets it fetch private" in ended.err


def test_a_killed_crawl_loses_no_page_that_was_read(stand: Stand, site: LinkedSite) -> None:
    site.held = frozenset({"/a/1"})
    with stand.started("crawl", f"{site.url}/", "--allow-private", "-o", "site.csv") as process:
        until(lambda: site.asked["/a/1"], "the crawl comes to the page that hangs")
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
    site.released.set()
    status, _, err = crawl(stand, site, "-o", "site.csv", "--resume")
    assert status == 0, err
    assert {row["url"].removeprefix(site.url) for row in rows(stand, "site.csv")} == {*READ, "/gone", "/private/x"}
    assert site.asked["/"] == 1


def test_a_crawl_on_a_server_writes_the_same_pages(stand: Stand, site: LinkedSite) -> None:
    words = ("up", "--port", "0", "--data-dir", "data")
    with stand.serving(*words, says=b"listens on ", SCRAPEYARD_HTTP__ALLOW_PRIVATE="true") as server:
        status, _, err = crawl(stand, site, "-o", "site.csv", "--on-server", "--url", server)
        assert status == 0, err
        listed = stand.cli("map", f"{site.url}/", "--on-server", "--url", server)
    assert "depth 3 reached: 2 links not followed" in err.splitlines()[-1]
    assert "scrapeyard: Obeys robots.txt and has no limit of its rate; --rate and --ignore-robots change that" in err
    found = {row["url"].removeprefix(site.url) for row in rows(stand, "site.csv")}
    assert found == {*READ, "/gone", "/private/x"}
    assert f"{site.url}/lonely" in listed.out.splitlines()


def test_a_map_lists_the_urls_and_where_they_were_found(stand: Stand, site: LinkedSite) -> None:
    ended = stand.cli("map", f"{site.url}/", "--allow-private")
    assert ended.status == 0, ended.err
    assert ended.out.splitlines() == [site.url + path for path in ("/", "/a", "/b", "/private/x", "/lonely")]
    whole = stand.cli("map", f"{site.url}/", "--allow-private", "--json", "--search", "lone").json
    assert whole["urls"] == [{"url": f"{site.url}/lonely", "source": "sitemap", "found_on": f"{site.url}/map.txt"}]
    cut = stand.cli("map", f"{site.url}/", "--allow-private", "--limit", "2")
    assert (len(cut.out.splitlines()), "there are more" in cut.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("crawl", "https://shop.example/", "-o", "site.doc"), "into a folder"),
        (("crawl", "https://shop.example/", "--resume"), "--resume needs -o"),
        (("crawl", "https://shop.example/", "-o", "x.csv", "--include", "re:("), "include"),
        (("crawl", "https://shop.example/", "-o", "x.csv", "--formats", "song"), "formats"),
        (("crawl", "ftp://shop.example/", "-o", "x.csv"), "write http://… or https://…"),
        (("crawl", "no-such-host.invalid", "-o", "x.csv", "--resume"), "no-such-host.invalid does not resolve"),
    ],
)
def test_what_is_wrong_is_said_and_exits_2(stand: Stand, words: tuple[str, ...], said: str) -> None:
    ended = stand.cli(*words)
    assert ended.status == 2, ended.err
    assert said in ended.err
    assert not list(stand.folder.glob("x.csv*"))
