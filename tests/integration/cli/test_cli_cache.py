"""`scrapeyard cache` against a real gateway."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.engines.cache.disk import DiskPages
from scrapeyard.gateway.server import GatewayServer
from scrapeyard.model import Priority
from scrapeyard.queues.port import Queue
from scrapeyard.settings import GatewaySettings, Settings
from tests.integration.cli_stand import PATIENCE, Ended, Stand
from tests.integration.gateway.test_gateway_cache import keep
from tests.integration.gateway_stand import open_services

Cli = Callable[..., Coroutine[Any, Any, Ended]]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Cli, DiskPages, Queue]]:
    (tmp_path / "cli").mkdir()
    stand = Stand(tmp_path / "cli")
    pages = DiskPages(tmp_path / "pages", limit_bytes=2**20, max_page_bytes=2**20)
    await pages.start()
    async with open_services(tmp_path, Settings(gateway=GatewaySettings(port=0))) as services:
        server = GatewayServer(replace(services, pages=pages))
        await server.start()

        async def cli(*words: str) -> Ended:
            return await asyncio.to_thread(stand.cli, "cache", *words, SCRAPEYARD_URL=server.url)

        yield cli, pages, services.queue
        await server.stop()
    await pages.stop()


async def test_pages_are_counted_and_forgotten(served: tuple[Cli, DiskPages, Queue]) -> None:
    cli, pages, _ = served
    await keep(pages, "https://shop.example/a", "https://shop.example/b", "https://other.example/")
    shown = await cli()
    assert shown.rows[0][:2] == ["disk", "3"]
    assert "max_age_seconds" in shown.err
    assert (await cli("stats", "--json")).json["shared"]["pages"] == 3
    assert (await cli("invalidate", "https://shop.example/a")).out == "1 page dropped\n"
    assert (await cli("invalidate", "shop.example", "--json")).json == {"dropped": 1}
    assert (await cli("invalidate", "--all")).out == "1 page dropped\n"


@pytest.mark.parametrize(
    "words", [("invalidate",), ("invalidate", "x.example", "--all"), ("invalidate", "a b"), ("warm",)]
)
async def test_wrong_usage_exits_2(served: tuple[Cli, DiskPages, Queue], words: tuple[str, ...]) -> None:
    cli, _, _ = served
    assert (await cli(*words)).status == 2


async def test_a_site_with_a_port_is_told_to_be_written_without(served: tuple[Cli, DiskPages, Queue]) -> None:
    cli, _, _ = served
    ended = await cli("invalidate", "127.0.0.1:8000")
    assert ended.status == 2
    assert "without port" in ended.err


async def test_warming_from_a_file_goes_in_batches(served: tuple[Cli, DiskPages, Queue], tmp_path: Path) -> None:
    cli, _, queue = served
    urls = [f"https://shop.example/{number}" for number in range(1001)]
    (tmp_path / "urls.txt").write_text("\ufeff" + "\n\n".join(urls[1:]) + "\n")
    done = await cli("warm", urls[0], "--from", str(tmp_path / "urls.txt"), "--max-age", "60")
    assert (done.status, len(done.rows)) == (0, 1001)
    taken = await queue.take(["default"], 2000, list(Priority), PATIENCE)
    assert len(taken) == 1001
    assert {each.fetching.max_age_seconds for each in taken} == {60}
