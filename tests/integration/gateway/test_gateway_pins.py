"""The gateway chooses the version once, and fills in what a call does not say from the scraper's manifest."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.model import Delivery, Priority
from scrapeyard.settings import GatewaySettings, RepositorySettings, Settings
from tests.integration.gateway_stand import MANIFEST, SCRIPT, Stand, open_stand
from tests.leaks import PATIENCE

URL = "https://shop.example/p/1"


def put(folder: Path, version: str, more: str = "") -> None:
    home = folder / "scrapers" / version
    home.mkdir(parents=True)
    (home / "scraper.toml").write_text(MANIFEST.replace("1.4.2", version).replace("[limits]", f"{more}[limits]"))
    (home / "scraper.py").write_text(SCRIPT)


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    put(tmp_path, "1.5.0")
    put(tmp_path, "2.0.0", '[policy]\nretries = 4\ntimeout_seconds = 7\npriority = "low"\n')
    put(tmp_path, "3.0.0-rc.1")
    async with open_stand(tmp_path) as stand:
        yield stand


async def deliver(stand: Stand, **body: Any) -> Delivery:
    response = await stand.client.post("/api/scrape", json={"wait": 0, "input": {"url": URL}, **body})
    assert response.status_code == 202, response.text
    return await stand.take()


@pytest.mark.parametrize(
    ("wanted", "pinned"),
    [
        ("shop/product", "2.0.0"),
        ("shop/product@1.4.2", "1.4.2"),
        ("shop/product@^1.4", "1.5.0"),
        ("shop/product@~1.4", "1.4.2"),
        ("shop/product@>=1.4 <1.5", "1.4.2"),
        ("shop/product@beta", "3.0.0-rc.1"),
    ],
)
async def test_the_version_travels_with_the_run(stand: Stand, wanted: str, pinned: str) -> None:
    assert (await deliver(stand, scraper=wanted)).scraper == f"shop/product@{pinned}"


async def test_what_comes_later_does_not_change_a_run_that_waits(stand: Stand, tmp_path: Path) -> None:
    response = await stand.client.post("/api/scrape", json={"wait": 0, "scraper": "shop/product", "url": URL})
    put(tmp_path, "2.1.0")
    await stand.services.catalogue.refresh()
    assert (await stand.take()).scraper == "shop/product@2.0.0"
    assert (await deliver(stand, scraper="shop/product")).scraper == "shop/product@2.1.0"
    listed = (await stand.client.get("/api/scrape", params={"scraper": "shop/product"})).json()
    assert response.json()["id"] in [run["id"] for run in listed["runs"]]


async def test_the_content_travels_with_the_run(stand: Stand) -> None:
    delivery = await deliver(stand, scraper="shop/product@1.4.2")
    assert delivery.digest == stand.services.catalogue.resolve("shop/product@1.4.2").ref.digest
    run = (await stand.client.get(f"/api/scrape/{delivery.run_id}")).json()
    assert (run["version"], run["digest"]) == ("1.4.2", delivery.digest)


async def test_a_built_in_stays_as_it_was_called(stand: Stand) -> None:
    assert (await deliver(stand, input={}, url=URL)).scraper == "builtin/page"
    assert (await deliver(stand, scraper="builtin/page")).scraper == "builtin/page"


async def test_the_manifest_says_what_a_call_does_not(stand: Stand) -> None:
    delivery = await deliver(stand, scraper="shop/product")
    assert (delivery.max_attempts, delivery.timeout_seconds, delivery.priority) == (5, 7, Priority.LOW)


async def test_a_call_says_more_than_the_manifest(stand: Stand) -> None:
    policy = {"retries": 0, "timeout_seconds": 3}
    delivery = await deliver(stand, scraper="shop/product", policy=policy, priority="high")
    assert (delivery.max_attempts, delivery.timeout_seconds, delivery.priority) == (1, 3, Priority.HIGH)


async def test_without_either_the_platform_decides(stand: Stand) -> None:
    delivery = await deliver(stand, scraper="shop/product@1.x")
    assert (delivery.max_attempts, delivery.timeout_seconds, delivery.priority) == (2, None, Priority.NORMAL)


async def test_the_default_scraper_is_a_setting(tmp_path: Path) -> None:
    settings = Settings(
        repository=RepositorySettings(default="shop/product@^1"), gateway=GatewaySettings(wait_seconds=PATIENCE)
    )
    async with open_stand(tmp_path, settings) as stand:
        call = asyncio.create_task(stand.client.post("/api/scrape", json={"url": URL}))
        delivery = await stand.take()
        assert delivery.scraper == "shop/product@1.4.2"
        await stand.finish(delivery)
        assert (await call).status_code == 200


@pytest.mark.parametrize(
    ("wanted", "status", "code"),
    [
        ("shop/product@^9", 404, "scraper_not_found"),
        ("shop/product@nightly", 404, "scraper_not_found"),
        ("shop/product@1.2.3.4", 400, "bad_request"),
    ],
)
async def test_what_means_nothing_is_refused(stand: Stand, wanted: str, status: int, code: str) -> None:
    response = await stand.client.post("/api/scrape", json={"scraper": wanted, "url": URL})
    assert (response.status_code, response.json()["code"]) == (status, code)
