"""Sealed values and the master keys above them."""

import base64
import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.errors import SealBroken, SettingsInvalid
from scrapeyard.sealing.masters import CommandMasters, FileMasters, LocalMasters, read_key
from scrapeyard.sealing.port import Masters, WrappedKey
from scrapeyard.sealing.sealer import KEY_BYTES, OVERHEAD, Sealer, is_sealed

KEYS = {1: bytes(32), 2: b"k" * 32}


def sealer(keys: dict[int, bytes] = KEYS) -> Sealer:
    made = Sealer()
    made.load(keys)
    return made


def wrapped(masters: Masters, key: bytes = b"d" * 32) -> WrappedKey:
    return WrappedKey(number=1, wrapped=masters.wrap(key), master=masters.current, created_at=0.0)


@given(st.binary(max_size=2000), st.text(max_size=50))
def test_what_is_sealed_opens_in_its_place_alone(value: bytes, place: str) -> None:
    sealed = sealer().seal(value, place)
    assert is_sealed(sealed)
    assert len(sealed) == len(value) + OVERHEAD
    assert sealer().open(sealed, place) == value
    with pytest.raises(SealBroken, match="moved"):
        sealer().open(sealed, place + "x")


@given(st.integers(min_value=4), st.integers(min_value=1, max_value=255))
def test_a_changed_byte_is_noticed(at: int, change: int) -> None:
    sealed = bytearray(sealer().seal(b"cookies of a session", "here"))
    sealed[4 + at % (len(sealed) - 4)] ^= change
    with pytest.raises(SealBroken):
        sealer().open(bytes(sealed), "here")


def test_the_newest_key_seals_and_older_ones_open() -> None:
    old = sealer({1: KEYS[1]}).seal(b"x", "here")
    assert sealer().open(old, "here") == b"x"
    with pytest.raises(SealBroken, match="does not have"):
        sealer({1: KEYS[1]}).open(sealer().seal(b"x", "here"), "here")


def test_texts_and_values_in_clear() -> None:
    made = sealer()
    text = made.seal_text("s3cret", "here")
    assert "s3cret" not in text
    assert made.open_text(text, "here") == "s3cret"
    assert (made.open(b'{"a": 1}', "here"), made.open_text("plain", "here")) == (b'{"a": 1}', "plain")
    assert Sealer().seal(b"x", "here") == b"x"
    with pytest.raises(SealBroken):
        made.open_text(text[:-3], "here")


def test_the_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    one, other = (FileMasters(tmp_path / "master.key", create=True) for _ in range(2))
    one.prepare(())
    other.prepare(())
    assert one.current == other.current != ""
    assert other.unwrap(wrapped(one)) == b"d" * 32
    assert stat.S_IMODE((tmp_path / "master.key").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["master.key"]


def test_a_file_is_not_made_for_a_database_that_has_secrets(tmp_path: Path) -> None:
    masters = FileMasters(tmp_path / "master.key", create=True)
    kept = wrapped(LocalMasters([os.urandom(32)]))
    masters.prepare([kept])
    with pytest.raises(SettingsInvalid, match="there is none here; give every process the same master key"):
        masters.unwrap(kept)
    assert os.listdir(tmp_path) == []


def test_a_file_open_to_others_is_refused(tmp_path: Path) -> None:
    FileMasters(tmp_path / "k", create=True).prepare(())
    (tmp_path / "k").chmod(0o644)
    with pytest.raises(SettingsInvalid, match="chmod it to 600"):
        FileMasters(tmp_path / "k").prepare(())


def test_old_and_new_key_are_valid_while_a_file_is_rotated(tmp_path: Path) -> None:
    masters = FileMasters(tmp_path / "k", create=True)
    masters.prepare(())
    before = wrapped(masters)
    masters.add()
    starting = FileMasters(tmp_path / "k")
    starting.prepare([before])
    assert starting.unwrap(before) == starting.unwrap(wrapped(masters)) == b"d" * 32
    masters.drop_old()
    starting.prepare([before])
    with pytest.raises(SettingsInvalid, match=before.master):
        starting.unwrap(before)


@pytest.mark.parametrize("text", ["", "abc", base64.b64encode(b"short").decode(), "ключ"])
def test_a_key_that_is_none_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        read_key(text, "secrets.master_key")
    assert not text or text not in str(caught.value)


def test_a_command_wraps_and_unwraps(tmp_path: Path) -> None:
    program = tmp_path / "kms.py"
    program.write_text(
        "import base64, sys\n"
        "given = base64.b64decode(sys.stdin.read())\n"
        "assert sys.argv[1] in ('wrap', 'unwrap')\n"
        "if sys.argv[1] == 'unwrap' and not given.startswith(b'v1:'): sys.exit('no such key')\n"
        "out = b'v1:' + given[::-1] if sys.argv[1] == 'wrap' else given[3:][::-1]\n"
        "print(base64.b64encode(out).decode())\n"
    )
    masters = CommandMasters(f"{sys.executable} {program}")
    key = os.urandom(KEY_BYTES)
    assert masters.unwrap(wrapped(masters, key)) == key
    with pytest.raises(SettingsInvalid, match="no such key"):
        masters.unwrap(WrappedKey(number=1, wrapped=b"other", master="command", created_at=0))
    with pytest.raises(SettingsInvalid, match="FileNotFoundError"):
        CommandMasters(str(tmp_path / "no-such-program")).wrap(key)
