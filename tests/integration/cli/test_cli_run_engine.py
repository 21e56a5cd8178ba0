"""Commands without a server fetch with the worker's own engine: solver, proxies, robots.txt, cache, rules of sites."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from scrapeyard.engines.proxies.stored import write_pool
from scrapeyard.settings import ProxyPool
from scrapeyard.store.ports.overrides import KeptPool, SiteRules
from scrapeyard.store.sql import SqlStore
from tests.integration.cli_stand import Ended, Stand
from tests.sites.flaresolverr import ChallengedSite, FlareSolverrSite
from tests.sites.proxy import LOGIN, PASSWORD, USER, plain_proxy
from tests.sites.site import Site, page

GET = """
async def run(ctx, url: str, engine: str = "auto"):
    page = await ctx.fetch(url, engine=engine)
    return {"status": page.status, "text": page.text()}
"""
AUTHORIZATION = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
ROBOTS = page(b"User-agent: *\nDisallow: /private\n", content_type="text/plain")
Command = Callable[..., Awaitable[Ended]]


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    stand = Stand(tmp_path)
    stand.write("lab/get", GET)
    return stand


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site(otherwise=page(b"<p>a page</p>", content_type="text/html")) as site:
        yield site


@pytest.fixture(params=["run", "run --file", "record"])
def command(request: pytest.FixtureRequest, stand: Stand) -> Command:
    """Each command on one address; the first with fields for the input."""

    async def call(url: str, engine: str = "auto", **environment: str) -> Ended:
        given = ("scrapers/lab/get", f"engine={engine}", "--allow-private")
        words: tuple[str, ...] = (*request.param.split(), *given, f"url={url}")
        if request.param == "run --file":
            (stand.folder / "list.txt").write_text(f"{url}\n")
            words = ("run", *given, "--file", "list.txt", "--policy", json.dumps({"retries": 0}))
        elif request.param == "record":
            words += ("--name", "case", "--force")
        return await asyncio.to_thread(stand.cli, *words, **environment)

    return call


async def test_the_solver_is_asked(command: Command) -> None:
    async with ChallengedSite() as challenged, FlareSolverrSite(challenged=challenged, host="127.0.0.1") as solver:
        url = challenged.site.url("/page")
        ended = await command(url, "solver", FLARESOLVERR_URL=solver.url)
    assert ended.status == 0, ended.err
    assert [words["url"] for words in solver.asked("request.get")] == [url]
    assert challenged.site.asked == []


async def test_a_pool_of_the_settings_is_used(command: Command, stand: Stand, site: Site) -> None:
    async with plain_proxy(AUTHORIZATION) as proxy:
        url = f"http://{LOGIN}@127.0.0.1:{proxy.port}"
        text = f'[proxies]\ndefault = "home"\n[[proxies.pools]]\nname = "home"\nurls = ["{url}"]\n'
        (stand.folder / "scrapeyard.toml").write_text(text)
        ended = await command(site.url("/page"))
        assert ended.status == 0, ended.err
        assert [asked.path for asked in proxy.asked] == [site.url("/page")]
    assert site.asked == []


async def test_robots_txt_is_obeyed_where_the_settings_say_so(command: Command, site: Site) -> None:
    site.routes["/robots.txt"] = ROBOTS
    ended = await command(site.url("/private/1"), SCRAPEYARD_SITES__ROBOTS="obey")
    assert ended.status == 1
    assert "fetch_robots" in ended.err
    assert [asked.path for asked in site.asked] == ["/robots.txt"]


async def test_the_second_command_is_served_from_the_cache(command: Command, site: Site) -> None:
    """A folder that a busy machine reads too slowly is passed over, so more than one may have to ask the site."""

    async def asked(**environment: str) -> int:
        before = len(site.asked)
        ended = await command(site.url("/page"), **environment)
        assert ended.status == 0, ended.err
        return len(site.asked) - before

    kept = {"SCRAPEYARD_CACHE__MAX_AGE_SECONDS": "3600"}
    assert await asked(**kept) == 1
    for _ in range(20):
        if await asked(**kept) == 0:
            break
    else:
        pytest.fail("no command was served from the cache")
    assert await asked() == 1, "settings that say nothing of caching fetch again"


async def test_what_operators_wrote_on_the_server_here_is_in_force(command: Command, stand: Stand, site: Site) -> None:
    site.routes["/robots.txt"] = ROBOTS
    async with plain_proxy(AUTHORIZATION) as proxy:
        pool = ProxyPool(name="kept", urls=(f"http://{LOGIN}@127.0.0.1:{proxy.port}",))  # type: ignore[arg-type]
        await write(stand.folder / "scrapeyard-data", SiteRules(site="127.0.0.1", robots="obey"), pool)
        refused = await command(site.url("/private/1"))
        assert "fetch_robots" in refused.err
        ended = await command(site.url("/page"), SCRAPEYARD_PROXIES__DEFAULT="kept")
        assert ended.status == 0, ended.err
        assert site.url("/page") in [asked.path for asked in proxy.asked]


async def test_a_database_that_cannot_be_read_is_told(stand: Stand, site: Site) -> None:
    folder = stand.folder / "scrapeyard-data"
    folder.mkdir()
    (folder / "scrapeyard.db").write_bytes(b"not a database" * 100)
    words = ("run", "scrapers/lab/get", f"url={site.url('/page')}", "--allow-private")
    ended = await asyncio.to_thread(stand.cli, *words)
    assert (ended.status, ended.json["status"]) == (0, 200)
    assert "cannot be read" in ended.err


async def write(data_dir: Path, rules: SiteRules, pool: ProxyPool) -> None:
    """What the API would store."""
    data_dir.mkdir()
    store = SqlStore(f"sqlite:///{data_dir / 'scrapeyard.db'}")
    await store.start()
    await store.sites.put(rules)
    await store.proxies.put_pool(KeptPool(name=pool.name, definition=write_pool(pool), changed_at=1.0))
    await store.stop()
