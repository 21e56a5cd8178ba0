"""`/api/usage`: what clients used, by what was asked for, for whom, as JSON and CSV."""

import csv
from pathlib import Path
from typing import Any

from starlette.types import Scope

from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.ledger import Ledger
from scrapeyard.engines.port import Caller
from scrapeyard.model import Scraper, ScraperRef
from scrapeyard.model.identity import Identity, Role
from tests.integration.gateway_stand import Stand, open_stand

DAY = 86_400.0
NOW = 1_800_000_000.0
"""2027-01-15."""


def caller(client: str, scraper: str, browser_ms: float = 0.0) -> Caller:
    ledger = Ledger()
    ledger.count_browser(pages=1, saved=0, ms=browser_ms)
    ref = ScraperRef(id=scraper, version="1.0.0")
    return Caller(client=client, scraper=Scraper(ref=ref, folder=None), ledger=ledger)


class Names:
    """Credentials for the test: the key is the client's name; `admin` is an admin."""

    in_use = True

    async def identify(self, token: str | None, scope: Scope) -> Identity | None:
        return Identity(client=token or "", role=Role.ADMIN if token == "admin" else Role.CLIENT)


async def use(stand: Stand) -> None:
    """Two clients on two days."""
    now = NOW
    meters = Meters(stand.store.meters, clock=lambda: now)
    shop = caller("shop", "shop/product", browser_ms=1500)
    meters.count(site="a.example", caller=shop, size=2**20)
    meters.count(site="b.example", caller=shop, pool="home", proxy_class="residential", size=2**19, requests=3)
    meters.count_run(shop)
    now = NOW - DAY
    meters.count_run(shop)
    meters.count(site="a.example", caller=caller("=cmd", "builtin/page"), size=2**18, failures=1)
    await meters.flush()


async def report(stand: Stand, key: str = "admin", **where: Any) -> Any:
    answer = await stand.client.get("/api/usage", params=where, headers={"X-API-Key": key})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_usage_is_summed_by_what_was_asked_for(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        stand.gateway.authenticator._kinds = (Names(),)
        await use(stand)
        days = {"since": "2027-01-01", "until": "2027-01-31"}
        by_client = await report(stand, by=["client", "day"], **days)
        assert [(row["day"], row["client"], row["runs"], row["fetches"]) for row in by_client["rows"]] == [
            ("2027-01-14", "=cmd", 0, 1),
            ("2027-01-14", "shop", 1, 0),
            ("2027-01-15", "shop", 1, 4),
        ]
        shop = by_client["rows"][2]
        assert (shop["megabytes"], shop["direct_megabytes"], shop["residential_megabytes"]) == (1.5, 1.0, 0.5)
        assert (shop["browser_seconds"], shop["scraper"], shop["site"]) == (1.5, None, None)
        by_site = await report(stand, by=["site"], scraper="shop/product", **days)
        assert [(row["site"], row["fetches"], row["runs"]) for row in by_site["rows"]] == [
            ("", 0, 2),
            ("a.example", 1, 0),
            ("b.example", 3, 0),
        ]
        one = await report(stand, by=["scraper"], site="a.example", until="2027-01-14", since="2027-01-01")
        assert [(row["scraper"], row["failures"]) for row in one["rows"]] == [("builtin/page", 1)]
        wrong = await stand.client.get(
            "/api/usage", params={"since": "2027-02-01", "until": "2027-01-01"}, headers={"X-API-Key": "admin"}
        )
        assert wrong.status_code == 400


async def test_a_client_sees_its_own(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        stand.gateway.authenticator._kinds = (Names(),)
        await use(stand)
        for key, asked in (("shop", None), ("shop", "=cmd"), ("other", "shop")):
            more = {} if asked is None else {"client": asked}
            rows = (await report(stand, key, by="client", since="2027-01-01", until="2027-02-01", **more))["rows"]
            assert [row["client"] for row in rows] == (["shop"] if key == "shop" else [])


async def test_usage_as_csv(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        await use(stand)
        where = {"by": "client", "since": "2027-01-01", "until": "2027-02-01"}
        asked = await stand.client.get("/api/usage", params={**where, "format": "csv"})
        accepted = await stand.client.get("/api/usage", params=where, headers={"Accept": "text/csv"})
        assert asked.text == accepted.text
        assert asked.headers["content-type"] == "text/csv; charset=utf-8"
        rows = list(csv.DictReader(asked.text.splitlines()))
        assert [(row["client"], row["runs"], row["megabytes"]) for row in rows] == [
            ("'=cmd", "0", "0.25"),  # no formula
            ("shop", "2", "1.5"),
        ]
        assert "scraper" not in rows[0]
