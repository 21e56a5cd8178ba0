"""Keys in every store: made, found, rotated and revoked once."""

from typing import Any

import pytest
from msgspec.structs import replace

from scrapeyard.model.identity import ApiKey, ClientBudget, ClientLimits, Pepper, Role, is_secret, new_secret
from scrapeyard.store.ports import keys as port
from scrapeyard.store.sql import SqlStore

NOW = 1_700_000_000.0
PEPPER = Pepper(b"p" * 32)


def key(number: int, **more: Any) -> ApiKey:
    fields: dict[str, Any] = {
        "id": f"key_{number:032x}",
        "name": f"key-{number}",
        "client": "shop",
        "role": Role.CLIENT,
        "scrapers": ("shop/*",),
        "limits": ClientLimits(rate=20, daily=ClientBudget(mb=500)),
        "digest": PEPPER.digest(new_secret()),
        "pepper_id": PEPPER.id,
        "created_at": NOW,
        "changed_at": NOW,
    }
    return ApiKey(**{**fields, **more})


async def test_a_key_returns_as_it_was_given(store: SqlStore) -> None:
    made = key(1, expires_at=NOW + 60)
    before = await store.api_keys.mark()
    assert await store.api_keys.add(made, NOW)
    assert await store.api_keys.all() == (made,)
    assert await store.api_keys.mark() != before


async def test_a_key_is_revoked_once(store: SqlStore) -> None:
    await store.api_keys.add(key(1), NOW)
    first = await store.api_keys.revoke(key(1).id, NOW + 1)
    assert first is not None
    assert first.fault(NOW + 1) == "the key was revoked"
    again = await store.api_keys.revoke(key(1).id, NOW + 2)
    assert again is not None
    assert again.revoked_at == NOW + 1
    assert await store.api_keys.revoke("key_unknown", NOW) is None


async def test_a_key_is_rotated_once_and_ends_after_the_overlap(store: SqlStore) -> None:
    await store.api_keys.add(key(1), NOW)
    old = await store.api_keys.rotate(key(1).id, key(2), NOW + 60, NOW)
    assert old is not None
    assert (old.replaced_by, old.expires_at) == (key(2).id, NOW + 60)
    assert await store.api_keys.rotate(key(1).id, key(3), NOW + 60, NOW) is None
    await store.api_keys.revoke(key(2).id, NOW)
    assert await store.api_keys.rotate(key(2).id, key(4), NOW + 60, NOW) is None
    assert [each.id for each in await store.api_keys.all()] == [key(1).id, key(2).id]


async def test_the_last_use_only_moves_on_and_is_no_change(store: SqlStore) -> None:
    await store.api_keys.add(key(1), NOW)
    mark = await store.api_keys.mark()
    await store.api_keys.note_use({key(1).id: NOW + 9})
    await store.api_keys.note_use({key(1).id: NOW + 5})
    assert (await store.api_keys.all())[0].last_used_at == NOW + 9
    assert await store.api_keys.mark() == mark


async def test_old_keys_make_room(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("api_keys", "dynamo.keys"):
        monkeypatch.setattr(f"scrapeyard.store.{module}.MAX_KEYS", 2)
    assert port.MAX_KEYS > 2
    await store.api_keys.add(key(1, expires_at=NOW - 10), NOW)
    await store.api_keys.add(key(2), NOW)
    assert not await store.api_keys.add(key(3), NOW - 20)
    assert await store.api_keys.add(key(3), NOW)
    assert [each.id for each in await store.api_keys.all()] == [key(2).id, key(3).id]


def test_a_mistyped_secret_is_known_by_its_checksum() -> None:
    secret = new_secret()
    assert is_secret(secret)
    for wrong in (
        secret[:-1],
        secret + "a",
        secret.swapcase(),
        secret[:5] + ("a" if secret[5] != "a" else "b") + secret[6:],
    ):
        assert not is_secret(wrong)
    assert replace(key(1), digest=PEPPER.digest(secret)).digest != Pepper(b"q" * 32).digest(secret)
