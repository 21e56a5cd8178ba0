"""How busy the cluster was, minute by minute, on SQLite and on PostgreSQL."""

from msgspec.structs import replace

from scrapeyard.dispatch.upkeep.cluster_reading import KEEP_SECONDS, LoadHistory
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.cluster import ClusterReading, example_reading

MINUTE = 1_800_000_000.0


async def test_each_minute_is_written_once_and_old_ones_are_dropped(store: Store) -> None:
    now = MINUTE
    reading: ClusterReading | None = replace(
        example_reading(),
        queue={("default", "high"): 3, ("slow", "low"): 4},
        oldest_seconds={"default": 1.25, "slow": 90.0},
        slots=8,
        busy=5,
        ended={"worker_1": 100},
    )
    history = LoadHistory(store.load, lambda: reading, lambda: now)
    await history.run_once()
    await history.run_once()
    reading, now = replace(reading, ended={"worker_1": 130, "worker_2": 12}), MINUTE + 75
    await history.run_once()
    first, second = await store.load.since(MINUTE)
    assert (first.at, first.waiting, first.busy, first.slots, first.ended) == (MINUTE, 7, 5, 8, None)
    assert first.lanes == {"slow": 90.0, "default": 1.2}
    assert (second.at, second.ended) == (MINUTE + 60, 42)
    await LoadHistory(store.load, lambda: reading, lambda: now).run_once()
    assert (await store.load.since(MINUTE + 1)) == (second,), "another leader wrote the same minute"
    reading, now = None, MINUTE + KEEP_SECONDS
    await history.run_once()
    assert len(await store.load.since(0)) == 2, "without a reading nothing is written"
    reading, now = example_reading(), MINUTE + KEEP_SECONDS + 60
    await history.run_once()
    assert [sample.at - MINUTE for sample in await store.load.since(0)] == [60, KEEP_SECONDS + 60]
