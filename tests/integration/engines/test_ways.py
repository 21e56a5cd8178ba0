"""The stage that chooses ways, end to end: a real client, sites that block, and a solver's protocol."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.escalation import escalation, stage
from scrapeyard.engines.escalation import redis as redis_ways
from scrapeyard.engines.escalation.memory import MemoryWays
from scrapeyard.engines.escalation.port import WayMemory
from scrapeyard.engines.escalation.redis import RedisWays
from scrapeyard.engines.escalation.stage import Ways
from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.http.url import Address
from scrapeyard.engines.ledger import OwnLedgers
from scrapeyard.engines.port import PLAIN, Caller, FetchRequest, FetchResponse, Route
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.engines.solver.flaresolverr import FlareSolverr
from scrapeyard.errors import FetchFailed
from scrapeyard.gateway import sites
from scrapeyard.model import BudgetLimits, ExitReason, FetchPolicy
from scrapeyard.settings import BudgetSettings, EscalationSettings, HttpSettings, ProxyPool
from tests.leaks import PATIENCE
from tests.sites.flaresolverr import CHALLENGE, PAGE, ChallengedSite, FlareSolverrSite
from tests.sites.site import Answer, Asked, Site, page
from tests.stages import context_of

ALLOWED = HttpSettings(allow_hosts=("*.test", "127.0.0.0/8"))
BLOCKED = b"<html><body><h1>Access denied</h1><p>You have been blocked by our security system.</p></body></html>"
HTML: dict[str, Any] = {"content_type": "text/html"}
NO_POLICY = FetchPolicy()


async def resolve(host: str, port: int) -> list[Address]:
    """Every name of ours is on loopback."""
    if host.endswith(".test"):
        return [IPv4Address("127.0.0.1")]
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@dataclass(kw_only=True)
class Client:
    """The real client, with the ways it was sent, and the time for each."""

    engine: WreqEngine
    ways: list[Route] = field(default_factory=list)
    seconds: list[float | None] = field(default_factory=list)
    failing: dict[str, FetchFailed] = field(default_factory=dict)
    """By the exit's name: what happens instead of a fetch through it."""

    async def __call__(self, context: FetchContext, way: Route = PLAIN) -> FetchResponse:
        self.ways.append(way)
        self.seconds.append(context.request.timeout_seconds)
        if way.proxy is not None:
            if way.proxy.name in self.failing:
                raise self.failing[way.proxy.name]
            # Exits of these tests are names only; the request goes straight to the site and says which it was.
            asked = context.request
            request = FetchRequest(url=asked.url, headers={**asked.headers, "x-exit": way.proxy.name})
            context = replace(context, request=request)
            way = Route(profile=way.profile, cookies=way.cookies, user_agent=way.user_agent)
        return await self.engine(context, way)


@dataclass(kw_only=True)
class Stand:
    """The stage and what is around it."""

    ways: Ways
    client: Client
    pools: ProxyPools
    memory: WayMemory

    async def told(self, site: str) -> dict[str, Any]:
        """What `/api/sites` shows of its ways."""
        return sites.ways(await self.memory.recall(site, fresh=True))

    async def get(self, url: str, policy: FetchPolicy = NO_POLICY, **asked: Any) -> FetchResponse:
        return await self.ways(context_of(FetchRequest(url=url, **asked), Caller(policy=policy)))


@asynccontextmanager
async def standing(
    settings: EscalationSettings,
    *,
    pools: tuple[ProxyPool, ...] = (),
    memory: WayMemory | None = None,
    budgets: Budgets | None = None,
) -> AsyncIterator[Stand]:
    engine = WreqEngine(ALLOWED, resolve=resolve)
    client = Client(engine=engine)
    memory = memory or MemoryWays(settings.remember_seconds)
    dns = GuardedDns(ALLOWED, resolve=resolve)
    solver = FlareSolverr(settings, dns=dns, max_bytes=1_000_000) if settings.solver_url else None
    exits = ProxyPools(pools)
    now = time.time()
    ways = Ways(
        client,
        settings,
        memory=memory,
        pools=exits,
        profile="chrome",
        solver=solver,
        budgets=budgets,
        clock=lambda: now,  # it stands: what rests for a while does so for the whole test
    )
    await engine.start()
    await ways.start()
    try:
        yield Stand(ways=ways, client=client, pools=exits, memory=memory)
    finally:
        await ways.stop()
        await ways.stop()
        await engine.stop()


def unless(answers: dict[str, bytes], otherwise: bytes = BLOCKED, *, status: int = 403) -> Answer:
    """A good page for who shows a word in one of the headers `user-agent` and `x-exit`; a refusal for others."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        shown = asked.headers.get("user-agent", "") + " " + asked.headers.get("x-exit", "")
        body = next((body for word, body in answers.items() if word in shown), None)
        await page(body or otherwise, status=200 if body else status, **HTML)(asked, writer)

    return answer


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        yield site


@pytest.fixture
async def challenged() -> AsyncIterator[ChallengedSite]:
    async with ChallengedSite() as site:
        yield site


@pytest.fixture
async def solver(challenged: ChallengedSite) -> AsyncIterator[FlareSolverrSite]:
    async with FlareSolverrSite(challenged=challenged) as solver:
        yield solver


def solving(solver: FlareSolverrSite, **settings: Any) -> EscalationSettings:
    return EscalationSettings(solver_url=solver.url, solver_seconds=600, profiles=("chrome", "firefox"), **settings)


async def test_a_page_that_is_not_blocked_takes_one_request(site: Site) -> None:
    site.routes["/"] = page(PAGE, **HTML)
    async with standing(EscalationSettings()) as stand:
        response = await stand.get(site.url("/", "shop.test"))
    assert (response.status, response.way, len(site.asked)) == (200, "chrome", 1)


async def test_another_profile_is_tried_and_remembered(site: Site) -> None:
    site.routes["/"] = unless({"Firefox": PAGE})
    async with standing(EscalationSettings()) as stand:
        first = await stand.get(site.url("/", "shop.test"))
        second = await stand.get(site.url("/", "www.shop.test"))
        told = await stand.told("shop.test")
    assert (first.way, second.way, len(site.asked)) == ("firefox", "firefox", 3)
    counts = {each["way"]: (round(each["successes"]), round(each["failures"])) for each in told["ways"]}
    assert counts == {"chrome": (0, 1), "firefox": (2, 0)}


async def test_when_nothing_helps_the_error_tells_what_was_tried(site: Site) -> None:
    site.routes["/"] = page(BLOCKED, status=403, **HTML)
    async with standing(EscalationSettings()) as stand:
        with pytest.raises(FetchFailed) as caught:
            await stand.get(site.url("/", "shop.test"))
    assert (caught.value.reason, caught.value.site_status) == (ExitReason.FETCH_BLOCKED, 403)
    assert [each["way"] for each in caught.value.details["tried"]] == ["chrome", "firefox", "safari"]
    assert "shop.test refuses us" in caught.value.message


async def test_a_challenge_without_a_solver_is_a_captcha(challenged: ChallengedSite) -> None:
    async with standing(EscalationSettings(profiles=("chrome",))) as stand:
        with pytest.raises(FetchFailed) as caught:
            await stand.get(challenged.site.url("/page", "shop.test"))
    assert caught.value.reason is ExitReason.FETCH_CAPTCHA
    assert caught.value.details["vendor"] == "cloudflare"


@pytest.mark.parametrize(
    ("settings", "policy"),
    [
        (EscalationSettings(), FetchPolicy(escalate=False)),
        (EscalationSettings(enabled=False), FetchPolicy()),
        (EscalationSettings(max_ways=1), FetchPolicy()),
    ],
)
async def test_without_escalation_the_first_way_is_the_last_and_a_block_is_still_known(
    site: Site, settings: EscalationSettings, policy: FetchPolicy
) -> None:
    site.routes["/"] = page(BLOCKED, status=403, **HTML)
    async with standing(settings) as stand:
        with pytest.raises(FetchFailed) as caught:
            await stand.get(site.url("/", "shop.test"), policy)
    assert (caught.value.reason, len(site.asked)) == (ExitReason.FETCH_BLOCKED, 1)


async def test_policy_may_ask_for_escalation_where_the_operator_has_none(site: Site) -> None:
    site.routes["/"] = unless({"Firefox": PAGE})
    async with standing(EscalationSettings(enabled=False)) as stand:
        response = await stand.get(site.url("/", "shop.test"), FetchPolicy(escalate=True))
    assert response.way == "firefox"


async def test_what_the_request_fixes_is_kept(site: Site) -> None:
    site.routes["/"] = unless({"Firefox": PAGE, "dear": PAGE})
    pools = (ProxyPool(name="dear", urls=("http://10.0.0.1:1",)),)
    async with standing(EscalationSettings(), pools=pools) as stand:
        with pytest.raises(FetchFailed) as caught:
            await stand.get(site.url("/", "shop.test"), profile="chrome", proxy="none")
    assert [each["way"] for each in caught.value.details["tried"]] == ["chrome"]


async def test_proxy_tiers_come_after_profiles_the_cheapest_first(site: Site) -> None:
    site.routes["/"] = unless({"homes": PAGE})
    pools = (
        ProxyPool(name="racks", urls=("http://10.0.0.1:1",)),
        ProxyPool(name="homes", urls=("http://10.0.0.2:1",), proxy_class="residential"),
    )
    async with standing(EscalationSettings(profiles=("chrome", "firefox")), pools=pools) as stand:
        response = await stand.get(site.url("/", "shop.test"))
        again = await stand.get(site.url("/", "shop.test"))
    exits = [way.proxy.name.partition("/")[0] if way.proxy else way.profile for way in stand.client.ways]
    assert exits == ["chrome", "firefox", "racks", "homes", "homes"]
    assert (response.way, again.way) == ("chrome via homes", "chrome via homes")


async def test_a_proxy_that_fails_leads_to_another_exit(site: Site) -> None:
    site.routes["/"] = page(PAGE, **HTML)
    pools = (ProxyPool(name="racks", urls=("http://10.0.0.1:1", "http://10.0.0.2:1")),)
    async with standing(EscalationSettings(), pools=pools) as stand:
        names = {stand.pools.choose("racks").name for _ in range(4)}
        bad = sorted(names)[0]
        stand.client.failing[bad] = FetchFailed(ExitReason.FETCH_PROXY, "the proxy refused")
        got = [await stand.get(site.url("/", "shop.test"), proxy="racks", method="GET") for _ in range(4)]
    assert [response.status for response in got] == [200] * 4
    assert bad in [way.proxy.name for way in stand.client.ways if way.proxy]


async def test_when_every_exit_fails_the_proxy_is_to_blame(site: Site) -> None:
    pools = (ProxyPool(name="racks", urls=("http://10.0.0.1:1",)),)
    async with standing(EscalationSettings(), pools=pools) as stand:
        name = stand.pools.choose("racks").name
        stand.client.failing[name] = FetchFailed(ExitReason.FETCH_PROXY, "the proxy refused")
        with pytest.raises(FetchFailed) as caught:
            await stand.get(site.url("/", "shop.test"), proxy="racks", profile="chrome")
    assert caught.value.reason is ExitReason.FETCH_PROXY
    assert len(caught.value.details["tried"]) == 2


async def test_a_dead_pool_does_not_take_the_solvers_place(
    challenged: ChallengedSite, solver: FlareSolverrSite
) -> None:
    pools = (ProxyPool(name="racks", urls=("http://10.0.0.1:1", "http://10.0.0.2:1")),)
    async with standing(solving(solver, max_ways=4), pools=pools) as stand:
        for name in {stand.pools.choose("racks").name for _ in range(4)}:
            stand.client.failing[name] = FetchFailed(ExitReason.FETCH_PROXY, "the proxy refused")
        response = await stand.get(challenged.site.url("/page", "shop.test"))
    assert (response.body, response.way) == (PAGE, "chrome131 with a clearance")
    tried = [each["way"] for each in response.tried]
    assert tried == ["chrome", "firefox", "chrome via racks", "chrome via racks"]


async def test_what_must_not_be_sent_twice_is_not(site: Site) -> None:
    site.routes["/form"] = page(BLOCKED, status=403, **HTML)
    async with standing(EscalationSettings()) as stand:
        with pytest.raises(FetchFailed) as caught:
            await stand.get(site.url("/form", "shop.test"), method="POST", body=b"a=1")
    assert (caught.value.reason, len(site.asked)) == (ExitReason.FETCH_BLOCKED, 1)


async def test_what_never_reached_the_site_may_be_sent_again(site: Site) -> None:
    site.routes["/form"] = page(PAGE, **HTML)
    pools = (ProxyPool(name="racks", urls=("http://10.0.0.1:1", "http://10.0.0.2:1")),)
    async with standing(EscalationSettings(), pools=pools) as stand:
        name = stand.pools.choose("racks").name
        stand.client.failing[name] = FetchFailed(ExitReason.FETCH_PROXY, "CONNECT was refused")
        for _ in range(2):
            response = await stand.get(site.url("/form", "shop.test"), method="POST", body=b"a=1", proxy="racks")
            assert response.status == 200
    assert len(site.asked) == 2


async def test_a_plain_403_is_handed_out_when_every_way_gets_it_and_then_no_more_are_tried(site: Site) -> None:
    site.routes["/"] = page(b"<html><body><p>Nothing to see in this folder.</p></body></html>", status=403, **HTML)
    async with standing(EscalationSettings(profiles=("chrome", "firefox"))) as stand:
        got = [await stand.get(site.url("/", "shop.test")) for _ in range(5)]
    assert [response.status for response in got] == [403] * 5
    assert len(site.asked) == 2 + 2 + 2 + 1 + 1


async def test_a_plain_403_that_another_way_gets_past_was_a_block(site: Site) -> None:
    site.routes["/"] = unless({"Firefox": PAGE}, b"<html><body><p>Nothing to see in this folder.</p></body></html>")
    async with standing(EscalationSettings()) as stand:
        response = await stand.get(site.url("/", "shop.test"))
        again = await stand.get(site.url("/", "shop.test"))
    assert (response.way, again.way, len(site.asked)) == ("firefox", "firefox", 3)


async def test_a_rate_limit_is_handed_out_and_not_escalated(site: Site) -> None:
    site.routes["/"] = page(b"<h1>Too many requests</h1>", status=429, retry_after="3", **HTML)
    async with standing(EscalationSettings()) as stand:
        response = await stand.get(site.url("/", "shop.test"))
    assert (response.status, len(site.asked)) == (429, 1)


async def test_a_429_that_is_a_captcha_is_escalated(site: Site) -> None:
    body = b"<html><body><div id='px-captcha'></div><script src='//captcha.px-cdn.net/a.js'></script></body></html>"
    site.routes["/"] = unless({"Firefox": PAGE}, body, status=429)
    async with standing(EscalationSettings()) as stand:
        response = await stand.get(site.url("/", "shop.test"))
    assert response.way == "firefox"


async def test_the_time_that_was_asked_for_covers_all_ways(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that the first answer moves until half a second is left."""
    now, gone = 0.0, asyncio.Event()
    for module in (stage, escalation):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))

    async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal now
        if now:
            await asked.gone()
            gone.set()
            return
        now = PATIENCE - 0.5
        await page(BLOCKED, status=403, **HTML)(asked, writer)

    site.routes["/"] = slow
    async with standing(EscalationSettings()) as stand, asyncio.timeout(PATIENCE):
        with pytest.raises(FetchFailed) as caught:
            await stand.get(site.url("/", "shop.test"), timeout_seconds=PATIENCE)
        assert stand.client.seconds == [PATIENCE, 0.5]
        if len(site.asked) > 1:  # a machine that is busy may not have sent it before the time was over
            await gone.wait()
    assert caught.value.reason is ExitReason.FETCH_TIMEOUT


async def test_a_challenge_is_solved_once_and_plain_http_passes_after_it(
    challenged: ChallengedSite, solver: FlareSolverrSite
) -> None:
    url = challenged.site.url("/page", "shop.test")
    async with standing(solving(solver)) as stand:
        first = await stand.get(url)
        before = challenged.challenged
        rest = [await stand.get(url) for _ in range(20)]
        told = await stand.told("shop.test")
    assert {response.body for response in (first, *rest)} == {PAGE}
    assert len(solver.asked("request.get")) == 1
    assert challenged.challenged == before  # nobody was challenged again
    assert {response.way for response in rest} == {"chrome131 with a clearance"}
    assert {response.strategy for response in rest} == {"clearance"}
    assert [each["host"] for each in told["clearances"]] == ["shop.test"]
    assert "cf_clearance" not in str(told)


async def test_a_clearance_that_dies_is_solved_again_once(challenged: ChallengedSite, solver: FlareSolverrSite) -> None:
    url = challenged.site.url("/page", "shop.test")
    async with standing(solving(solver)) as stand:
        await stand.get(url)
        challenged.revoke()
        rest = [await stand.get(url) for _ in range(5)]
    assert all(response.body == PAGE for response in rest)
    assert len(solver.asked("request.get")) == 2


async def test_fifty_blocked_fetches_cause_one_solve(challenged: ChallengedSite, solver: FlareSolverrSite) -> None:
    url = challenged.site.url("/page", "shop.test")
    solver.gate.clear()
    async with standing(solving(solver)) as stand, asyncio.timeout(PATIENCE):
        fetches = [asyncio.create_task(stand.get(url)) for _ in range(50)]
        await challenged.site.until(lambda: challenged.challenged >= 100)  # each by two profiles
        fetches[0].cancel()  # whoever began the solve may go; the others still get its clearance
        solver.gate.set()
        got = await asyncio.gather(*fetches, return_exceptions=True)
    pages = [response for response in got if isinstance(response, FetchResponse)]
    assert [response.body for response in pages] == [PAGE] * 49
    assert len(solver.asked("request.get")) == 1


async def test_a_failed_solve_is_shared_and_not_tried_again_at_once(
    challenged: ChallengedSite, solver: FlareSolverrSite
) -> None:
    solver.error = "Error: Error solving the challenge. Timeout after 60.0 seconds."
    url = challenged.site.url("/page", "shop.test")
    async with standing(solving(solver)) as stand:
        got = await asyncio.gather(*(stand.get(url) for _ in range(10)), return_exceptions=True)
        got.append(await asyncio.gather(stand.get(url), return_exceptions=True))  # type: ignore[arg-type]
    reasons = {error.reason for error in got if isinstance(error, FetchFailed)}
    assert reasons == {ExitReason.FETCH_CAPTCHA}
    assert len(solver.asked("request.get")) == 1


@pytest.fixture
def patient_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is slow to answer is not taken for one that is away."""
    monkeypatch.setattr(redis_ways, "ANSWER_SECONDS", PATIENCE)


@pytest.mark.usefixtures("patient_ways")
async def test_the_clearance_is_shared_by_workers(
    challenged: ChallengedSite, solver: FlareSolverrSite, redis_url: str
) -> None:
    url, settings = challenged.site.url("/page", "shop.test"), solving(solver)
    one, two = (RedisWays(redis_url, settings.remember_seconds) for _ in range(2))
    async with standing(settings, memory=one) as first, standing(settings, memory=two) as second:
        await first.get(url)
        before = challenged.challenged
        got = await asyncio.gather(*(second.get(url) for _ in range(10)))
    assert {response.way for response in got} == {"chrome131 with a clearance"}
    assert (len(solver.asked("request.get")), challenged.challenged) == (1, before)


@pytest.mark.usefixtures("patient_ways")
async def test_two_workers_at_once_solve_once(
    challenged: ChallengedSite, solver: FlareSolverrSite, redis_url: str
) -> None:
    url, settings = challenged.site.url("/page", "shop.test"), solving(solver)
    solver.gate.clear()
    one, two = (RedisWays(redis_url, settings.remember_seconds) for _ in range(2))
    async with (
        standing(settings, memory=one) as first,
        standing(settings, memory=two) as second,
        asyncio.timeout(PATIENCE),
    ):
        fetches = [asyncio.create_task(stand.get(url)) for stand in (first, second) for _ in range(5)]
        await challenged.site.until(lambda: challenged.challenged >= 20)
        await solver.site.until(lambda: len(solver.site.asked) >= 1)
        solver.gate.set()
        got = await asyncio.gather(*fetches)
    assert all(response.body == PAGE for response in got)
    assert len(solver.asked("request.get")) == 1


async def test_the_page_is_the_sites_own_and_not_the_browsers_rendering(
    challenged: ChallengedSite, solver: FlareSolverrSite
) -> None:
    challenged.body, challenged.content_type = b'{"price": 3}', "application/json"
    async with standing(solving(solver)) as stand:
        response = await stand.get(challenged.site.url("/page", "shop.test"))
    assert ("content-type", "application/json") in response.headers


async def test_without_cookies_the_solvers_page_serves(challenged: ChallengedSite, solver: FlareSolverrSite) -> None:
    solver.no_cookies = True
    async with standing(solving(solver)) as stand:
        response = await stand.get(challenged.site.url("/page", "shop.test"))
    assert (response.body, response.way) == (PAGE, "solver")


async def test_a_solver_that_sees_the_challenge_itself_has_not_helped(
    challenged: ChallengedSite, solver: FlareSolverrSite
) -> None:
    solver.no_cookies, challenged.body = True, CHALLENGE
    async with standing(solving(solver)) as stand:
        with pytest.raises(FetchFailed) as caught:
            await stand.get(challenged.site.url("/page", "shop.test"))
    assert caught.value.reason is ExitReason.FETCH_CAPTCHA
    assert [each["way"] for each in caught.value.details["tried"]] == ["chrome", "firefox", "solver"]


NGINX = b"<html><head><title>403 Forbidden</title></head><body><center><h1>403 Forbidden</h1></center></body></html>"
MEMBERS = b"<html><body><h1>Members only</h1><p>You are not authorized to view this page.</p></body></html>"


@pytest.mark.parametrize("refusal", [NGINX, MEMBERS, b"Forbidden", BLOCKED], ids=["nginx", "members", "word", "block"])
async def test_a_sites_own_refusal_never_leads_to_the_solver(
    challenged: ChallengedSite, solver: FlareSolverrSite, refusal: bytes
) -> None:
    site = challenged.site
    site.routes |= {"/members": page(refusal, status=403, **HTML), "/open": page(PAGE, **HTML)}
    async with standing(solving(solver)) as stand:
        for _ in range(4):
            try:
                status = (await stand.get(site.url("/members", "shop.test"))).status
            except FetchFailed as error:
                status = error.site_status or 0
            assert status == 403
        others = [await stand.get(site.url("/open", "shop.test")) for _ in range(5)]
    assert solver.said == []
    assert {(other.status, "solver" in other.way) for other in others} == {(200, False)}


async def test_a_refusal_behind_the_challenge_keeps_its_status(
    challenged: ChallengedSite, solver: FlareSolverrSite
) -> None:
    """The site lets our clearance in and refuses this page to everybody."""
    challenged.status, challenged.body = 403, NGINX
    async with standing(solving(solver)) as stand:
        got = [await stand.get(challenged.site.url("/page", "shop.test")) for _ in range(3)]
    assert [response.status for response in got] == [403] * 3
    assert len(solver.asked("request.get")) == 1


async def test_pages_that_are_not_challenged_do_not_go_through_the_solver(
    challenged: ChallengedSite, solver: FlareSolverrSite
) -> None:
    challenged.site.routes["/open"] = page(PAGE, **HTML)
    solver.no_cookies = True
    async with standing(solving(solver)) as stand:
        solved = await stand.get(challenged.site.url("/page", "shop.test"))
        others = [await stand.get(challenged.site.url("/open", "shop.test")) for _ in range(5)]
    assert solved.way == "solver"
    assert [other.way for other in others] == ["chrome"] * 5
    assert len(solver.asked("request.get")) == 1


async def test_a_solver_that_shows_the_refused_page_has_not_helped(
    challenged: ChallengedSite, solver: FlareSolverrSite
) -> None:
    """It calls every page 200, also one that a status of 403 made a block."""
    captcha = b"<html><body><p>Sorry. Please prove that you are human.</p>" + b"<p>Our rules.</p>" * 500
    challenged.site.routes["/page"] = page(captcha, status=403, **HTML)
    solver.no_cookies, challenged.body = True, captcha
    async with standing(solving(solver)) as stand:
        with pytest.raises(FetchFailed) as caught:
            await stand.get(challenged.site.url("/page", "shop.test"))
    assert (caught.value.reason, len(solver.asked("request.get"))) == (ExitReason.FETCH_CAPTCHA, 1)


async def test_plain_http_only_means_no_solver(challenged: ChallengedSite, solver: FlareSolverrSite) -> None:
    async with standing(solving(solver)) as stand:
        with pytest.raises(FetchFailed):
            await stand.get(challenged.site.url("/page", "shop.test"), engine="http")
    assert solver.said == []


async def test_the_solver_at_once_asks_nobody_else(challenged: ChallengedSite, solver: FlareSolverrSite) -> None:
    async with standing(solving(solver)) as stand:
        response = await stand.get(
            challenged.site.url("/form", "shop.test"), engine="solver", method="POST", body=b"a=1"
        )
    assert (response.way, challenged.challenged, stand.client.ways) == ("solver", 0, [])
    assert solver.said[0] | {"maxTimeout": 0} == {
        "cmd": "request.post",
        "url": challenged.site.url("/form", "shop.test"),
        "postData": "a=1",
        "maxTimeout": 0,
    }


async def test_the_solver_at_once_without_one_says_what_to_set(site: Site) -> None:
    async with standing(EscalationSettings()) as stand:
        with pytest.raises(FetchFailed, match="FLARESOLVERR_URL"):
            await stand.get(site.url("/", "shop.test"), engine="solver")


async def test_a_solver_that_is_away_leaves_the_block(challenged: ChallengedSite, solver: FlareSolverrSite) -> None:
    settings = solving(solver)
    await solver.site.__aexit__()
    async with standing(settings) as stand:
        with pytest.raises(FetchFailed) as caught:
            await stand.get(challenged.site.url("/page", "shop.test"))
    assert caught.value.reason is ExitReason.FETCH_CAPTCHA
    assert "does not answer" in caught.value.details["tried"][-1]["message"]


async def test_the_solver_counts_against_the_budget(challenged: ChallengedSite, solver: FlareSolverrSite) -> None:
    url, caller = challenged.site.url("/page", "shop.test"), Caller(policy=FetchPolicy(budget=BudgetLimits(requests=1)))
    budgets = Budgets(BudgetSettings(), OwnLedgers())
    async with standing(solving(solver), budgets=budgets) as stand:
        await stand.ways(context_of(FetchRequest(url=url), caller))
        assert (caller.ledger.spent.requests, caller.ledger.spent.bytes) == (1, len(PAGE))
        await stand.ways.forget("shop.test")
        with pytest.raises(FetchFailed) as caught:
            await stand.ways(context_of(FetchRequest(url=url), caller))
    assert caught.value.details["tried"][-1]["reason"] == "fetch_budget"
    assert len(solver.asked("request.get")) == 1


async def test_a_clearance_is_not_used_against_what_the_request_says(
    challenged: ChallengedSite, solver: FlareSolverrSite
) -> None:
    url = challenged.site.url("/page", "shop.test")
    async with standing(solving(solver)) as stand:
        await stand.get(url)
        with pytest.raises(FetchFailed):
            await stand.get(url, headers={"user-agent": "mine"}, engine="http")
    assert stand.client.ways[-1].user_agent == ""


async def test_a_page_that_is_kept_piece_by_piece_is_kept_from_the_solver_too(
    challenged: ChallengedSite, solver: FlareSolverrSite
) -> None:
    kept: list[bytes] = []

    async def keep(pieces: AsyncIterator[bytes], _kind: str) -> int:
        kept[:] = [piece async for piece in pieces]
        return sum(map(len, kept))

    async with standing(solving(solver)) as stand:
        response = await stand.get(challenged.site.url("/page", "shop.test"), engine="solver", keep=keep)
    assert (response.kept, response.body, b"".join(kept)) == (len(PAGE), b"", PAGE)


RACKS_AND_HOMES = (
    ProxyPool(name="racks", urls=("http://10.0.0.1:1",)),
    ProxyPool(name="homes", urls=("http://10.0.0.2:1",), proxy_class="residential"),
    ProxyPool(name="keys", urls=("http://10.0.0.3:1",), proxy_class="unlocker"),
)


@pytest.mark.parametrize(
    ("allowed", "tried"), [(None, {"racks", "homes"}), (True, {"racks", "homes"}), (False, {"racks"})]
)
async def test_a_block_leads_to_residential_proxies_only_where_they_are_allowed(
    site: Site, allowed: bool | None, tried: set[str]
) -> None:
    site.routes["/"] = unless({"homes": PAGE})
    policy = FetchPolicy(allow_residential=allowed)
    async with standing(EscalationSettings(max_ways=6), pools=RACKS_AND_HOMES) as stand:
        try:
            body = (await stand.get(site.url("/", "shop.test"), policy)).body
        except FetchFailed as error:
            body = error.reason.value.encode()
        used = {way.proxy.name.partition("/")[0] for way in stand.client.ways if way.proxy is not None}
    assert used == tried
    assert body == (PAGE if "homes" in tried else b"fetch_blocked")


@pytest.mark.parametrize("pool", ["homes", "keys"])
async def test_a_residential_pool_by_name_is_refused_where_it_is_not_allowed(site: Site, pool: str) -> None:
    site.routes["/"] = page(PAGE, **HTML)
    async with standing(EscalationSettings(), pools=RACKS_AND_HOMES) as stand:
        with pytest.raises(FetchFailed, match="allow_residential") as caught:
            await stand.get(site.url("/", "shop.test"), FetchPolicy(allow_residential=False), proxy=pool)
    assert caught.value.reason is ExitReason.FETCH_NOT_ALLOWED
    assert not site.asked
