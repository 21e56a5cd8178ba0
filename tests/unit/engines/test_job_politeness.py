"""Jobs on public hosts obey robots.txt and keep to a modest rate, unless somebody says otherwise."""

from typing import Any

import pytest

from scrapeyard.engines.http.guard import is_public
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.politeness.memory import MemoryGate
from scrapeyard.engines.politeness.policies import FixedPolicies
from scrapeyard.engines.politeness.stage import RateLimited
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.engines.robots.copies import RobotsCopies
from scrapeyard.engines.robots.stage import Robots
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, FetchPolicy
from scrapeyard.settings import SiteSettings
from scrapeyard.store.ports.overrides import SiteRules
from tests.stages import context_of

PUBLIC = "http://www.shop.example/p/1"
PRIVATE = "http://127.0.0.1:8800/p/1"
JOB = {"job_id": "job_1"}


async def answer(context: FetchContext) -> FetchResponse:
    body = b"User-agent: *\nDisallow: /p/" if context.target.resource == "/robots.txt" else b""
    return FetchResponse(url=context.target.url, status=200, headers=(), body=body, encoding="utf-8", elapsed_ms=1.0)


class Road:
    """The stages of robots.txt and of the gate, whose clock moves when a caller pauses."""

    def __init__(self, *rules: SiteRules, **settings: Any) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        policies = FixedPolicies(SiteSettings(**settings), rules)
        gated = RateLimited(answer, MemoryGate(lambda: self.now), policies)
        self._robots = Robots(gated, RobotsCopies(answer, "scrapeyard"), policies)
        self._gated = gated

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def waits(self, url: str, **caller: Any) -> list[float]:
        for _ in range(3):
            await self._gated(context_of(FetchRequest(url=url), Caller(pause=self.pause, **caller)))
        return self.pauses

    async def obeys(self, url: str, **caller: Any) -> bool:
        try:
            await self._robots(context_of(FetchRequest(url=url), Caller(pause=self.pause, **caller)))
        except FetchFailed as failure:
            return failure.reason is ExitReason.FETCH_ROBOTS
        return False


async def test_jobs_on_public_sites_share_a_modest_rate() -> None:
    assert await Road().waits(PUBLIC, **JOB) == pytest.approx([0.5, 0.5])
    assert await Road(job_rate=4).waits(PUBLIC, **JOB) == pytest.approx([0.25, 0.25])


@pytest.mark.parametrize(
    ("url", "caller", "rules", "settings"),
    [
        (PRIVATE, JOB, (), {}),
        (PUBLIC, {}, (), {}),
        (PUBLIC, {**JOB, "has_rate": True}, (), {}),
        (PUBLIC, JOB, (SiteRules(site="shop.example", rate=0.0),), {}),
        (PUBLIC, JOB, (), {"job_rate": 0}),
    ],
)
async def test_calls_own_hosts_and_rates_that_somebody_set_stay_as_they_are(
    url: str, caller: dict[str, Any], rules: tuple[SiteRules, ...], settings: dict[str, Any]
) -> None:
    assert await Road(*rules, **settings).waits(url, **caller) == []


async def test_a_turn_that_comes_too_late_names_the_site() -> None:
    road = Road(wait_seconds=0)
    with pytest.raises(FetchFailed, match=r"the turn at shop\.example comes in 0\.5 s") as failed:
        await road.waits(PUBLIC, **JOB)
    assert failed.value.details["retry_after"] == pytest.approx(0.5)


ROBOTS: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    (PUBLIC, JOB, {}, True),
    (PRIVATE, JOB, {}, False),
    (PUBLIC, {}, {}, False),
    (PUBLIC, {**JOB, "policy": FetchPolicy(robots="ignore")}, {}, False),
    (PRIVATE, {**JOB, "policy": FetchPolicy(robots="obey")}, {}, True),
    (PUBLIC, JOB, {"job_robots": "ignore"}, False),
    (PUBLIC, {}, {"robots": "obey"}, True),
    (PUBLIC, JOB, {"robots": "obey", "job_robots": "ignore"}, True),
]


@pytest.mark.parametrize(("url", "caller", "settings", "obeys"), ROBOTS)
async def test_who_obeys_robots_txt(url: str, caller: dict[str, Any], settings: dict[str, Any], obeys: bool) -> None:
    assert await Road(**settings).obeys(url, **caller) is obeys


async def test_a_rule_for_the_site_wins_over_the_default_for_jobs() -> None:
    assert not await Road(SiteRules(site="shop.example", robots="ignore")).obeys(PUBLIC, **JOB)


@pytest.mark.parametrize(
    ("host", "public"),
    [
        ("shop.example", True),
        ("8.8.8.8", True),
        ("[2606:4700::1111]", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("[::1]", False),
        ("localhost", False),
        ("shop.localhost", False),
        ("intranet", False),
        ("wiki.internal", False),
    ],
)
def test_which_hosts_are_public(host: str, public: bool) -> None:
    assert is_public(parse_target(f"http://{host}/")) is public
