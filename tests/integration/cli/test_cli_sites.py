"""`scrapeyard sites` against a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import Ended, Stand


class Yard:
    """A folder with a server."""

    def __init__(self, folder: Path) -> None:
        self.stand = Stand(folder)
        self.url = ""

    def __call__(self, *words: str) -> Ended:
        return self.stand.cli("sites", *words, SCRAPEYARD_URL=self.url)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    yard = Yard(tmp_path_factory.mktemp("sites"))
    words = ("up", "--port", "0", "--data-dir", "data", "--scrapers", "scrapers")
    with yard.stand.serving(*words, says=b"listens on ") as url:
        yard.url = url
        yield yard


def test_rules_are_set_changed_and_unset(yard: Yard) -> None:
    ended = yard("set", "shop.example", "--rate", "2.5", "--no-adapt", "--note", "their wish")
    assert ended.status == 0, ended.err
    assert ended.rows[0][:3] == ["shop.example", "2.5/s", "any"]
    assert ended.rows[0][-2:] == ["ignore", "their wish"]
    changed = yard("set", "shop.example", "--robots", "obey", "--concurrency", "3", "--json").json
    assert changed["rules"]["rate"] == 2.5, "what is not named stays"
    assert changed["limits"] | {"rate": 2.5, "adapt": False, "robots": "obey", "concurrency": 3} == changed["limits"]
    assert yard("show", "shop.example").json["rules"] == changed["rules"]
    assert [each["site"] for each in yard("list", "--json").json] == ["shop.example"]
    assert [row[0] for row in yard().rows] == ["shop.example"]
    assert yard("unset", "shop.example", "--json").json["rules"] is None
    empty = yard("list")
    assert (empty.status, empty.out, empty.err.strip()) == (0, "", "no sites")


def test_a_site_can_be_reset(yard: Yard) -> None:
    ended = yard("reset", "other.example")
    assert ended.status == 0
    assert ended.rows[0][:5] == ["other.example", "any", "any", "0", "closed"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("set", "shop.example"), "say what to change"),
        (("set", "www.shop.example", "--rate", "1"), "write shop.example"),
        (("show", "not a site"), "site"),
        (("set", "shop.example", "--rate", "-1"), "rate"),
        (("set", "shop.example", "--robots", "maybe"), "robots"),
    ],
)
def test_what_makes_no_sense_is_refused(yard: Yard, words: tuple[str, ...], says: str) -> None:
    ended = yard(*words)
    assert ended.status == 2
    assert says in ended.err
    assert ended.out == ""
