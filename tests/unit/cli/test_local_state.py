"""The state of runs without a server: kept in files, shared by commands at once, bounded."""

import json
from pathlib import Path

import pytest

from scrapeyard.cli.runs.local_state import LocalState, user_state
from scrapeyard.errors import BadRequest

ID = "shop/product"


@pytest.fixture(params=["memory", "file"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> LocalState:
    return LocalState(tmp_path / "kept" if request.param == "file" else None)


async def test_values_are_written_compared_listed_and_removed(state: LocalState) -> None:
    assert await state.read(ID, "a") is None
    assert await state.change(ID, "a", b'{"n": 1.0}', 5.0)
    assert await state.change(ID, "b", b"null", 6.0, only_if=lambda present: present is None)
    assert not await state.change(ID, "a", b"2", 7.0, only_if=lambda present: present == b"other")
    assert (await state.read(ID, "a"), await state.read("shop/list", "a")) == (b'{"n": 1.0}', None)
    assert [(entry.key, entry.bytes, entry.changed_at) for entry in await state.entries(ID)] == [
        ("a", 10, 5.0),
        ("b", 4, 6.0),
    ]
    assert await state.change(ID, "b", None, 8.0)
    assert not await state.change(ID, "b", None, 8.0)
    assert await state.clear(ID) == 1
    assert await state.entries(ID) == ()


async def test_a_state_has_a_bounded_number_of_keys(state: LocalState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapeyard.cli.runs.local_state.MAX_STATE_KEYS", 2)
    for key in ("a", "b"):
        await state.change(ID, key, b"1", 0.0)
    with pytest.raises(BadRequest, match="has 2 keys already"):
        await state.change(ID, "c", b"1", 0.0)
    assert await state.change(ID, "a", b"2", 0.0)


async def test_commands_at_once_see_each_others_changes(tmp_path: Path) -> None:
    one, other = LocalState(tmp_path / "kept"), LocalState(tmp_path / "kept")
    await one.change(ID, "a", b"1", 0.0)
    assert await other.change(ID, "a", b"2", 0.0, only_if=lambda present: present == b"1")
    assert not await one.change(ID, "a", b"3", 0.0, only_if=lambda present: present == b"1")
    assert await one.read(ID, "a") == b"2"
    assert (tmp_path / "kept").stat().st_mode & 0o077 == 0
    assert json.loads((tmp_path / "kept" / "shop%2Fproduct.json").read_text())["a"]["value"] == 2


async def test_a_folder_that_cannot_be_used_is_told_and_the_state_stays_in_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    state = LocalState(tmp_path / "file" / "kept")
    assert await state.change(ID, "a", b"1", 0.0)
    assert await state.read(ID, "a") == b"1"
    assert capsys.readouterr().err.count("the state is not kept") == 1


async def test_a_damaged_file_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "shop%2Fproduct.json"
    file.write_text("{")
    state = LocalState(tmp_path)
    for change in (state.read(ID, "a"), state.change(ID, "a", b"1", 0.0)):
        with pytest.raises(BadRequest, match="remove it to begin without a state"):
            await change
    assert file.read_text() == "{"


def test_the_users_folder_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert user_state() == tmp_path / "scrapeyard" / "scrapers"
