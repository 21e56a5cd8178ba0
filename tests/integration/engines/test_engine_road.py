"""The HTTP engine from the outermost door: one worker with one slot, real sites and proxies, a solver."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from tests.leaks import PATIENCE, until
from tests.programs import Cluster, Embedded, Yard
from tests.services.proxies import ProxyServer
from tests.sites.flaresolverr import CHALLENGE, ChallengedSite, FlareSolverrSite
from tests.sites.site import Site, page

T = TypeVar("T")
YARDS: dict[str, Callable[[Mapping[str, str]], Yard]] = {
    "embedded": Embedded,
    "cluster": lambda environment: Cluster(gateways=1, workers=1, environment=environment),
}
PAGE = page(b"<!doctype html><title>A page</title><p>Hello.</p>", content_type="text/html")
WAIT_SECONDS = 10
"""The longest that a fetch of this yard waits for its turn."""
SOON, LATE = 0.11, 0.05
"""Rates: by the first the next turn is waited for; by the second it comes too late, until 10 s have passed."""
CONFIG = """
[sites]
wait_seconds = {wait}

[escalation]
browser = false
solver_url = "{solver}"

[[proxies.pools]]
name = "mixed"
urls = ["{dead}", "{steady}"]
cooldown_seconds = 600

[[proxies.pools]]
name = "homes"
proxy_class = "residential"
urls = ["{socks}"]
"""


class Web:
    """Servers of a test module, on a loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._stack = ExitStack()

    def __enter__(self) -> "Web":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def open(self, server: AbstractAsyncContextManager[T]) -> T:
        """Serves until the module's tests are over."""
        opened = asyncio.run_coroutine_threadsafe(server.__aenter__(), self._loop).result(PATIENCE)
        self._stack.callback(self._close, server)
        return opened

    def _close(self, server: AbstractAsyncContextManager[Any]) -> None:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), self._loop).result(PATIENCE)


class Stand:
    """A yard with all that its settings name."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self.challenged = web.open(ChallengedSite())
        self.solver = web.open(FlareSolverrSite(challenged=self.challenged, host="localhost"))
        self.steady = ProxyServer("127.0.0.32", user="user", password="hidden")
        self.dead = ProxyServer("127.0.0.31", user="user", password="hidden")
        self._hosts = iter(range(21, 250))

    def config(self) -> str:
        return CONFIG.format(
            wait=WAIT_SECONDS,
            solver=self.solver.url,
            dead=self.dead.url(),
            steady=self.steady.url(),
            socks=self.steady.url("socks5h"),
        )

    def site(self) -> Site:
        """One that nobody asked yet: each address is a site of its own."""
        site: Site = self.web.open(Site(host=f"127.0.0.{next(self._hosts)}"))
        site.routes["/"] = PAGE
        return site

    def connect(self, api: httpx.Client, yard: Yard) -> None:
        self.api = api
        self.yard = yard

    def scrape(self, url: str, scraper: str = "", **call: Any) -> httpx.Response:
        named = {"scraper": scraper, "input": {"url": url}} if scraper else {"url": url}
        return self.api.post("/api/scrape", json={"wait": PATIENCE, **named, **call})

    def done(self, url: str, scraper: str = "", **call: Any) -> dict[str, Any]:
        answer = self.scrape(url, scraper, **call)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def refused(self, url: str, scraper: str = "", **call: Any) -> dict[str, Any]:
        answer = self.scrape(url, scraper, **call)
        assert answer.status_code == 502, answer.text
        return dict(answer.json())

    def look(self, run_id: str, **words: Any) -> dict[str, Any]:
        return dict(self.api.get(f"/api/scrape/{run_id}", params=words).json())

    def explain(self, run_id: str) -> dict[str, Any]:
        return dict(self.api.get(f"/api/scrape/{run_id}/explain").json())

    def rules(self, site: Site, **rules: Any) -> None:
        answer = self.api.put(f"/api/sites/{site.host}", json=rules)
        assert answer.status_code == 200, answer.text

    def state(self, site: Site) -> dict[str, Any]:
        return dict(self.api.get(f"/api/sites/{site.host}").json()["state"] or {})

    def limit(self, site: Site, rate: float) -> None:
        """In force when this returns, and the site was asked just now."""
        self.rules(site, rate=rate)

        def in_force() -> bool:
            self.done(site.url())
            return bool(self.state(site)["rate"] == rate)

        until(in_force, "the limit is in force in the worker")


@pytest.fixture(scope="module", params=YARDS)
def stand(
    request: pytest.FixtureRequest, nothing_left: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stand]:
    folder: Path = tmp_path_factory.mktemp("engine")
    with ExitStack() as stack:
        stand = Stand(stack.enter_context(Web()))
        stack.enter_context(stand.steady)
        stack.enter_context(stand.dead)
        stand.dead.stop()
        (folder / "scrapeyard.toml").write_text(stand.config())
        settings = {"SCRAPEYARD_CONFIG": str(folder / "scrapeyard.toml"), "SCRAPEYARD_WORKER__SLOTS": "1"}
        yard = stack.enter_context(YARDS[request.param](settings))
        stand.connect(stack.enter_context(yard.client()), yard)
        for scraper in ("", "lab/keep"):
            stand.done(stand.site().url(), scraper)  # what starts with the first run makes no test's run late
        yield stand
        assert not list(yard.errors())


@pytest.mark.parametrize("scraper", ["", "lab/keep"])
def test_a_run_whose_turn_comes_late_is_put_back_and_holds_no_slot(stand: Stand, scraper: str) -> None:
    busy, other = stand.site(), stand.site()
    stand.limit(busy, rate=LATE)
    began, before = time.monotonic(), len(busy.asked)
    run_id = stand.scrape(busy.url(), scraper, wait=0).json()["id"]
    put_back = until(lambda: _put_back(stand, run_id), "it is put back")
    assert put_back["exit_reason"] is None
    waits = put_back["waiting"]
    assert (waits["reason"], waits["until"]) == ("site_turn", put_back["starts_at"])
    assert f"the turn at {busy.host} comes" in waits["message"]
    told = stand.explain(run_id)
    assert f"put back until {put_back['starts_at']}" in told["summary"][0]
    assert "fetch_rate_limited" in told["fetches"][0]["error"]

    assert stand.done(other.url(), scraper)["status"] == "succeeded"
    (worker,) = stand.api.get("/api/workers").json()["workers"]
    assert worker["slots"] == 1
    assert len(busy.asked) == before, "the other site's run was done while this one waited"

    run = stand.look(run_id, wait=PATIENCE)
    assert (run["status"], run["attempt"], run["starts_at"], run["waiting"]) == ("succeeded", 1, None, None)
    assert len(busy.asked) == before + 1
    assert time.monotonic() - began > WAIT_SECONDS, "the site was spared"


def test_a_run_that_waits_a_little_leaves_its_slot_to_another(stand: Stand) -> None:
    busy, other = stand.site(), stand.site()
    stand.limit(busy, rate=SOON)
    run_id = stand.scrape(busy.url(), wait=0).json()["id"]
    until(lambda: stand.state(busy)["waiting"] == 1, "it waits")
    at_once = stand.done(other.url())
    run = stand.look(run_id, wait=PATIENCE)
    assert (run["status"], run["attempt"]) == ("succeeded", 1)
    assert at_once["finished_at"] < run["finished_at"]


def test_a_dead_exit_rests_while_its_pool_serves_and_bytes_are_metered(stand: Stand) -> None:
    site = stand.site()
    site.routes["/"] = page(b"x" * 5000, content_type="text/html")
    runs = [stand.done(site.url(), "lab/keep", policy={"proxy": "mixed"}) for _ in range(4)]
    assert [run["usage"]["bytes_by_class"] for run in runs] == [{"datacenter": 5000}] * 4
    assert stand.explain(runs[0]["id"])["fetches"][0]["way"] == "chrome via mixed"

    def pool() -> dict[str, Any] | None:
        shown = stand.api.get("/api/proxies").json()["pools"][0]
        return dict(shown) if shown["today"]["bytes"] == 20_000 and shown["health"][0]["resting"] else None

    shown = until(pool, "use and health reach the API")
    assert (shown["name"], shown["source"], shown["exits"]) == ("mixed", "settings", 2)
    assert shown["health"][0]["names"] == [f"mixed/127.0.0.1:{stand.dead.port}"]
    assert (shown["today"]["requests"], shown["today"]["failures"]) == (6, 2)
    received = stand.api.get(f"/api/sites/{site.host}").json()["more"]["received"]
    assert received["datacenter"]["bytes"] == 20_000
    assert "hidden" not in stand.api.get("/api/proxies").text


def test_residential_bytes_go_through_socks_within_their_budget(stand: Stand) -> None:
    site = stand.site()
    run = stand.done(site.url(), policy={"proxy": "homes", "budget": {"residential_megabytes": 1}})
    assert list(run["usage"]["bytes_by_class"]) == ["residential"]
    refusal = stand.refused(site.url(), policy={"proxy": "homes", "budget": {"residential_megabytes": 0}})
    assert (refusal["exit_reason"], refusal["retryable"]) == ("fetch_budget", False)
    assert len(site.asked) == 1
    shown = until(
        lambda: {each["proxy_class"]: each for each in stand.api.get("/api/proxies").json()["by_class"]}, "classes"
    )
    assert "direct" in shown


def test_a_budget_is_warned_of_in_the_log_before_it_ends_the_run(stand: Stand) -> None:
    url = f"{stand.yard.shop.url}/product/"
    body = {"scraper": "shop/prices", "input": {"urls": [f"{url}{number}" for number in range(1, 9)]}}
    answer = stand.api.post("/api/scrape", json={**body, "policy": {"budget": {"requests": 5}}, "wait": PATIENCE})
    assert (answer.status_code, answer.json()["exit_reason"]) == (502, "fetch_budget")
    warned = stand.yard.workers[0].wait_for("budget.nearly_used")
    assert warned["level"] == "warning"
    told = stand.explain(answer.json()["id"])
    assert "It used 100 % of its budget.requests." in told["summary"]
    assert "It ended as fetch_budget." in told["summary"]


def test_a_block_that_no_way_passes_is_told_with_what_was_tried(stand: Stand) -> None:
    site = stand.site()
    site.routes["/"] = page(CHALLENGE, status=403, content_type="text/html", cf_mitigated="challenge")
    stand.solver.error = "Error: Error solving the challenge. Captcha detected but no automatic solver is configured."
    try:
        refusal = stand.refused(site.url(), "lab/keep", policy={"retries": 0, "proxy": "none"})
    finally:
        stand.solver.error = ""
    assert (refusal["exit_reason"], refusal["retryable"]) == ("fetch_captcha", True)
    assert refusal["error"]["site_status"] == 403
    told = stand.explain(refusal["id"])
    tried = told["fetches"][0]["tried"]
    assert [each["way"] for each in tried] == ["chrome", "firefox", "safari", "solver"]
    assert (tried[0]["status"], tried[0]["kind"], tried[0]["vendor"]) == (403, "challenge", "cloudflare")
    assert any("chrome, firefox, safari, solver" in line for line in told["summary"])
    assert len(site.asked) == 3
    ways = stand.api.get(f"/api/sites/{site.host}").json()["more"]["ways"]
    assert ways[0]["used_at"].endswith("Z")
    plain = stand.refused(site.url(), policy={"retries": 0, "escalate": False})
    assert len(stand.explain(plain["id"])["fetches"][0]["tried"]) == 1


def test_a_challenge_is_solved_once_and_the_clearance_serves_plain_http(stand: Stand) -> None:
    url = stand.challenged.site.url("/page", "localhost")
    first = stand.done(url, policy={"proxy": "none"})
    assert (first["result"]["status"], first["result"]["title"]) == (200, "Shop")
    (fetch,) = stand.explain(first["id"])["fetches"]
    assert "with a clearance" in fetch["way"]
    assert [each["way"] for each in fetch["tried"]][:1] == ["chrome"]
    again = stand.done(url, policy={"proxy": "none"})
    (fetch,) = stand.explain(again["id"])["fetches"]
    assert ("with a clearance" in fetch["way"], fetch["tried"]) == (True, [])
    assert [words["url"] for words in stand.solver.asked("request.get")].count(url) == 1
    more = stand.api.get("/api/sites/localhost").json()["more"]
    assert more["clearances"][0]["host"] == "localhost"
    assert "cf_clearance" not in str(more)


def test_a_kept_page_serves_until_it_is_invalidated(stand: Stand) -> None:
    site, policy = stand.site(), {"max_age_seconds": 600}
    first = stand.done(site.url(), policy=policy)
    second = stand.done(site.url(), policy=policy)
    assert second["result"] == first["result"]
    assert (len(site.asked), second["usage"]["requests"], second["usage"]["bytes_received"]) == (1, 0, 0)
    (fetch,) = stand.explain(second["id"])["fetches"]
    assert fetch["way"] == "cache"
    assert 0 <= fetch["age_seconds"] <= 600
    dropped = stand.api.post("/api/cache/invalidate", json={"url": site.url()})
    assert (dropped.status_code, dropped.json()) == (200, {"dropped": 1})

    def fetched_again() -> bool:
        stand.done(site.url(), policy=policy)
        return len(site.asked) == 2

    until(fetched_again, "the worker forgets, too")
    stand.done(site.url())
    assert len(site.asked) == 3, "a call that says nothing gets a fresh page"


def test_robots_are_obeyed_where_call_or_site_says_so(stand: Stand) -> None:
    site = stand.site()
    site.routes |= {"/robots.txt": page(b"User-agent: *\nDisallow: /no\n", content_type="text/plain"), "/no": PAGE}
    refusal = stand.refused(site.url("/no"), "lab/keep", policy={"robots": "obey"})
    assert (refusal["exit_reason"], refusal["retryable"]) == ("fetch_robots", False)
    assert "Disallow: /no" in refusal["detail"]
    assert [asked.path for asked in site.asked] == ["/robots.txt"]
    stand.rules(site, robots="obey")
    until(lambda: stand.scrape(site.url("/no")).status_code == 502, "the rule is in force")
    stand.done(site.url("/no"), policy={"robots": "ignore"})
    stand.done(site.url("/"), policy={"robots": "obey"})


def _put_back(stand: Stand, run_id: str) -> dict[str, Any] | None:
    run = stand.look(run_id)
    return run if run["status"] == "queued" and run["starts_at"] and run["waiting"] else None
