"""The example scrapers, replayed from their cassettes by the real program: no shop, no network."""

import shutil
from pathlib import Path

import pytest

from tests.integration.cli_stand import EXAMPLES, Stand

NAMES = ("category", "prices", "product", "search", "stock")


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Stand:
    return Stand(tmp_path_factory.mktemp("examples"))


def test_the_shop_has_five() -> None:
    assert sorted(folder.name for folder in (EXAMPLES / "shop").iterdir()) == sorted(NAMES)


@pytest.fixture(scope="module")
def recorded(stand: Stand) -> str:
    """The examples but for those in a browser: what that shows cannot be recorded, and another test runs them."""
    folder = stand.folder / "recorded"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("browser"))
    return str(folder)


def test_every_example_is_certified(stand: Stand, recorded: str) -> None:
    ended = stand.cli("certify", recorded, "--json")
    found = {each["scraper"]: each for each in ended.json}
    templates = ["template/account", "template/picture", "template/quick"]
    assert sorted(found) == ["county/parcel", "example/http", *(f"shop/{name}" for name in NAMES), *templates]
    odd = [point for each in found.values() for point in each["points"] if point["state"] != "ok"]
    assert (ended.status, odd) == (0, [])
    assert all(each["certified"] and each["digest"] and len(each["headroom"]) == 6 for each in found.values())


def test_every_case_passes_and_shows_an_end(stand: Stand, recorded: str) -> None:
    ended = stand.cli("test", recorded, "--json")
    reports = [case for each in ended.json for case in each["cases"]]
    assert (ended.status, [case for case in reports if not case["passed"] or case["warnings"]]) == (0, [])
    assert {case["exit_reason"] for case in reports} == {"succeeded", "skipped", "failed", "retry", "fetch_status"}


def test_a_change_of_the_script_is_noticed(stand: Stand, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "shop" / "product", tmp_path / "product")
    script = tmp_path / "product" / "scraper.py"
    script.write_text(script.read_text().replace('page.text(".sku")', 'page.text(".sku").lower()'))
    ended = stand.cli("test", str(tmp_path / "product"))
    assert ended.status == 1
    assert "ended as bad_result, not as succeeded" in ended.out
    assert "passed: 2, failed: 3" in ended.err
