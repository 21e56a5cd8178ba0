"""Items tell by which way their last page was had, and through which proxy; and how often the solver was needed."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from scrapeyard import __version__
from scrapeyard.model import FetchPolicy
from scrapeyard.model.job import BreakerPolicy, Item
from tests.services.batch_yard import BatchYard, batch_yard
from tests.sites.flaresolverr import ChallengedSite, FlareSolverrSite
from tests.sites.proxy import LOGIN, proxy
from tests.sites.site import Site, page

PAGE = f"builtin/page@{__version__}"
HELLO = page(b"<title>hello</title>", content_type="text/html")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as made:
        made.routes["/"] = HELLO
        yield made


async def had(yard: BatchYard, url: str, times: int = 1, **fetching: Any) -> list[Item]:
    """Items of one page, fetched one after another."""
    policy = {"breaker": BreakerPolicy(enabled=False), "max_attempts": 1, "concurrency": 1}
    return await yard.run(PAGE, [{"url": url}] * times, fetching=FetchPolicy(robots="ignore", **fetching), **policy)


async def test_plain_http_and_a_kept_page(tmp_path: Path, site: Site) -> None:
    async with batch_yard(tmp_path, {}) as yard:
        items = await had(yard, site.url("/"), 2, cache="through", max_age_seconds=3600)
    assert [(item.strategy, item.proxy) for item in items] == [("http", ""), ("cache", "")]


async def test_a_proxy_is_named_without_its_credentials(tmp_path: Path, site: Site) -> None:
    async with proxy("socks5") as port:
        pool = {"name": "home", "proxy_class": "residential", "urls": [f"socks5://{LOGIN}@127.0.0.1:{port}"]}
        async with batch_yard(tmp_path, {}, proxies={"pools": [pool]}) as yard:
            (item,) = await had(yard, site.url("/"), proxy="home")
    assert (item.strategy, item.proxy) == ("http", f"residential home/127.0.0.1:{port}")


async def test_a_page_behind_a_challenge(tmp_path: Path) -> None:
    async with ChallengedSite() as challenged, FlareSolverrSite(challenged=challenged) as solver:
        escalation = {"solver_url": solver.url, "solver_seconds": 600, "profiles": ["chrome"]}
        async with batch_yard(tmp_path, {}, escalation=escalation) as yard:
            items = await had(yard, challenged.site.url("/page"), 2)
    assert [item.strategy for item in items] == ["solver", "solver"]
    used = [(item.usage.solver_calls, item.usage.solver_successes) for item in items if item.usage is not None]
    assert used == [(1, 1), (1, 1)]


async def test_a_page_that_did_not_come_was_had_by_no_way(tmp_path: Path) -> None:
    async with batch_yard(tmp_path, {}) as yard:
        (item,) = await had(yard, "http://127.0.0.1:1/")
    assert (item.strategy, item.proxy, item.status) == ("", "", "error")
