"""Scrapers written as classes, in calls and jobs, through the real sandbox."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.leaks import PATIENCE
from tests.services.batch_yard import BatchYard, batch_yard
from tests.sites.site import Site, page

SCRIPT = """
from scrapeyard_sdk import BaseHttpScraper, ScraperError, assert_fields_present, extract_text, parse_html, registry


@registry.register("county-az", version="9.9.9", name="not this one")
class CountyScraper(BaseHttpScraper):
    served = 0

    def validate_input(self, input):
        if not input.get("parcel_id"):
            raise ValueError("parcel_id is missing")

    async def scrape(self, input: dict) -> dict:
        self.served += 1
        found = await self.get(input["site"] + input["parcel_id"])
        status = extract_text(parse_html(found.html), ".status")
        if status == "busy":
            raise ScraperError("the county is busy", "retryable", after=0)
        if status is None:
            raise ScraperError("no such parcel", "non_retryable", parcel=input["parcel_id"])
        self.log("read", parcel=input["parcel_id"])
        return {"parcel_id": input["parcel_id"], "status": status, "served": self.served, "attempt": self.ctx.attempt}

    def validate_result(self, result):
        assert_fields_present(result, "status")
        return {**result, "valid": True}
"""
MANIFEST = """
id = "county/parcel"
version = "1.0.0"
entry = "scraper.py:CountyScraper"
"""


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        site.routes["/7"] = page(b"<p class=status>taxable</p>")
        site.routes["/8"] = page(b"<p>nothing</p>")
        site.routes["/9"] = page(b"<p class=status>busy</p>")
        site.routes["/10"] = page(b"gone", status=404)
        yield site


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[BatchYard]:
    place = tmp_path / "scrapers" / "county"
    place.mkdir(parents=True)
    (place / "scraper.py").write_text(SCRIPT)
    (place / "scraper.toml").write_text(MANIFEST)
    async with batch_yard(tmp_path, {}) as yard:
        yield yard


async def test_a_class_answers_calls(yard: BatchYard, site: Site) -> None:
    assert yard.platform.gateway is not None
    async with httpx.AsyncClient(base_url=yard.platform.gateway.url, timeout=PATIENCE) as client:

        async def call(**given: Any) -> dict[str, Any]:
            order = {"scraper": "county/parcel", "input": {"site": site.url("/"), **given}, "wait": PATIENCE}
            found: dict[str, Any] = (await client.post("/api/scrape", json=order)).json()
            return found

        good = await call(parcel_id="7")
        assert good["result"] == {"parcel_id": "7", "status": "taxable", "served": 1, "attempt": 1, "valid": True}
        refused, missing, busy = await call(), await call(parcel_id="8"), await call(parcel_id="9")
        assert (refused["exit_reason"], "parcel_id is missing" in refused["detail"]) == ("bad_input", True)
        run = (await client.get(f"/api/scrape/{missing['id']}")).json()
        assert (run["exit_reason"], run["error"]["type"]) == ("failed", "ScraperError")
        assert run["error"]["details"] == {"error_type": "non_retryable", "parcel": "8"}
        again = (await client.get(f"/api/scrape/{busy['id']}")).json()
        assert (again["exit_reason"], again["attempt"]) == ("retry", 2)
        assert (await call(parcel_id="10"))["exit_reason"] == "fetch_status"


@pytest.mark.parametrize("isolation", ["run", "job"])
async def test_a_class_serves_the_items_of_a_job(yard: BatchYard, site: Site, isolation: str) -> None:
    inputs = [{"site": site.url("/"), "parcel_id": parcel} for parcel in ("7", "8", "7", "")]
    items = await yard.run("county/parcel@1.0.0", inputs, isolation=isolation, max_attempts=1)
    assert [str(item.exit_reason) for item in items] == ["succeeded", "failed", "succeeded", "bad_input"]
    for item in (items[0], items[2]):
        assert item.result is not None
        assert b'"served":1' in bytes(item.result)
