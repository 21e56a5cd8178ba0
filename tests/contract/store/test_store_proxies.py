"""Pools, standings and meters: what every database must keep of them."""

import pytest

from scrapeyard.store.ports.operations import Meter, UseBy
from scrapeyard.store.ports.overrides import KeptPool, PoolStanding
from scrapeyard.store.ports.store import Store
from tests.contract.nouns import NOW


def meter(**given: object) -> Meter:
    plain = {
        "day": "2026-01-31",
        "writer": "meter_1",
        "job_id": "",
        "site": "shop.example",
        "pool": "",
        "proxy_class": "",
        "requests": 1,
        "failures": 0,
        "bytes": 100,
    }
    return Meter(**(plain | given))  # type: ignore[arg-type]


class TestPools:
    async def test_a_pool_is_kept_changed_and_removed(self, store: Store) -> None:
        one = KeptPool(name="home", definition=b'{"name":"home"}', changed_at=NOW)
        await store.proxies.put_pool(KeptPool(name="alpha", definition=b"{}", changed_at=NOW))
        await store.proxies.put_pool(one)
        assert [pool.name for pool in await store.proxies.pools()] == ["alpha", "home"]
        changed = KeptPool(name="home", definition=b"\x00\xff", changed_at=NOW + 1)
        await store.proxies.put_pool(changed)
        assert (await store.proxies.pools())[1] == changed
        assert await store.proxies.remove_pool("home")
        assert not await store.proxies.remove_pool("home")
        assert [pool.name for pool in await store.proxies.pools()] == ["alpha"]

    def test_a_definition_is_not_told_by_accident(self) -> None:
        assert "secret" not in repr(KeptPool(name="home", definition=b"secret", changed_at=NOW))

    async def test_the_last_standing_of_each_worker_counts(self, store: Store) -> None:
        first = (PoolStanding(pool="home", exits=3, resting=0),)
        last = (PoolStanding(pool="home", exits=3, resting=1, names=("home/a",)), first[0])
        await store.proxies.put_standings("w1", first, NOW)
        await store.proxies.put_standings("w1", last, NOW + 5)
        await store.proxies.put_standings("w2", first, NOW - 60)
        assert await store.proxies.standings(NOW) == {"w1": last}
        await store.proxies.forget_standings_before(NOW)
        assert await store.proxies.standings(0) == {"w1": last}


class TestMeters:
    async def test_what_is_written_twice_counts_once(self, store: Store) -> None:
        for _ in range(2):
            await store.meters.put([meter(requests=5, bytes=500), meter(site="b.example")])
        await store.meters.put([meter(requests=7, bytes=2**40, failures=2)])
        uses = await store.meters.use(["site"], "2026-01-31")
        assert [(use.site, use.requests, use.failures, use.bytes) for use in uses] == [
            ("shop.example", 7, 2, 2**40),
            ("b.example", 1, 0, 100),
        ]

    async def test_writers_add_up(self, store: Store) -> None:
        await store.meters.put([meter(writer=f"meter_{n}", requests=n) for n in range(1, 1201)])
        (use,) = await store.meters.use([], "2026-01-01")
        assert (use.requests, use.bytes) == (1200 * 1201 // 2, 120_000)

    async def test_it_is_broken_down_as_asked(self, store: Store) -> None:
        await store.meters.put(
            [
                meter(pool="home", proxy_class="residential", bytes=10),
                meter(pool="home", proxy_class="residential", bytes=5, job_id="job_1"),
                meter(day="2026-02-01", bytes=7),
                meter(day="2026-01-30", bytes=99),
            ]
        )
        by_class = await store.meters.use(["proxy_class"], "2026-01-31")
        assert {use.proxy_class: use.bytes for use in by_class} == {"residential": 15, "": 7}
        by_job = await store.meters.use(["job_id", "day"], "2026-01-31")
        assert {(use.job_id, use.day): use.bytes for use in by_job} == {
            ("job_1", "2026-01-31"): 5,
            ("", "2026-01-31"): 10,
            ("", "2026-02-01"): 7,
        }
        assert len(await store.meters.use(["day"], "2026-01-01", limit=2)) == 2

    async def test_of_some_sites_alone(self, store: Store) -> None:
        await store.meters.put([meter(site=name) for name in ("a.example", "b.example", "c.example")])
        uses = await store.meters.use(["site"], "2026-01-01", sites=["b.example", "d.example"])
        assert [use.site for use in uses] == ["b.example"]
        assert await store.meters.use(["site"], "2026-01-01", sites=[]) == ()

    async def test_old_days_go(self, store: Store) -> None:
        await store.meters.put([meter(day=f"2026-01-{day:02}") for day in range(1, 5)])
        await store.meters.forget_before("2026-01-03")
        assert [use.day for use in await store.meters.use(["day"], "2026-01-01")] == ["2026-01-03", "2026-01-04"]

    @pytest.mark.parametrize("by", [[], ["site"]])
    async def test_nothing_written_is_nothing_used(self, store: Store, by: list[UseBy]) -> None:
        await store.meters.put([])
        assert sum(use.bytes for use in await store.meters.use(by, "2026-01-01")) == 0
