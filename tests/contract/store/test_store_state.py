"""The state of scrapers, and the progress of runs, on SQLite and on PostgreSQL."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from scrapeyard.errors import BadRequest
from scrapeyard.model import RunProgress, RunWait
from scrapeyard.store import operations
from scrapeyard.store.dynamo import sessions
from scrapeyard.store.ports.store import Store
from tests.contract.nouns import NOW, a_run, an_ending, begun

ID = "shop/product"


async def test_a_value_is_kept_by_scraper_and_key(store: Store) -> None:
    assert await store.state.read(ID, "seen") is None
    assert await store.state.change(ID, "seen", b'{"a":"\\u0000"}', NOW)
    assert await store.state.change(ID, "seen", b"[1,2]", NOW + 1)
    assert await store.state.read(ID, "seen") == b"[1,2]"
    assert await store.state.read("shop/list", "seen") is None
    assert await store.state.read(ID, "Seen") is None


async def test_a_key_can_be_removed_once_and_all_at_once(store: Store) -> None:
    for key in ("b", "a", "c"):
        await store.state.change(ID, key, b"10", NOW)
    await store.state.change("shop/list", "a", b"1", NOW)
    assert [await store.state.change(ID, "b", None, NOW) for _ in range(2)] == [True, False]
    assert [(entry.key, entry.bytes, entry.changed_at) for entry in await store.state.entries(ID)] == [
        ("a", 2, NOW),
        ("c", 2, NOW),
    ]
    assert [await store.state.clear(ID) for _ in range(2)] == [2, 0]
    assert await store.state.read("shop/list", "a") == b"1"


async def test_a_change_may_depend_on_what_is_there(store: Store) -> None:
    seen: list[bytes | None] = []

    def only(expected: bytes | None) -> Any:
        return lambda present: (seen.append(present), present == expected)[1]

    assert not await store.state.change(ID, "n", b"2", NOW, only_if=only(b"1"))
    assert await store.state.entries(ID) == ()
    assert await store.state.change(ID, "n", b"1", NOW, only_if=only(None))
    assert not await store.state.change(ID, "n", b"9", NOW, only_if=only(None))
    assert await store.state.change(ID, "n", b"2", NOW, only_if=only(b"1"))
    assert not await store.state.change(ID, "n", None, NOW, only_if=only(b"1"))
    assert await store.state.read(ID, "n") == b"2"
    assert set(seen) == {None, b"1", b"2"}


async def test_of_many_changes_at_once_one_wins_each_round(store: Store) -> None:
    await store.state.change(ID, "n", b"0", NOW)

    async def count() -> None:
        while True:
            present = await store.state.read(ID, "n")
            following = str(int(present or b"0") + 1).encode()
            if await store.state.change(ID, "n", following, NOW, only_if=present.__eq__):
                return

    await asyncio.gather(*(count() for _ in range(20)))
    assert await store.state.read(ID, "n") == b"20"


async def test_a_scraper_has_so_many_keys_and_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (operations, sessions):
        monkeypatch.setattr(module, "MAX_STATE_KEYS", 3)
    for number in range(3):
        await store.state.change(ID, f"k{number}", b"1", NOW)
    with pytest.raises(BadRequest, match="has 3 keys already"):
        await store.state.change(ID, "k3", b"1", NOW)
    assert await store.state.change(ID, "k0", b"2", NOW)
    assert await store.state.change("shop/list", "k3", b"1", NOW)
    assert len(await store.state.entries(ID)) == 3


async def test_progress_is_written_while_a_run_goes_on_and_with_its_end(store: Store) -> None:
    run = begun(a_run())
    assert not await store.runs.note_progress(run.id, 1, RunProgress(done=1))
    await store.runs.begin([run])
    half = RunProgress(done=20, total=40, message="pages")
    assert await store.runs.note_progress(run.id, 1, half)
    assert not await store.runs.note_progress(run.id, 2, RunProgress(done=1))
    found = await store.runs.get(run.id)
    assert found is not None
    assert (found.progress, found.waiting, found.usage) == (half, None, None)
    wait = RunWait(reason="site_turn", site="shop.example", until=NOW + 9, message="the site's turn comes in 9 s")
    assert await store.runs.note_progress(run.id, 1, None, wait)
    found = await store.runs.get(run.id)
    assert found is not None
    assert (found.progress, found.waiting) == (half, wait)
    ending = an_ending(run)
    whole = replace(half, done=40)
    await store.runs.finish([replace(ending, outcome=replace(ending.outcome, progress=whole))])
    found = await store.runs.get(run.id)
    assert found is not None
    assert (found.progress, found.waiting) == (whole, None)
    assert not await store.runs.note_progress(run.id, 1, half)
