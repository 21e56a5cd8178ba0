"""How each site is to be treated, in every process alike."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from scrapeyard.engines.politeness.policies import SitePolicies
from scrapeyard.engines.politeness.port import SiteLimits
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import SiteSettings
from scrapeyard.store.ports.overrides import SiteRules
from scrapeyard.store.sql import SqlStore
from tests.leaks import PATIENCE
from tests.services.sqlite import migrated

SITE = "shop.example"
SETTINGS = SiteSettings(rate=5, burst=2, breaker_seconds=7)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore(migrated(tmp_path / "yard.db"))
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
async def queue() -> AsyncIterator[MemoryQueue]:
    queue = MemoryQueue()
    await queue.start()
    yield queue
    await queue.stop()


@pytest.fixture
async def make(store: SqlStore, queue: MemoryQueue) -> AsyncIterator[Callable[[], SitePolicies]]:
    made = []

    def one() -> SitePolicies:
        made.append(SitePolicies(SETTINGS, store.sites, queue))
        return made[-1]

    yield one
    for each in made:
        await each.stop()
        await each.stop()


async def eventually(holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.005)


async def test_a_site_without_rules_is_treated_as_the_settings_say(make: Callable[[], SitePolicies]) -> None:
    policies = make()
    await policies.start()
    assert policies.limits(SITE) == SiteLimits(rate=5, burst=2, breaker_seconds=7)
    assert policies.robots(SITE) == "ignore"
    assert policies.rules(SITE) is None


async def test_rules_win_over_the_settings_where_they_say_something(make: Callable[[], SitePolicies]) -> None:
    policies = make()
    await policies.start()
    written = await policies.put(SiteRules(site=SITE, rate=0, concurrency=3, adapt=False, robots="obey", note="mine"))
    assert written.updated_at > 0
    assert policies.limits(SITE) == SiteLimits(rate=0, burst=2, concurrency=3, adapt=False, breaker_seconds=7)
    assert policies.robots(SITE) == "obey"
    assert policies.rules(SITE) == written
    assert policies.written() == {SITE: written}
    assert await policies.remove(SITE) is True
    assert await policies.remove(SITE) is False
    assert policies.limits(SITE).rate == 5


async def test_an_edit_is_in_force_in_other_processes_at_once(make: Callable[[], SitePolicies]) -> None:
    one, other = make(), make()
    await one.start()
    await other.start()
    await one.put(SiteRules(site=SITE, rate=50))
    await eventually(lambda: other.limits(SITE).rate == 50)
    await one.remove(SITE)
    await eventually(lambda: other.limits(SITE).rate == 5)


async def test_rules_are_there_from_the_start(make: Callable[[], SitePolicies], store: SqlStore) -> None:
    await store.sites.put(SiteRules(site=SITE, rate=1, updated_at=1))
    policies = make()
    await policies.start()
    assert policies.limits(SITE).rate == 1


async def test_an_edit_whose_signal_was_lost_is_found(
    make: Callable[[], SitePolicies], store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapeyard.engines.politeness.policies.EVERY_SECONDS", 0.05)
    policies = make()
    await policies.start()
    await store.sites.put(SiteRules(site=SITE, rate=1, updated_at=1))
    await eventually(lambda: policies.limits(SITE).rate == 1)


async def test_while_the_store_is_away_the_last_known_stay_in_force(
    make: Callable[[], SitePolicies], store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapeyard.engines.politeness.policies.EVERY_SECONDS", 0.02)
    await store.sites.put(SiteRules(site=SITE, rate=1, updated_at=1))
    policies = make()
    await policies.start()
    with capture_logs() as logs:
        await store.stop()
        await eventually(lambda: bool(logs))
        assert policies.limits(SITE).rate == 1
        await store.start()
        await store.sites.put(SiteRules(site=SITE, rate=2, updated_at=2))
        await eventually(lambda: policies.limits(SITE).rate == 2)
    assert [entry["event"] for entry in logs] == ["sites.settings_unknown"]


async def test_a_delay_that_robots_txt_asks_for_is_part_of_the_limits(make: Callable[[], SitePolicies]) -> None:
    policies = make()
    policies.note_crawl_delay(SITE, 0.1)
    policies.note_crawl_delay("other.example", 0.5)
    assert policies.limits(SITE).crawl_rate == 0.1
    assert policies.limits(SITE).rate == 5
    policies.note_crawl_delay(SITE, 0)
    assert policies.limits(SITE).crawl_rate == 0
    assert policies.limits("other.example").crawl_rate == 0.5
