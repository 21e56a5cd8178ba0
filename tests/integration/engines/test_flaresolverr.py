"""FlareSolverr's protocol over a real connection: what is said, what comes back, and what goes wrong."""

import asyncio
import socket
from collections.abc import AsyncIterator
from ipaddress import IPv4Address
from typing import Any

import pytest

from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.http.url import Address
from scrapeyard.engines.port import Caller, FetchRequest, Proxy
from scrapeyard.engines.solver.flaresolverr import FlareSolverr
from scrapeyard.engines.solver.port import Solved, SolverAway
from scrapeyard.errors import FetchFailed, SettingsInvalid
from scrapeyard.model import ExitReason, Scraper, ScraperRef
from scrapeyard.settings import EscalationSettings, HttpSettings
from tests.leaks import PATIENCE
from tests.sites.flaresolverr import BROWSER, PAGE, ChallengedSite, FlareSolverrSite

URL = "http://shop.test/page"
HTTP = HttpSettings(allow_hosts=("shop.test",))


async def resolve(host: str, port: int) -> list[Address]:
    if host.endswith(".test"):
        return [IPv4Address("127.0.0.1")]
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@pytest.fixture
async def door() -> AsyncIterator[FlareSolverrSite]:
    async with ChallengedSite() as challenged, FlareSolverrSite(challenged=challenged) as door:
        yield door


def make(door: FlareSolverrSite, **settings: Any) -> FlareSolverr:
    escalation = EscalationSettings(solver_url=door.url, **settings)
    return FlareSolverr(escalation, dns=GuardedDns(HTTP, resolve=resolve), max_bytes=10_000)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no solver that is away."""
    for name in ("_CONNECT_SECONDS", "_SMALL_SECONDS"):
        monkeypatch.setattr(f"scrapeyard.engines.solver.flaresolverr.{name}", PATIENCE)


@pytest.fixture
async def solver(door: FlareSolverrSite) -> AsyncIterator[FlareSolverr]:
    made = make(door)
    await made.start()
    yield made
    await made.stop()
    await made.stop()


async def solve(solver: FlareSolverr, url: str = URL, *, seconds: float = 600, **asked: Any) -> Solved:
    proxy = asked.pop("through", None)
    caller = asked.pop("caller", Caller())
    return await solver.solve(FetchRequest(url=url, **asked), caller, proxy=proxy, seconds=seconds)


async def test_a_page_and_its_clearance(door: FlareSolverrSite, solver: FlareSolverr) -> None:
    solved = await solve(solver)
    assert (solved.response.body, solved.response.url, solved.response.status) == (PAGE, URL, 200)
    clearance = solved.clearance
    assert clearance is not None
    assert (clearance.user_agent, clearance.profile, clearance.exit) == (BROWSER, "chrome131", "")
    assert clearance.fits("www.shop.test", clearance.got_at)
    assert not clearance.fits("shop.test.evil.test", clearance.got_at)
    assert not clearance.fits("shop.test", clearance.expires_at)
    (said,) = door.said
    assert said.keys() == {"cmd", "url", "maxTimeout"}
    assert 300_000 <= said["maxTimeout"] <= 600_000, "what is left of ten minutes"


async def test_a_proxy_is_handed_over_with_its_credentials_apart(door: FlareSolverrSite, solver: FlareSolverr) -> None:
    proxy = Proxy(url="socks5h://us%40er:pa%3Ass@10.0.0.1:1080", name="homes/1", proxy_class="residential")
    solved = await solve(solver, through=proxy)
    words = {"url": "socks5://10.0.0.1:1080", "username": "us@er", "password": "pa:ss"}
    assert door.said[0]["proxy"] == words
    assert solved.response.proxy_class == "residential"
    assert solved.clearance is not None
    assert (solved.clearance.exit, solved.clearance.pool) == ("homes/1", "homes")


async def test_a_scripts_session_is_a_browser_of_its_own_and_nobody_elses_clearance(
    door: FlareSolverrSite, solver: FlareSolverr
) -> None:
    one, two = (
        Caller(scraper=Scraper(ref=ScraperRef(id=f"shop/{name}", version="1.0.0"), folder=None)) for name in "ab"
    )
    for caller in (one, one, two):
        assert (await solve(solver, session="cart", caller=caller)).clearance is None
    assert len(door.asked("sessions.create")) == len(door.sessions) == 2
    used = [words["session"] for words in door.asked("request.get")]
    assert used[0] == used[1] != used[2]
    assert all(words["session_ttl_minutes"] > 0 for words in door.asked("request.get"))
    await solver.stop()
    assert door.sessions == set()


async def test_only_few_sessions_stay_open(door: FlareSolverrSite, solver: FlareSolverr) -> None:
    for number in range(12):
        await solve(solver, session=f"cart {number}")
    assert len(door.sessions) == 8


async def test_no_more_pages_at_once_than_the_setting(door: FlareSolverrSite) -> None:
    solver = make(door, solver_concurrency=2)
    await solver.start()
    try:
        door.gate.clear()
        solves = [asyncio.create_task(solve(solver)) for _ in range(6)]
        await door.site.until(lambda: len(door.said) >= 2)
        door.gate.set()
        await asyncio.gather(*solves)
        assert (door.most_at_once, len(door.said)) == (2, 6)
    finally:
        await solver.stop()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Error: Error solving the challenge. Timeout after 60.0 seconds.", ExitReason.FETCH_TIMEOUT),
        ("Error: Error solving the challenge. no such element", ExitReason.FETCH_CAPTCHA),
        ("Error: Error solving the challenge. Cloudflare has blocked this request.", ExitReason.FETCH_BLOCKED),
        ("Error solving the challenge. Message: net::ERR_PROXY_CONNECTION_FAILED", ExitReason.FETCH_PROXY),
        ("Error solving the challenge. Message: net::ERR_TUNNEL_CONNECTION_FAILED", ExitReason.FETCH_PROXY),
        ("Error solving the challenge. Message: net::ERR_NAME_NOT_RESOLVED", ExitReason.FETCH_DNS),
        ("Error solving the challenge. Message: net::ERR_CONNECTION_REFUSED", ExitReason.FETCH_CONNECT),
        ("Error solving the challenge. Message: net::ERR_CONNECTION_TIMED_OUT", ExitReason.FETCH_TIMEOUT),
        ("Error solving the challenge. Message: net::ERR_CERT_DATE_INVALID", ExitReason.FETCH_TLS),
        ("Error solving the challenge. Message: net::ERR_HTTP2_PROTOCOL_ERROR", ExitReason.FETCH_PROTOCOL),
        ("", ExitReason.FETCH_CAPTCHA),
    ],
)
async def test_its_errors_are_ours(
    door: FlareSolverrSite, solver: FlareSolverr, message: str, reason: ExitReason
) -> None:
    door.error = message or "?"
    with pytest.raises(FetchFailed) as caught:
        await solve(solver)
    assert caught.value.reason is reason
    assert caught.value.details["cause"] == (message or "?")


@pytest.mark.parametrize("garbage", [b"<h1>Bad gateway</h1>", b"[]", b'{"status": 1', b"\xff\xfe", b'{"solution": {}}'])
async def test_what_is_not_its_protocol_is_told(door: FlareSolverrSite, solver: FlareSolverr, garbage: bytes) -> None:
    door.garbage = garbage
    with pytest.raises(SolverAway, match="does not speak"):
        await solve(solver)


async def test_a_solver_that_is_away_is_told(door: FlareSolverrSite, solver: FlareSolverr) -> None:
    assert await solver.healthy()
    await door.site.__aexit__()
    assert not await solver.healthy()
    with pytest.raises(SolverAway, match="does not answer"):
        await solve(solver)


async def test_a_solver_that_hangs_is_given_up(
    door: FlareSolverrSite, solver: FlareSolverr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapeyard.engines.solver.flaresolverr._GRACE_SECONDS", 0.1)
    door.gate.clear()
    with pytest.raises(FetchFailed) as caught:
        await solve(solver, seconds=0.1)
    assert caught.value.reason is ExitReason.FETCH_TIMEOUT


async def test_a_private_address_is_not_handed_over(door: FlareSolverrSite, solver: FlareSolverr) -> None:
    for url in ("http://inside.test/", "http://127.0.0.1/", "http://169.254.169.254/latest/"):
        with pytest.raises(FetchFailed) as caught:
            await solve(solver, url)
        assert caught.value.reason is ExitReason.FETCH_PRIVATE_ADDRESS
    assert door.said == []


@pytest.mark.parametrize("ended", ["http://inside.test/admin", "http://127.0.0.1:8191/", "http://[::1]/"])
async def test_a_page_that_ended_at_a_private_address_is_thrown_away(
    door: FlareSolverrSite, solver: FlareSolverr, ended: str
) -> None:
    door.ends_at = ended
    with pytest.raises(FetchFailed) as caught:
        await solve(solver)
    assert caught.value.reason is ExitReason.FETCH_PRIVATE_ADDRESS


async def test_a_page_that_ended_nowhere_is_thrown_away(door: FlareSolverrSite, solver: FlareSolverr) -> None:
    door.ends_at = "chrome-error://chromewebdata/"
    with pytest.raises(FetchFailed) as caught:
        await solve(solver)
    assert caught.value.reason is ExitReason.FETCH_BAD_URL


async def test_the_scrapers_hosts_bind_the_solver_too(door: FlareSolverrSite, solver: FlareSolverr) -> None:
    ref = ScraperRef(id="shop/page", version="1.0.0")
    caller = Caller(scraper=Scraper(ref=ref, folder=None, allowed_hosts=("other.test",)))
    with pytest.raises(FetchFailed) as caught:
        await solve(solver, caller=caller)
    assert (caught.value.reason, door.said) == (ExitReason.FETCH_NOT_ALLOWED, [])


async def test_a_page_that_is_too_large_is_refused(door: FlareSolverrSite, solver: FlareSolverr) -> None:
    for size in (11_000, 50_000):
        door.challenged.body = b"x" * size
        with pytest.raises(FetchFailed) as caught:
            await solve(solver)
        assert caught.value.reason is ExitReason.FETCH_TOO_LARGE


@pytest.mark.parametrize(("method", "body"), [("DELETE", b""), ("POST", b"\xff\x00")])
async def test_what_it_cannot_send_is_refused(solver: FlareSolverr, method: str, body: bytes) -> None:
    with pytest.raises(FetchFailed) as caught:
        await solve(solver, method=method, body=body)
    assert caught.value.reason is ExitReason.FETCH_NOT_ALLOWED


@pytest.mark.parametrize("url", ["flaresolverr:8191", "ftp://host/v1", "http://"])
def test_an_address_that_is_none_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(SettingsInvalid, match="solver_url"):
        FlareSolverr(EscalationSettings(solver_url=url), dns=GuardedDns(HTTP), max_bytes=1)
