"""`scrapeyard plan`: what a load needs, and what is refused."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scrapeyard.cli.main import app
from scrapeyard.cli.operations.capacity import read_prices, read_rate, read_share
from scrapeyard.errors import BadRequest

PRICES = """
source = "the invoice of May"
as_of = 2026-05-31
currency = "EUR"
core_hour = 0.04
memory_gb_hour = 0.005
database_core_hour = 0.09
database_gb_month = 0.1
blob_gb_month = 0.02
blob_puts_1000 = 0.005
traffic_gb = 1.0
"""
DAY = ["plan", "--pages", "50e6/day", "--seconds", "1.2"]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def _planned(*words: str) -> dict[str, float]:
    told = CliRunner().invoke(app, [*DAY, *words, "--json"])
    assert told.exit_code == 0, told.output
    needed: dict[str, float] = json.loads(told.stdout)["needed"]
    return needed


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(PRICES)
    return path


def test_slots_follow_littles_law() -> None:
    """579 pages a second of 1.2 seconds keep 695 slots busy; three in four are for jobs, seven in ten in use."""
    needed = _planned("--peak", "1")
    assert needed["workers"] * needed["slots_per_worker"] == pytest.approx(694.4 / 0.7 / 0.75, abs=needed["workers"])


def test_more_of_a_thing_needs_more() -> None:
    plain, browsers, patient, longer = (
        _planned(*words) for words in ((), ("--browser", "5%"), ("--peak", "3"), ("--days", "60"))
    )
    assert browsers["workers"] > plain["workers"]
    assert browsers["contexts_per_worker"] > plain["contexts_per_worker"] == 0
    assert patient["workers"] > plain["workers"]
    assert longer["database_size"] == pytest.approx(2 * plain["database_size"])


def test_without_prices_there_is_no_money() -> None:
    assert not [name for name in _planned() if name.startswith("cost")]
    told = CliRunner().invoke(app, [*DAY])
    assert "money is left out: name your prices with --prices" in told.output


def test_money_is_the_sum_of_its_parts(prices: Path) -> None:
    needed = _planned("--keep-kb", "20", "--browser", "0.05", "--prices", str(prices))
    assert needed["cost"] == pytest.approx(sum(value for name, value in needed.items() if name.startswith("cost_")))
    assert needed["cost_blobs"] > 0


def test_calls_need_gateways() -> None:
    assert _planned("--calls")["gateways"] > _planned()["gateways"] == 2


def test_prices_are_told_with_their_origin(prices: Path) -> None:
    assert _planned("--prices", str(prices))["cost_traffic"] == pytest.approx(5120 * 30, rel=0.01)
    told = CliRunner().invoke(app, [*DAY, "--prices", str(prices)])
    assert "prices of the invoice of May, 2026-05-31" in told.output


@pytest.mark.parametrize("text", ["", "many", "1/year", "-5/s", "nan/s", "inf/day", "2e6/s", "0/day"])
def test_rates_that_are_none(text: str) -> None:
    with pytest.raises(BadRequest):
        read_rate(text)


@pytest.mark.parametrize("text", ["", "half", "101%", "-1%", "1.2", "nan"])
def test_shares_that_are_none(text: str) -> None:
    with pytest.raises(BadRequest):
        read_share(text)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("core_hour", "core_hour = -1"),
        ("core_hour", "core_hour = 'x'"),
        ("core_hour", ""),
        ("core_hour", "["),
        ("traffic_gb", "traffic_gb = inf"),
        ("traffic_gb", "traffic_gb = 1\ncores = 1"),
        ("as_of", ""),
        ("as_of", "as_of = 'May'"),
        ("source", ""),
    ],
)
def test_price_lists_that_are_none(key: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(re.sub(f"^{key} = .*$", text, PRICES, flags=re.MULTILINE))
    with pytest.raises(BadRequest):
        read_prices(path)


def test_a_price_list_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text("#" * 70_000)
    with pytest.raises(BadRequest, match="larger than"):
        read_prices(path)
    with pytest.raises(BadRequest, match="No such file"):
        read_prices(tmp_path / "none.toml")


def test_a_machine_too_small_for_a_worker() -> None:
    told = CliRunner().invoke(app, [*DAY, "--cores", "64", "--memory-gb", "1"])
    assert isinstance(told.exception, BadRequest)
