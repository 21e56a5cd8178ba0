"""Which ways there are for a request, and in what order."""

import pytest

from scrapeyard.engines.escalation.planner import RouteOption, RoutePlanner, SoftBlockHistory, trim
from scrapeyard.engines.escalation.port import NOTHING, Remembered, Tried
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.model import BudgetLimits, FetchPolicy
from scrapeyard.settings import EscalationSettings, ProxyPool

POOLS = (
    ProxyPool(name="racks", urls=("http://10.0.0.1:1",)),
    ProxyPool(name="homes", urls=("http://10.0.0.2:1",), proxy_class="residential"),
    ProxyPool(name="unlock", urls=("http://10.0.0.3:1",), proxy_class="unlocker"),
)
PAGE = FetchRequest(url="https://shop.test/")
ANYONE = Caller()


def ladder(
    *, solver: bool = True, default_pool: str = "none", with_browser: bool = False, **settings: object
) -> RoutePlanner:
    escalation = EscalationSettings.model_validate({"max_ways": 20, **settings})
    return RoutePlanner(
        escalation,
        ProxyPools(POOLS),
        profile="chrome",
        default_pool=default_pool,
        solver=solver,
        browser=with_browser,
    )


def names(rungs: tuple[RouteOption, ...]) -> list[str]:
    return [rung.name for rung in rungs]


def tried(way: str, cost: float, successes: float, failures: float) -> Tried:
    return Tried(way=way, cost=cost, successes=successes, failures=failures, used_at=0)


def test_profiles_then_tiers_then_the_solver() -> None:
    assert names(ladder().rungs(PAGE, ANYONE, NOTHING)) == [
        "chrome",
        "firefox",
        "safari",
        "chrome via racks",
        "chrome via homes",
        "chrome via unlock",
        "solver",
    ]


def test_tiers_below_the_default_pool_are_not_tried() -> None:
    rungs = ladder(default_pool="homes").rungs(PAGE, ANYONE, NOTHING)
    assert names(rungs) == [
        "chrome via homes",
        "firefox via homes",
        "safari via homes",
        "chrome via unlock",
        "solver via homes",
    ]


@pytest.mark.parametrize(
    "caller",
    [
        Caller(job_budget=BudgetLimits(residential_megabytes=0)),
        Caller(policy=FetchPolicy(budget=BudgetLimits(residential_megabytes=0))),
    ],
)
def test_a_budget_of_nothing_leaves_dear_pools_out(caller: Caller) -> None:
    rungs = ladder(solver=False).rungs(PAGE, caller, NOTHING)
    assert names(rungs) == ["chrome", "firefox", "safari", "chrome via racks"]


def test_each_step_costs_more_than_the_one_before() -> None:
    costs = [rung.cost for rung in ladder().rungs(PAGE, ANYONE, NOTHING)]
    assert costs == sorted(costs)


@pytest.mark.parametrize(
    ("request_", "policy", "expected"),
    [
        (FetchRequest(url="https://shop.test/", profile="safari"), FetchPolicy(), {"safari"}),
        (PAGE, FetchPolicy(profile="firefox"), {"firefox"}),
    ],
)
def test_a_fixed_profile_is_the_only_one(request_: FetchRequest, policy: FetchPolicy, expected: set[str]) -> None:
    rungs = ladder().rungs(request_, Caller(policy=policy), NOTHING)
    assert {rung.profile for rung in rungs if rung.kind != "solver"} == expected


def test_a_fixed_proxy_is_the_only_one() -> None:
    rungs = ladder().rungs(FetchRequest(url="https://shop.test/", proxy="homes"), ANYONE, NOTHING)
    assert {rung.pool for rung in rungs} == {"homes"}


def test_few_ways_are_one_of_each_kind() -> None:
    assert names(ladder(max_ways=4).rungs(PAGE, ANYONE, NOTHING)) == ["chrome", "firefox", "chrome via racks", "solver"]
    assert names(ladder(max_ways=3).rungs(PAGE, ANYONE, NOTHING)) == ["chrome", "firefox", "chrome via racks"]


@pytest.mark.parametrize(
    ("solver_url", "last"), [("", ["solver", "browser"]), ("http://127.0.0.1:8191", ["browser", "solver"])]
)
def test_our_own_browser_solves_before_it_merely_looks(solver_url: str, last: list[str]) -> None:
    rungs = ladder(with_browser=True, solver_url=solver_url).rungs(PAGE, ANYONE, NOTHING)
    assert names(rungs)[-2:] == last


def test_a_browser_is_left_among_few_ways() -> None:
    few = names(ladder(with_browser=True, max_ways=4).rungs(PAGE, ANYONE, NOTHING))
    assert few == ["chrome", "firefox", "chrome via racks", "solver", "browser"]


def test_trimming_leaves_short_ladders_alone() -> None:
    rungs = ladder().rungs(PAGE, ANYONE, NOTHING)
    assert trim(rungs, 20) == rungs


def test_what_worked_lately_comes_first_the_cheapest_of_it() -> None:
    known = Remembered(
        tried=(
            tried("chrome", 1, 0, 3),
            tried("chrome via homes", 10, 5, 0),
            tried("chrome via racks", 2, 4, 1),
        )
    )
    assert names(ladder().rungs(PAGE, ANYONE, known)) == [
        "chrome via racks",
        "chrome via homes",
        "firefox",
        "safari",
        "chrome via unlock",
        "solver",
        "chrome",
    ]


def test_the_cheapest_way_is_tried_again_when_its_failures_have_faded() -> None:
    known = Remembered(tried=(tried("chrome", 1, 0, 0.3), tried("chrome via homes", 10, 5, 0)))
    assert names(ladder().rungs(PAGE, ANYONE, known))[:2] == ["chrome", "chrome via homes"]


def test_without_escalation_there_is_one() -> None:
    known = Remembered(tried=(tried("chrome", 1, 0, 3), tried("firefox", 1.1, 3, 0)))
    caller = Caller(policy=FetchPolicy(escalate=False))
    assert names(ladder().rungs(PAGE, caller, NOTHING)) == ["chrome"]
    assert names(ladder().rungs(PAGE, caller, known)) == ["firefox"]


def test_doubts_end_after_three_and_come_back_after_an_hour() -> None:
    now = [0.0]
    doubts = SoftBlockHistory(lambda: now[0])
    for _ in range(3):
        assert doubts.worth_it("shop.test")
        doubts.in_vain("shop.test")
    assert not doubts.worth_it("shop.test")
    assert doubts.worth_it("other.test")
    now[0] += 3601
    assert doubts.worth_it("shop.test")
    doubts.helped("shop.test")
    assert doubts.worth_it("shop.test")
