"""`/api/sites`: how each site is treated, and how it is doing."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.engines.politeness.memory import MemoryGate
from scrapeyard.engines.politeness.policies import SitePolicies
from scrapeyard.engines.politeness.port import SiteLimits, SiteVerdict
from scrapeyard.gateway import sites as service
from scrapeyard.gateway.app import application
from scrapeyard.gateway.services import Gateway
from scrapeyard.settings import Settings, SiteSettings
from tests.integration.gateway_stand import open_services, open_stand
from tests.leaks import PATIENCE

SITE = "/api/sites/shop.example"
SETTINGS = Settings(sites=SiteSettings(rate=5, whole_hosts=("cdn.example",)))


class Stand:
    """A gateway's door, the gate behind it, and another process's view of the rules."""

    def __init__(self, client: httpx.AsyncClient, gate: MemoryGate, other: SitePolicies) -> None:
        self.client = client
        self.gate = gate
        self.other = other

    async def fails(self, site: str = "shop.example") -> None:
        limits = SiteLimits(breaker_failures=1, breaker_seconds=60)
        turn = await self.gate.acquire(site, limits, 10)
        self.gate.release(turn, SiteVerdict(answer="throttled", failed=True, retry_after=30, latency=0.5))


async def ways(sites: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    return {site: {"ways": [{"way": "chrome"}]} for site in sites if site == "shop.example"}


@pytest.fixture
async def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stand]:
    # the other process learns by the signal or not at all, however slow the machine is
    monkeypatch.setattr("scrapeyard.engines.politeness.policies.EVERY_SECONDS", 3600.0)
    gate = MemoryGate(clock=lambda: 1000.0)  # stands still
    async with open_services(tmp_path, SETTINGS) as backends:
        services = replace(backends, gate=gate, more_of_sites=(ways,))
        other = SitePolicies(SETTINGS.sites, services.store.sites, services.queue)
        await other.start()
        app = application(Gateway(services))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client,
        ):
            yield Stand(client, gate, other)
        await other.stop()


async def test_a_site_that_nobody_knows_is_treated_as_the_settings_say(stand: Stand) -> None:
    answer = await stand.client.get("/api/sites/never.example")
    assert answer.status_code == 200
    assert answer.json() == {
        "site": "never.example",
        "limits": {
            "rate": 5.0,
            "burst": 1,
            "concurrency": 0,
            "adapt": True,
            "min_rate": 0.1,
            "breaker_failures": 20,
            "breaker_ratio": 0.5,
            "breaker_seconds": 300.0,
            "robots": "ignore",
        },
        "rules": None,
        "state": None,
        "more": {},
    }
    assert (await stand.client.get("/api/sites")).json() == {"sites": [], "next_cursor": None}


async def test_rules_are_in_force_everywhere_without_waiting_for_the_next_look(stand: Stand) -> None:
    answer = await stand.client.put(SITE, json={"rate": 50, "robots": "obey", "note": "그들의 부탁"})
    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["limits"]["rate"], shown["limits"]["robots"], shown["limits"]["burst"]) == (50, "obey", 1)
    assert (shown["rules"]["rate"], shown["rules"]["burst"], shown["rules"]["note"]) == (50, None, "그들의 부탁")
    async with asyncio.timeout(PATIENCE):
        while stand.other.limits("shop.example").rate != 50:
            await asyncio.sleep(0.005)
    await stand.client.put(SITE, json={"rate": 0})
    assert (await stand.client.get(SITE)).json()["limits"] | {"rate": 0, "robots": "ignore"} == (
        await stand.client.get(SITE)
    ).json()["limits"]
    for _ in range(2):
        answer = await stand.client.delete(SITE)
        assert (answer.status_code, answer.json()["rules"]) == (200, None)
    assert answer.json()["limits"]["rate"] == 5


async def test_the_state_is_shown_and_can_be_reset(stand: Stand) -> None:
    await stand.fails()
    state = (await stand.client.get(SITE)).json()["state"]
    assert (state["breaker"], state["slowed"], state["success_share"], state["recent"]) == ("open", True, 0.0, 1)
    assert (state["closed_seconds"], state["breaker_seconds"]) == (30, 60)
    assert state["latency_ms"] == 500
    answer = await stand.client.post(f"{SITE}/reset")
    assert answer.status_code == 200
    state = answer.json()["state"]
    assert (state["breaker"], state["slowed"], state["closed_seconds"]) == ("closed", False, 0)
    assert (await stand.client.post("/api/sites/never.example/reset")).status_code == 200


async def test_what_other_parts_know_stands_beside(stand: Stand) -> None:
    assert (await stand.client.get(SITE)).json()["more"]["ways"] == [{"way": "chrome"}]


async def test_the_listing_has_pages(stand: Stand) -> None:
    await stand.client.put("/api/sites/c.example", json={"rate": 1})
    await stand.fails("a.example")
    await stand.fails("b.example")
    await stand.fails("c.example")
    first = (await stand.client.get("/api/sites", params={"limit": 2})).json()
    assert [each["site"] for each in first["sites"]] == ["a.example", "b.example"]
    second = (await stand.client.get("/api/sites", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [each["site"] for each in second["sites"]] == ["c.example"]
    assert second["next_cursor"] is None
    assert second["sites"][0]["state"]["breaker"] == "open"
    assert second["sites"][0]["rules"]["rate"] == 1


NO_SITES = [
    ("www.shop.example", 400, "write shop.example"),
    ("a..b", 400, "not a site"),
    ("x:y", 400, "not a site"),
    ("Shop.Example", 422, "site"),
    ("shop.example-", 422, "site"),
    ("a" * 300, 422, "site"),
]


async def test_a_name_that_is_no_site_is_refused(stand: Stand) -> None:
    for name, status, says in NO_SITES:
        for answer in (
            await stand.client.get(f"/api/sites/{name}"),
            await stand.client.put(f"/api/sites/{name}", json={"rate": 1}),
            await stand.client.post(f"/api/sites/{name}/reset"),
        ):
            assert answer.status_code == status, name
            assert says in answer.json()["detail"], name


async def test_addresses_and_single_names_are_sites(stand: Stand) -> None:
    for name in ("127.0.0.1", "2001:db8::1", "localhost", "a.cdn.example", "co.uk"):
        assert (await stand.client.put(f"/api/sites/{name}", json={"rate": 1})).status_code == 200, name


NO_RULES: list[Any] = [
    {"rate": -1},
    {"rate": "5"},
    {"rate": 1e9},
    {"burst": 0},
    {"breaker_ratio": 0},
    {"robots": "maybe"},
    {"note": "x" * 2001},
    {"note": "\x00"},
    {"speed": 1},
    [],
]


async def test_rules_that_make_no_sense_are_refused(stand: Stand) -> None:
    for body in NO_RULES:
        assert (await stand.client.put(SITE, json=body)).status_code == 422, body
        assert (await stand.client.get(SITE)).json()["rules"] is None, body


async def test_there_are_no_more_rules_than_can_be_kept(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_RULES", 1)
    assert (await stand.client.put(SITE, json={})).status_code == 200
    assert (await stand.client.put(SITE, json={"rate": 1})).status_code == 200
    answer = await stand.client.put("/api/sites/other.example", json={})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_without_a_gate_the_rules_are_there_all_the_same(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        await stand.client.put(SITE, json={"rate": 1})
        listed = (await stand.client.get("/api/sites")).json()["sites"]
        assert [(each["site"], each["state"]) for each in listed] == [("shop.example", None)]
