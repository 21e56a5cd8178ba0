"""Which lane a scraper's work waits in, and which lanes a worker takes from."""

import pytest

from scrapeyard.model.lanes import ScraperLanes
from scrapeyard.queues.messages import LANE

PATTERNS = ("shop/price*", "shop/*", "*/product")
LANES = ScraperLanes(PATTERNS)
SHOP, PRICES, PRODUCTS = "for.shop._", "for.shop.price_", "for._.product"


@pytest.mark.parametrize(
    ("scraper", "lane"),
    [
        ("shop/prices", PRICES),
        ("shop/product", SHOP),
        ("toys/product", PRODUCTS),
        ("toys/list", "default"),
        ("shopping/list", "default"),
        ("builtin/page", "default"),
    ],
)
def test_the_first_pattern_that_matches_counts(scraper: str, lane: str) -> None:
    assert LANES.lane_of(scraper) == lane
    assert LANE.fullmatch(lane)
    assert ScraperLanes().lane_of(scraper) == "default"


@pytest.mark.parametrize(
    ("takes", "lanes"),
    [
        ((), ("default", "slow", PRICES, SHOP, PRODUCTS)),
        (("*",), ("default", "slow", PRICES, SHOP, PRODUCTS)),
        (("shop/*",), (SHOP,)),
        (("*/product", "shop/*"), (PRODUCTS, SHOP)),
        (("!shop/*",), ("default", "slow", PRICES, PRODUCTS)),
        (("*", "!shop/*", "!*/product"), ("default", "slow", PRICES)),
    ],
)
def test_a_worker_takes_from_the_lanes_of_its_patterns(takes: tuple[str, ...], lanes: tuple[str, ...]) -> None:
    assert LANES.takes_fault(takes) == ""
    assert LANES.taken(("default", "slow"), takes) == lanes


def test_every_scraper_has_a_worker_where_one_takes_all_and_where_two_share() -> None:
    ids = ["shop/prices", "shop/product", "toys/product", "toys/list"]
    some, rest = (
        LANES.taken(("default",), ("shop/*", "shop/price*")),
        LANES.taken(("default",), ("!shop/*", "!shop/price*")),
    )
    assert not set(some) & set(rest)
    for scraper in ids:
        assert LANES.lane_of(scraper) in LANES.taken(("default",), ())
        assert LANES.lane_of(scraper) in {*some, *rest}


@pytest.mark.parametrize(
    "bad", ["shop", "Shop/*", "shop/*/x", "/x", "shop/", "!shop/*", "a b/c", f"{'x' * 40}/{'y' * 40}"]
)
def test_what_is_no_pattern_is_named(bad: str) -> None:
    assert "is no pattern" in ScraperLanes((bad,)).pattern_fault()


def test_patterns_that_would_share_a_lane_are_refused() -> None:
    assert "share the lane" in ScraperLanes(("shop_/x", "shop*/x")).pattern_fault()
    assert LANES.pattern_fault() == ""


def test_a_worker_cannot_take_what_nobody_sorts_out() -> None:
    assert "'toys/*' is not in lanes.patterns" in LANES.takes_fault(("toys/*",))
    assert "'!toys/*' is not in lanes.patterns" in LANES.takes_fault(("!toys/*",))
    assert LANES.takes_fault(("shop/*", "!shop/*")) == "nothing is left to take"


def test_a_lane_is_told_by_its_pattern() -> None:
    assert LANES.words(SHOP) == "shop/*"
    assert LANES.words("slow") == "slow"
