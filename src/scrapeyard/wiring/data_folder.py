"""The data directory: made for this user alone, since it holds cookies, credentials of proxies, inputs and results."""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scrapeyard.errors import SettingsInvalid
from scrapeyard.model.identity import Pepper
from scrapeyard.settings import Settings
from scrapeyard.telemetry.events import get_log

log = get_log("data")
DATABASE = "scrapeyard.db"
PEPPER = "pepper"
"""File of the secret under which keys are hashed, unless the settings have one."""
_SHARED = frozenset({"cache", "environments"})
"""Folders with files that children read; their content says nothing about callers."""


def make_data_folder(folder: Path) -> None:
    """Make it, or close one of ours to other users. Raises SettingsInvalid if it cannot be made or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _close(folder)
        for entry in os.scandir(folder):
            if entry.name not in _SHARED and not entry.is_symlink():
                _close(Path(entry.path))
        os.close(os.open(folder / DATABASE, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        words = error.strerror or str(error)
        raise SettingsInvalid(
            f"data_dir: {folder} cannot be used: {words}; make it writable for this user, or choose another --data-dir"
        ) from None


@contextmanager
def lock_data_folder(folder: Path) -> Iterator[None]:
    """Make it, and hold it alone. Raises SettingsInvalid if another process does."""
    make_data_folder(folder)
    with (folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SettingsInvalid(
                f"data_dir: {folder} is in use by another `scrapeyard up`; stop it, or choose another --data-dir"
            ) from None
        yield


def open_for_children(folder: Path) -> None:
    """Let other users pass through, without seeing names: children that run as other users read copies below it."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    folder.chmod(mode | 0o011)


def _close(path: Path) -> None:
    """If it is ours, take every right from users outside its group. The group's rights are the operator's choice."""
    found = path.lstat()
    if found.st_uid == os.geteuid() and found.st_mode & 0o007:
        path.chmod(stat.S_IMODE(found.st_mode) & ~0o007)
        if stat.S_ISDIR(found.st_mode):
            log.info("data.closed", path=str(path))


def make_pepper(settings: Settings) -> Pepper:
    """The pepper. Raises SettingsInvalid if its file cannot be used."""
    given = settings.auth.pepper.get_secret_value()
    return Pepper(given.encode() if given else _from_file(settings.data_dir.resolve() / PEPPER))


def _from_file(file: Path) -> bytes:
    """Of two processes that make it at once, both read what the first one wrote."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.exists():
            _write(file, secrets.token_hex(32).encode())
        found = file.read_bytes().strip()
    except OSError as error:
        raise SettingsInvalid(
            f"auth.pepper: {file}: {error.strerror or error}; set it, or make the file usable"
        ) from None
    if len(found) < 32:
        raise SettingsInvalid(
            f"auth.pepper: {file} has fewer than 32 bytes; restore it, or remove it and make new keys"
        )
    return found


def _write(file: Path, secret: bytes) -> None:
    """Whole or not at all: a link to a complete file fails if there is one already."""
    draft = file.with_name(f"{PEPPER}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as stream:
            stream.write(secret)
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)
