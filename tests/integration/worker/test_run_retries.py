"""Runs that the web ended are tried again, through the whole platform."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.settings import Settings
from scrapeyard.wiring.platform import Platform
from tests.leaks import PATIENCE
from tests.sites.site import Asked, Site, page

SCRIPT = """
def run(ctx, url):
    return [ctx.attempt, ctx.fetch(url).raise_for_status().text("h1")]
"""


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        yield site


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    place = tmp_path / "scrapers" / "test" / "title"
    place.mkdir(parents=True)
    (place / "scraper.py").write_text(SCRIPT)
    (place / "scraper.toml").write_text('id = "test/title"\nversion = "1.0.0"\n')
    settings = Settings.model_validate(
        {
            "data_dir": tmp_path / "data",
            "gateway": {"port": 0},
            "http": {"allow_private": True, "total_seconds": PATIENCE},
            "repository": {"scrapers": tmp_path / "scrapers", "installed": False},
            "worker": {"slots": 2, "drain_seconds": 0},
        }
    )
    platform = Platform(settings)
    await platform.start()
    try:
        assert platform.gateway is not None
        async with httpx.AsyncClient(base_url=platform.gateway.url, timeout=PATIENCE) as client:
            yield client
    finally:
        await platform.stop()


def then(*answers: Any) -> Any:
    """A route that answers in this order; the last one from then on."""
    left = list(answers)

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(asked, writer)

    return answer


async def call(client: httpx.AsyncClient, url: str, **policy: Any) -> httpx.Response:
    order = {"scraper": "test/title", "input": {"url": url}, "wait": PATIENCE, "policy": policy}
    return await client.post("/api/scrape", json=order)


async def test_a_site_that_is_busy_for_a_moment(client: httpx.AsyncClient, site: Site) -> None:
    site.routes["/"] = then(page(b"busy", status=503, retry_after="0"), page(b"<h1>Kettle</h1>"))
    answer = await call(client, site.url("/"))
    assert (answer.status_code, answer.json()["result"]) == (200, [2, "Kettle"])


async def test_the_policy_says_how_long_to_wait(client: httpx.AsyncClient, site: Site) -> None:
    site.routes["/"] = then(page(b"busy", status=500), page(b"busy", status=500), page(b"<h1>Kettle</h1>"))
    answer = await call(client, site.url("/"), retries=2, backoff={"kind": "linear", "first_seconds": 0.1})
    assert (answer.status_code, answer.json()["result"]) == (200, [3, "Kettle"])


@pytest.mark.parametrize(
    ("status", "retries", "asked", "retryable"), [(404, 3, 1, False), (503, 0, 1, True), (503, 1, 2, True)]
)
async def test_when_it_ends_all_the_same(
    client: httpx.AsyncClient, site: Site, status: int, retries: int, asked: int, retryable: bool
) -> None:
    site.routes["/"] = page(b"no", status=status, retry_after="0")
    answer = await call(client, site.url("/"), retries=retries)
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["retryable"]) == (502, "fetch_status", retryable)
    assert (problem["error"]["site_status"], len(site.asked)) == (status, asked)
