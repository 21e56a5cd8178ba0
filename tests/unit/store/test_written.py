"""What operators wrote, read from a store's file by another process: the same as the store says."""

from pathlib import Path

import pytest

from scrapeyard.errors import StoreUnavailable
from scrapeyard.sealing.masters import LocalMasters
from scrapeyard.store.database.written import WrittenOverrides, read_written
from scrapeyard.store.ports.overrides import KeptPool, SiteRules
from scrapeyard.store.sql import SqlStore

MASTERS = LocalMasters([bytes(32)])
RULES = (
    SiteRules(
        site="all.example",
        rate=0.5,
        burst=3,
        concurrency=0,
        adapt=False,
        min_rate=0.2,
        breaker_failures=7,
        breaker_ratio=0.25,
        breaker_seconds=12.5,
        robots="obey",
        note="null",
        updated_at=1.5,
    ),
    SiteRules(site="none.example", updated_at=2.0),
)
POOLS = (KeptPool(name="home", definition=b'{"name": "home"}', changed_at=3.0),)


async def test_every_field_is_as_the_store_has_it_while_the_store_is_open(tmp_path: Path) -> None:
    file = tmp_path / "a name%20with#marks?.db"
    store = SqlStore(
        f"sqlite:///{str(file).replace('%', '%25').replace('?', '%3F').replace('#', '%23')}", masters=MASTERS
    )
    await store.start()
    try:
        assert read_written(file, MASTERS) == WrittenOverrides()
        for rules in RULES:
            await store.sites.put(rules)
        await store.proxies.put_pool(POOLS[0])
        assert read_written(file, MASTERS) == WrittenOverrides(rules=RULES, pools=POOLS)
        assert (await store.sites.rules(), await store.proxies.pools()) == (RULES, POOLS)
    finally:
        await store.stop()
    assert read_written(file, MASTERS) == WrittenOverrides(rules=RULES, pools=POOLS)


def test_a_file_without_tables_has_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    assert read_written(tmp_path / "empty.db", MASTERS) == WrittenOverrides()


@pytest.mark.parametrize("content", [None, b"not a database" * 100])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "some.db").write_bytes(content)
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        read_written(tmp_path / "some.db", MASTERS)
