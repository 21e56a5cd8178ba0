"""One host of each driver for a module, and a site of pages that tests write."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import pytest_asyncio

from scrapeyard.engines.browser.host import ProcessHost
from scrapeyard.engines.browser.port import LIGHT_HOST, USUAL_HOST
from tests.services.browser import OpenPage, hosted, opened
from tests.services.static_site import StaticSite


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StaticSite]:
    """A server of the module's own."""
    site = StaticSite(tmp_path_factory.mktemp("site")).start()
    yield site
    site.stop()


@pytest.fixture
def page_at(site: StaticSite) -> Callable[..., str]:
    """Write a page; its URL."""

    def write(name: str, html: str) -> str:
        (site.folder / name).write_text(
            html if html.startswith("<!") else f"<!doctype html><meta charset=utf-8><title>{name}</title>{html}"
        )
        return site.url + name

    return write


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(driver: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProcessHost]:
    """Shared by the module's tests."""
    settings, kind = ({}, LIGHT_HOST) if driver == "light" else ({"driver": driver}, USUAL_HOST)
    async with hosted(tmp_path_factory.mktemp("host"), kind, **settings) as (host, _):
        yield host


@pytest.fixture(autouse=True)
def able(request: pytest.FixtureRequest) -> None:
    """Skips a test that needs what its browser says it lacks."""
    if (needs := request.node.get_closest_marker("needs")) and "host" in request.fixturenames:
        lacking = set(needs.args) - set(request.getfixturevalue("host").facts.abilities)
        if lacking:
            pytest.skip(f"this browser has no {', '.join(sorted(lacking))}")


@pytest.fixture(scope="module", params=["patchright", "playwright", "light"])
def driver(request: pytest.FixtureRequest) -> str:
    """Both are promised to do the same."""
    return str(request.param)


@pytest_asyncio.fixture(loop_scope="module")
async def page(host: ProcessHost) -> AsyncIterator[OpenPage]:
    """A context of the test's own."""
    async with opened(host) as page:
        yield page
