"""The state of scrapers at the gateway's door: shown and removed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.gateway_stand import Stand, open_stand

HERE = "/api/scrapers/shop/product/state"
ID = "shop/product"


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


async def test_keys_and_values_are_shown(stand: Stand) -> None:
    assert (await stand.client.get(HERE)).json() == {"scraper": ID, "entries": []}
    store = stand.services.store.state
    await store.change(ID, "last_seen", b'{"page":3}', 1_700_000_000.0)
    await store.change(ID, "a", b"1", 1_700_000_000.0)
    entries = (await stand.client.get(HERE)).json()["entries"]
    assert entries == [
        {"key": "a", "bytes": 1, "changed_at": "2023-11-14T22:13:20.000Z"},
        {"key": "last_seen", "bytes": 10, "changed_at": "2023-11-14T22:13:20.000Z"},
    ]
    value = (await stand.client.get(f"{HERE}/last_seen")).json()
    assert value == {"scraper": ID, "key": "last_seen", "value": {"page": 3}}


async def test_keys_are_removed_one_by_one_or_all(stand: Stand) -> None:
    for key in ("a", "b", "c"):
        await stand.services.store.state.change(ID, key, b"1", 1.0)
    for _ in range(2):
        left = (await stand.client.delete(f"{HERE}/b")).json()["entries"]
        assert [entry["key"] for entry in left] == ["a", "c"]
    for _ in range(2):
        assert (await stand.client.delete(HERE)).json()["entries"] == []


async def test_what_is_not_there_is_told(stand: Stand) -> None:
    gone = await stand.client.get(f"{HERE}/none")
    assert (gone.status_code, gone.json()["detail"]) == (404, "shop/product keeps nothing under none")
    assert (await stand.client.get("/api/scrapers/shop/none/state")).status_code == 404
    wrong = await stand.client.get(f"{HERE}/a%20b")
    assert wrong.status_code == 422
    assert "e.g. last_seen" in wrong.json()["detail"]
