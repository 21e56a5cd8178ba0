"""What a script has written counts, wherever it put it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapeyard.sandbox.inside import folders

NOBODY = 65534
SIZE = 1 << 20


@pytest.fixture
def plain_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of a user whom the kernel refuses what the mode of a file forbids, which root is not."""
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)
    monkeypatch.chdir(home)  # the folders above may be closed to that user
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield Path()
    finally:
        os.seteuid(before)


@pytest.mark.parametrize("mode", [0o700, 0o500, 0o300, 0o600, 0o100, 0o000])
def test_files_in_locked_folders_count(plain_user: Path, mode: int) -> None:
    locked = plain_user / "run" / "locked"
    locked.mkdir(parents=True)
    (locked / "file").write_bytes(b"x" * SIZE)
    locked.chmod(mode)
    assert SIZE <= folders.measure("run") < 2 * SIZE
    (plain_user / "run").chmod(mode)
    assert SIZE <= folders.measure("run") < 2 * SIZE
    folders.remove("run")


def test_a_link_to_a_locked_folder_is_neither_followed_nor_unlocked(plain_user: Path) -> None:
    outside, run = plain_user / "outside", plain_user / "run"
    for folder in (outside, run):
        folder.mkdir()
    (outside / "file").write_bytes(b"x" * SIZE)
    outside.chmod(0o000)
    (run / "link").symlink_to("../outside")
    assert folders.measure("run") < SIZE
    assert outside.stat().st_mode & 0o777 == 0
    outside.chmod(0o700)


def test_what_is_gone_counts_nothing(plain_user: Path) -> None:
    assert folders.measure(str(plain_user / "gone")) == 0
