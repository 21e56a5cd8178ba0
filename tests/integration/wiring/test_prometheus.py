"""A real Prometheus scrapes a small cluster: a gateway, a worker and a dispatcher on Redis."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx
from prometheus_client.parser import text_string_to_metric_families

from scrapeyard.settings import Settings
from scrapeyard.telemetry.metrics import Metrics
from scrapeyard.wiring.platform import Platform
from tests.leaks import PATIENCE, until
from tests.services.prometheus import Prometheus, needs_prometheus, prometheus
from tests.services.scripted_site import ScriptedSite
from tests.services.valkey import ValkeyServer

RULES = Path(__file__).parents[3] / "deploy" / "prometheus" / "alerts.yml"


@asynccontextmanager
async def cluster(folder: Path, redis_url: str) -> AsyncIterator[tuple[httpx.AsyncClient, list[str]]]:
    """A client of the gateway, and where the three processes serve their metrics."""
    place = folder / "scrapers" / "shop" / "product"
    place.mkdir(parents=True)
    (place / "scraper.py").write_text("def run(ctx, url):\n    return ctx.fetch(url).status\n")
    (place / "scraper.toml").write_text('id = "shop/product"\nversion = "1.0.0"\n')
    settings = Settings.model_validate(
        {
            "data_dir": folder / "data",
            "redis_url": redis_url,
            "gateway": {"port": 0},
            "repository": {"scrapers": folder / "scrapers", "installed": False},
            "worker": {"slots": 2, "heartbeat_seconds": 0.2},
            "http": {"allow_private": True},
            "telemetry": {"metrics_port": 0, "site_classes": ["practice=127.0.0.*"]},
        }
    )
    async with AsyncExitStack() as stack:
        places = []
        for role in ("dispatcher", "worker", "gateway"):
            platform = Platform(settings, (role,))
            await platform.start()
            stack.push_async_callback(platform.stop)
            if platform.gateway is not None:
                url = platform.gateway.url
            elif platform.metrics_listener is not None:
                places.append(f"127.0.0.1:{platform.metrics_listener.port}")
        places.append(url.removeprefix("http://"))
        yield await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=PATIENCE)), places


def seen(server: Prometheus, expression: str) -> list[dict[str, Any]]:
    return until(lambda: server.query(expression), expression)


@needs_prometheus
async def test_a_cluster_is_scraped_whole(tmp_path: Path) -> None:
    with ValkeyServer() as valkey, ScriptedSite() as site:
        async with cluster(tmp_path, valkey.url) as (client, places):
            call = {"scraper": "shop/product", "input": {"url": f"{site.url}cookies"}}
            assert (await client.post("/api/scrape", json=call)).json()["result"] == 200
            job = {"scraper": "builtin/echo", "items": [{"item_id": "a", "input": {}}]}
            assert (await client.post("/api/jobs", json=job)).status_code == 201
            assert (await client.get("/api/scrape/run_none")).status_code in (404, 422)

            def look() -> None:
                with prometheus(tmp_path / "prometheus", places, RULES) as server:
                    found_in_prometheus(server)

            await anyio.to_thread.run_sync(look)
            exported = [await client.get(f"http://{place}/metrics") for place in places]
            missing = (await client.get(f"http://{places[0]}/elsewhere")).status_code
    assert missing == 404
    told = {family.name for page in exported for family in text_string_to_metric_families(page.text)}
    documented = {row.name.removesuffix("_total") for row in Metrics().rows()}
    ours = {name for name in told if name.startswith(("scrapeyard_", "flaresolverr_"))}
    assert ours <= documented
    assert not [page.text for page in exported if site.url in page.text], "no metric names a site"


def found_in_prometheus(server: Prometheus) -> None:
    assert len(until(lambda: _three(server.query("up == 1")), "three targets are up")) == 3
    labels = 'kind="run",status="success",reason="succeeded"'
    assert seen(server, f"scrapeyard_queue_processed_total{{{labels}}} == 1")
    assert seen(server, 'scrapeyard_queue_processed_total{kind="item",status="success"} == 1')
    assert seen(server, 'scrapeyard_requests_total{method="POST",route="/api/scrape",status="200"} == 1')
    assert seen(server, 'scrapeyard_requests_total{route="/api/scrape/{run_id}"} == 1')
    assert seen(server, 'scrapeyard_fetches_total{site_class="practice",engine="http",status="2xx"} == 1')
    assert seen(server, 'scrapeyard_received_bytes_total{proxy_class="direct"} > 0')
    assert seen(server, "scrapeyard_queue_wait_seconds_count == 1")
    assert seen(server, "sum(scrapeyard_child_start_seconds_count) == 1")
    assert seen(server, 'scrapeyard_workers{state="alive"} == 1')
    assert seen(server, "scrapeyard_slots == 2")
    assert seen(server, "sum(scrapeyard_dispatcher_leads) == 1")
    assert seen(server, 'scrapeyard_store_seconds_count{operation="write"} > 0')
    assert seen(server, 'sum(scrapeyard_queue_seconds_count{operation="publish"}) > 0')
    assert len(seen(server, 'process_resident_memory_bytes{job="scrapeyard"} > 0')) == 3
    firing = {rule["name"] for rule in server.rules() if rule["state"] == "firing"}
    assert firing == set()


def _three(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return found if len(found) == 3 else []
