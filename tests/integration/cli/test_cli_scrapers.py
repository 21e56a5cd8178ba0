"""`scrapeyard scrapers` against a real server: versions, channels, what is out of date."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import Ended, Stand

SCRIPT = "def run(ctx):\n    ctx.state.set('last', 'VERSION')\n    ctx.progress(1, 2, 'half')\n    return 'VERSION'\n"
FILE = """
[repository]
refresh_seconds = 0.2
[repository.source]
type = "folder"
name = "team"
url = "team"
"""


class Yard:
    """A folder with a server over two repositories."""

    def __init__(self, folder: Path) -> None:
        self.stand = Stand(folder)
        self.url = ""
        for version in ("1.4.1", "1.4.2", "2.0.0-rc.1"):
            self.publish(version)
        (folder / "scrapeyard.toml").write_text(FILE)

    def publish(self, version: str) -> None:
        home = self.stand.folder / "team" / version
        home.mkdir(parents=True)
        (home / "scraper.toml").write_text(f'id = "shop/price"\nversion = "{version}"\ndescription = "A price."\n')
        (home / "scraper.py").write_text(SCRIPT.replace("VERSION", version))

    def __call__(self, *words: str) -> Ended:
        return self.stand.cli(*words, SCRAPEYARD_URL=self.url)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    yard = Yard(tmp_path_factory.mktemp("scrapers"))
    words = ("up", "--port", "0", "--data-dir", "data", "--scrapers", "scrapers")
    with yard.stand.serving(*words, says=b"listens on ") as url:
        yard.url = url
        yield yard


def test_the_list_may_be_narrowed(yard: Yard) -> None:
    assert [row[:3] for row in yard("scrapers", "list", "--site", "shop").rows] == [
        ["shop/price", version, ""] for version in ("1.4.1", "1.4.2", "2.0.0-rc.1")
    ]
    assert [row[0] for row in yard("scrapers", "list", "--search", "LAB/").rows] == ["lab/lab"]
    listed = yard("scrapers", "list", "--json").json
    assert {each["id"]: each["source"] for each in listed} == {
        "builtin/actions": "",
        "builtin/document": "",
        "builtin/echo": "",
        "builtin/replay": "",
        "builtin/page": "",
        "builtin/product": "",
        "builtin/select": "",
        "builtin/list": "",
        "builtin/extract": "",
        "builtin/map": "",
        "lab/lab": "scrapers",
        "shop/price": "team",
    }


def test_versions_and_what_a_range_means(yard: Yard) -> None:
    rows = yard("scrapers", "versions", "shop/price").rows
    assert [row[0] for row in rows] == ["2.0.0-rc.1", "1.4.2", "1.4.1"]
    assert {row[2] for row in rows} == {"team"}
    versions = yard("scrapers", "versions", "shop/price", "--json").json
    assert [each["prerelease"] for each in versions] == [True, False, False]
    assert yard("scrapers", "show", "shop/price@1.4.1").json["version"] == "1.4.1"
    assert yard("scrapers", "show", "shop/price@^1.4", "--json").json["version"] == "1.4.2"
    refused = yard("scrapers", "show", "shop/price@9.9.9")
    assert (refused.status, refused.out) == (2, "")


def test_a_channel_is_moved_and_the_move_taken_back(yard: Yard) -> None:
    assert yard("scrape", "shop/price").json == "1.4.2"
    moved = yard("scrapers", "move", "shop/price", "stable", "1.4.1")
    assert (moved.status, moved.rows[0][:2]) == (0, ["stable", "1.4.1"])
    assert yard("scrape", "shop/price").json == "1.4.1"
    assert yard("scrape", "shop/price@^1.4").json == "1.4.2"
    assert [row[1] for row in yard("scrapers", "versions", "shop/price").rows] == ["", "", "stable"]
    assert "moved" in yard("scrapers", "channels", "shop/price").rows[0][2]
    taken_back = yard("scrapers", "unmove", "shop/price", "stable", "--json")
    assert [each["after"] for each in taken_back.json["moves"]] == ["", "1.4.1"]
    assert yard("scrape", "shop/price").json == "1.4.2"
    assert "no channel is set" in yard("scrapers", "channels", "shop/price").err


def test_the_state_of_a_scraper_is_shown_and_removed(yard: Yard) -> None:
    run = yard("scrape", "shop/price@1.4.1", "--json").json
    assert run["progress"] == {"done": 1, "total": 2, "message": "half"}
    assert yard("scrapers", "state", "shop/price").rows[0][0] == "last"
    assert yard("scrapers", "state", "shop/price", "last").json == "1.4.1"
    assert yard("scrapers", "state", "shop/price", "--json").json[0]["key"] == "last"
    gone = yard("scrapers", "state", "shop/price", "last", "--delete")
    assert (gone.status, "no state" in gone.err) == (0, True)
    refused = yard("scrapers", "state", "shop/price", "last")
    assert (refused.status, "keeps nothing under last" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("move", "shop/price", "stable", "9.9.9"), "9.9.9"),
        (("move", "shop/price", "1.4.1", "1.4.1"), "channel"),
        (("move", "builtin/page", "stable", "1.0.0"), "built in"),
        (("move", "price", "stable", "1.0.0"), "not a scraper's id"),
        (("unmove", "shop/none", "stable"), "no scraper"),
        (("versions", "shop/none"), "no scraper"),
    ],
)
def test_what_cannot_be_is_told_and_exits_2(yard: Yard, words: tuple[str, ...], told: str) -> None:
    ended = yard("scrapers", *words)
    assert (ended.status, ended.out) == (2, "")
    assert told in ended.err


def test_a_repository_that_is_away_is_told_on_stderr(yard: Yard) -> None:
    team, gone = yard.stand.folder / "team", yard.stand.folder / "gone"
    shutil.move(team, gone)
    try:
        ended = yard("scrapers", "refresh")
        assert (ended.status, len([row for row in ended.rows if row[0] == "shop/price"])) == (0, 3)
        assert "team may be out of date: the folder cannot be read" in ended.err
        assert "team may be out of date" in yard("scrapers", "show", "shop/price").err
    finally:
        shutil.move(gone, team)
    back = yard("scrapers", "refresh", "--json")
    assert (back.err, all(each["stale"] == "" for each in json.loads(back.out))) == ("", True)
