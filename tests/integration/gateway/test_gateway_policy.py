"""`policy` of a call on its way: from the door to the delivery, past the manifest, into the store and out again."""

from pathlib import Path
from typing import Any

from scrapeyard.model import Backoff, BudgetLimits, FetchPolicy
from scrapeyard.queues.deliveries import deliver
from tests.integration.gateway_stand import SCRIPT, open_stand

URL = "https://shop.example/p/1"
WHOLE = {
    "robots": "obey",
    "cache": "around",
    "max_age_seconds": 60,
    "connect_seconds": 2.5,
    "request_seconds": 8,
    "profile": "firefox",
    "proxy": "home",
    "country": "us",
    "state": "ny",
    "city": "New York",
    "escalate": False,
    "budget": {"requests": 5, "megabytes": 1.5, "residential_megabytes": 0, "seconds": 9},
    "backoff": {"kind": "linear", "first_seconds": 1, "factor": 3, "cap_seconds": 4},
}
POLICED = """
id = "shop/policed"
version = "1.0.0"
[policy]
robots = "obey"
proxy = "home"
budget = { requests = 9, megabytes = 2 }
"""


async def test_every_field_reaches_the_worker_and_the_store(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        await stand.client.post("/api/scrape", json={"url": URL, "wait": 0, "policy": WHOLE})
        delivery = await stand.take()
        assert delivery.fetching == FetchPolicy(
            robots="obey",
            cache="around",
            max_age_seconds=60,
            connect_seconds=2.5,
            request_seconds=8,
            profile="firefox",
            proxy="home",
            country="us",
            state="ny",
            city="New York",
            escalate=False,
            budget=BudgetLimits(requests=5, megabytes=1.5, residential_megabytes=0, seconds=9),
            backoff=Backoff(kind="linear", first_seconds=1, factor=3, cap_seconds=4),
        )
        kept = await stand.store.runs.get(delivery.run_id)
        assert kept is not None
        assert deliver(kept, redelivered=True).fetching == delivery.fetching


async def test_the_call_wins_over_the_manifest_field_by_field(tmp_path: Path) -> None:
    home = tmp_path / "scrapers" / "shop" / "policed"
    home.mkdir(parents=True)
    (home / "scraper.toml").write_text(POLICED)
    (home / "scraper.py").write_text(SCRIPT)
    async with open_stand(tmp_path) as stand:
        policy = {"proxy": "none", "budget": {"requests": 3}}
        body = {"scraper": "shop/policed", "url": URL, "wait": 0, "policy": policy}
        assert (await stand.client.post("/api/scrape", json=body)).status_code == 202
        wanted = FetchPolicy(robots="obey", proxy="none", budget=BudgetLimits(requests=3, megabytes=2))
        assert (await stand.take()).fetching == wanted
        shown = (await stand.client.get("/api/scrapers/shop/policed")).json()["policy"]
        assert shown["fetching"] == {
            "robots": "obey",
            "proxy": "home",
            "budget": {"requests": 9, "megabytes": 2},
        }


async def test_a_call_without_a_policy_carries_none(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        await stand.client.post("/api/scrape", json={"url": URL, "wait": 0, "policy": {"retries": 2}})
        delivery = await stand.take()
        assert (delivery.fetching, delivery.max_attempts) == (FetchPolicy(), 3)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"robots": "maybe"}, "robots"),
    ({"cache": ""}, "cache"),
    ({"max_age_seconds": -1}, "max_age_seconds"),
    ({"profile": "netscape"}, "profile"),
    ({"proxy": "Home"}, "proxy"),
    ({"country": "usa"}, "country"),
    ({"city": "paris_1"}, "city"),
    ({"escalate": "yes"}, "escalate"),
    ({"budget": {"requests": 0}}, "budget/requests"),
    ({"budget": {"requests": "5"}}, "budget/requests"),
    ({"budget": {"gigabytes": 1}}, "budget/gigabytes"),
    ({"budget": None}, "budget"),
    ({"backoff": {"kind": "random"}}, "backoff/kind"),
    ({"backoff": {"cap_seconds": 86_401}}, "backoff/cap_seconds"),
    ({"speed": 3}, "speed"),
]


async def test_a_wrong_policy_is_refused_with_its_place(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        for policy, place in WRONG:
            response = await stand.client.post("/api/scrape", json={"url": URL, "policy": policy})
            assert (response.status_code, response.json()["code"]) == (422, "invalid"), policy
            assert response.json()["errors"][0]["path"] == f"/policy/{place}"
            assert await stand.queue.depth() == {}, policy
