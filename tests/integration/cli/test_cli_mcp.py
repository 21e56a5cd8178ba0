"""`scrapeyard mcp`, called with the official client SDK: over stdin and over HTTP, with the caller's role in force."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from scrapeyard.cli.mcp.calls import Api
from scrapeyard.cli.mcp.command import check_open
from scrapeyard.errors import BadRequest
from tests.integration.cli_stand import PROGRAM, Stand
from tests.leaks import PATIENCE
from tests.sites.site import Site, page

PRODUCT = """
def run(ctx, url: str, currency: str = "USD"):
    return {"title": ctx.fetch(url).css_first("h1").text(), "currency": currency}
"""
HOME = b"<html><title>Home</title><main><h1>Lamps</h1><p>We sell lamps.</p><a href='/two'>two</a></main>"
TWO = b"<html><title>Two</title><main><h1>Chairs</h1><p>And chairs.</p></main>"
KEYS = (
    {"name": "shop", "role": "client", "scrapers": ["shop/*", "builtin/*"]},
    {"name": "other", "role": "client"},
    {"name": "see", "role": "viewer"},
)


class Served(NamedTuple):
    """A server, its keys by name, and where tools are served over HTTP."""

    stand: Stand
    url: str
    keys: dict[str, str]
    tools_url: str
    refused: str
    """What other machines would have been offered, while nobody was asked for a key."""


async def refusal_to_open(url: str) -> str:
    api = Api(url)
    try:
        with pytest.raises(BadRequest) as refused:
            await check_open(api, "0.0.0.0", insecure=False)
        return str(refused.value)
    finally:
        await api.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    stand = Stand(tmp_path_factory.mktemp("mcp"))
    stand.write("shop/product", PRODUCT)
    stand.write("toys/product", PRODUCT)
    serving = ("mcp", "--http", "--port", "0", "--server")
    with stand.serving("up", "--port", "0", "--allow-private", says=b"listens on ") as url:
        refused = asyncio.run(refusal_to_open(url))
        with httpx.Client(base_url=url, timeout=PATIENCE) as http:
            admin = http.post("/api/keys", json={"name": "ops", "role": "admin"}).json()["secret"]
            headers = {"X-API-Key": admin}
            keys = {key["name"]: http.post("/api/keys", json=key, headers=headers).json()["secret"] for key in KEYS}
        with stand.serving(*serving, url, says=b"MCP over HTTP: ") as tools_url:
            yield Served(stand, url, keys, tools_url, refused)


@asynccontextmanager
async def over_http(served: Served, key: str, mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
        Client(streamable_http_client(served.tools_url, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site(routes={"/": page(HOME), "/two": page(TWO)}) as site:
        yield site


async def result_of(client: Client, tool: str, **given: Any) -> Any:
    answer = await client.call_tool(tool, given)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def refusal_of(client: Client, tool: str, **given: Any) -> str:
    answer = await client.call_tool(tool, given)
    assert answer.is_error
    return str(answer.content[0].text)  # type: ignore[union-attr]


async def test_over_stdin_pages_scrapers_and_crawls(served: Served, site: Site) -> None:
    started = StdioServerParameters(
        command=PROGRAM,
        args=["mcp", "--server", served.url],
        env={"SCRAPEYARD_KEY": served.keys["shop"], "HOME": str(served.stand.folder)},
    )
    async with Client(started) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"scrape", "extract", "map", "crawl", "job_status", "job_results", "list_scrapers"} <= tools.keys()
        own = tools["run_shop_product"].input_schema
        assert (own["required"], own["properties"]["currency"]["default"]) == (["url"], "USD")
        assert "run_toys_product" not in tools, "this key may not call it"
        read = await result_of(client, "scrape", url=site.url())
        assert "We sell lamps." in read["result"]["markdown"]
        fields = await result_of(client, "select", url=site.url(), fields={"head": "h1"})
        assert fields["result"]["head"] == "Lamps"
        data = await result_of(client, "extract", url=site.url(), fields="title")
        assert (data["status"], data["result"]["data"]["title"]) == ("succeeded", "Lamps")
        ran = await result_of(client, "run_shop_product", url=site.url(), currency="EUR")
        assert ran["result"] == {"title": "Lamps", "currency": "EUR"}
        looked_up = await result_of(client, "get_run", run_id=ran["run_id"])
        assert looked_up["result"] == ran["result"]
        assert "bad_input" in await refusal_of(client, "run_shop_product", url=5)
        assert "required" in await refusal_of(client, "scrape")
        assert "forbidden" in await refusal_of(client, "run_scraper", scraper="toys/product", input={"url": site.url()})
        job = await result_of(client, "crawl", url=site.url(), limit=5)
        async with asyncio.timeout(PATIENCE):
            while (await result_of(client, "job_status", job_id=job["job_id"]))["status"] != "completed":
                await asyncio.sleep(0.1)
        found = await result_of(client, "job_results", job_id=job["job_id"], status="success")
        assert sorted(item["result"]["title"] for item in found["items"]) == ["Home", "Two"]
        with pytest.raises(MCPError, match="there is no tool 'run_toys_product'"):
            await client.call_tool("run_toys_product", {"url": site.url()})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http_the_caller_s_own_key_counts(served: Served, site: Site, mode: str) -> None:
    async with over_http(served, served.keys["shop"], mode) as client:
        made = await result_of(client, "create_job", scraper="shop/product", items=[{"url": site.url(f"/?{mode}")}])
    async with over_http(served, served.keys["other"], mode) as client:
        assert "not_found" in await refusal_of(client, "job_status", job_id=made["job_id"])
        assert "run_toys_product" in {tool.name for tool in (await client.list_tools()).tools}
    async with over_http(served, served.keys["see"], mode) as client:
        assert (await result_of(client, "job_status", job_id=made["job_id"]))["job_id"] == made["job_id"]
        assert "forbidden" in await refusal_of(client, "scrape", url=site.url())


async def test_over_http_strangers_and_pages_are_refused(served: Served) -> None:
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(timeout=PATIENCE) as http:
        without = await http.post(served.tools_url, json=ask, headers=accept)
        assert (without.status_code, "Bearer" in without.headers["www-authenticate"]) == (401, True)
        known = accept | {"X-API-Key": served.keys["shop"]}
        foreign = await http.post(served.tools_url, json=ask, headers=known | {"Origin": "http://evil.example"})
        assert foreign.status_code == 403
        rebound = await http.post(served.tools_url, json=ask, headers=known | {"Host": "evil.example"})
        assert rebound.status_code == 421


def test_an_open_server_is_not_offered_to_other_machines(served: Served) -> None:
    assert "asks nobody for a key" in served.refused
