"""Environments on disk: complete or absent, shared by every process of this machine that uses the folder.

    <key>/packages/…  <key>/ready.json    an environment; the marker is written before the folder gets its name
    .new-…  .gone-…                       being built, being removed; left behind by a killed process, removed later
    locks/<wish>.txt                      what a set of requirements was resolved to
    turns/NN                              whose turn it is to resolve or build (flock)
    uv/                                   uv's own cache

A marker that is locked (flock, shared) keeps its environment from being removed; the kernel lets go of the lock when
its holder dies.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import msgspec
from msgspec import Struct

from scrapeyard.model import Environment
from scrapeyard.repository.environments import disk
from scrapeyard.repository.environments.uv import BuildFailed, Deadline

MARKER = "ready.json"
_NEW, _GONE = ".new-", ".gone-"
_TURNS = 64
_RESTING_SECONDS = 60.0
"""An environment requested within these seconds is not removed: a run may be about to lock it."""
_RUBBISH_SECONDS = 3600.0
_HELD = ".held"
"""The builder of a folder locks this file; a killed builder holds no lock."""


class Built(Struct, frozen=True, kw_only=True):
    """A built environment, as its marker describes it."""

    environment: Environment
    extent: disk.Extent
    built_at: float


class _Marker(Struct, frozen=True, kw_only=True):
    extent: disk.Extent
    built_at: float


class EnvironmentStore:
    """The folder. Blocking; every method may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.uv_cache = self.folder / "uv"
        self._checked: set[str] = set()

    def open(self) -> None:
        """Make the folders; remove what killed processes left. Raises OSError."""
        for place in (self.folder, self.folder / "locks", self.folder / "turns", self.uv_cache):
            place.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.remove_rubbish()

    def is_there(self, environment: Environment) -> bool:
        """Whether it has not been removed. One system call."""
        return environment.marker.exists()

    def used(self, environment: Environment) -> None:
        """Record that it was requested now."""
        with contextlib.suppress(OSError):
            os.utime(environment.marker)

    def find(self, key: str) -> Built | None:
        """The built environment; None if it is not built. Removes one whose files do not match its marker."""
        place = self.folder / key
        try:
            marker = msgspec.json.decode((place / MARKER).read_bytes(), type=_Marker)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except msgspec.MsgspecError:
            self._take_away(place)
            return None
        if key not in self._checked and disk.measure(place / "packages") != marker.extent:
            self._take_away(place)
            return None
        self._checked.add(key)
        environment = Environment(key=key, packages=place / "packages", marker=place / MARKER)
        self.used(environment)
        return Built(environment=environment, extent=marker.extent, built_at=marker.built_at)

    @contextlib.contextmanager
    def workbench(self) -> Iterator[Path]:
        """A folder to build in, removed afterwards unless `put` moved it into place."""
        place, held = self._bench()
        with held:
            try:
                yield place
            finally:
                disk.remove(place)

    def _bench(self) -> tuple[Path, TextIO]:
        """A folder and the lock on it. Retries, because a cleanup may remove the folder before it is locked."""
        while True:
            place = Path(tempfile.mkdtemp(prefix=_NEW, dir=self.folder))
            held = (place / _HELD).open("x")
            fcntl.flock(held, fcntl.LOCK_EX)
            if (place / _HELD).exists():
                return place, held
            held.close()

    def put(self, bench: Path, key: str) -> Built:
        """Rename a finished build to its key. Raises Odd or OSError."""
        (bench / _HELD).unlink()
        disk.close_off(bench)
        marker = _Marker(extent=disk.measure(bench / "packages"), built_at=time.time())
        (bench / MARKER).write_bytes(msgspec.json.encode(marker))
        bench.chmod(0o755)
        if (self.folder / key).exists():
            self._take_away(self.folder / key)
        bench.rename(self.folder / key)
        built = self.find(key)
        if built is None:
            raise OSError(f"{key} vanished as it was put in place")
        return built

    def lock(self, wish: str) -> str:
        """The lock that the requirements were resolved to; empty if they were not resolved yet."""
        try:
            return (self.folder / "locks" / f"{wish}.txt").read_text("utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            return ""

    def keep_lock(self, wish: str, lock: str, bench: Path) -> None:
        """Save the lock permanently, or until the file is removed."""
        fresh = bench / "kept.txt"
        fresh.write_text(lock, "utf-8")
        fresh.rename(self.folder / "locks" / f"{wish}.txt")

    def forget_lock(self, wish: str) -> None:
        """Remove a lock whose build failed, so that the requirements are resolved again the next time."""
        (self.folder / "locks" / f"{wish}.txt").unlink(missing_ok=True)

    @contextlib.contextmanager
    def turn(self, name: str, deadline: Deadline) -> Iterator[None]:
        """Lock this name exclusively across processes. Raises BuildStopped, or BuildFailed after the deadline."""
        with (self.folder / "turns" / f"{int(name[:8], 16) % _TURNS:02}").open("a") as file:
            while not _locked(file.fileno(), fcntl.LOCK_EX):
                deadline.check()
                deadline.pause()
            yield

    def make_room(self, most_bytes: int) -> list[str]:
        """Evict the least recently requested environments until the rest fit; those in use stay. Returns their keys."""
        places = sorted(self._environments(), key=lambda each: each[0])
        total, removed = sum(size for _, size, _ in places), []
        for used_at, size, place in places:
            if total <= most_bytes or time.time() - used_at < _RESTING_SECONDS:
                break
            if self._evict(place):
                total -= size
                removed.append(place.name)
        return removed

    def total(self) -> int:
        """Bytes of all environments, as their markers tell."""
        return sum(size for _, size, _ in self._environments())

    def _environments(self) -> Iterator[tuple[float, int, Path]]:
        for place in self.folder.iterdir():
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                marker = msgspec.json.decode((place / MARKER).read_bytes(), type=_Marker)
                yield (place / MARKER).stat().st_mtime, marker.extent.size_bytes, place

    def _evict(self, place: Path) -> bool:
        """Remove it unless it is in use; returns whether it is gone."""
        try:
            with (place / MARKER).open("rb") as marker:
                if not _locked(marker.fileno(), fcntl.LOCK_EX):
                    return False
                self._take_away(place)
        except OSError:
            return False
        return True

    def _take_away(self, place: Path) -> None:
        """Rename it before removing it: a folder named by a key must be complete."""
        self._checked.discard(place.name)
        gone = self.folder / f"{_GONE}{place.name}-{time.monotonic_ns()}"
        try:
            place.rename(gone)
        except FileNotFoundError:
            return
        disk.remove(gone)

    def remove_rubbish(self) -> None:
        """Remove what killed builders left, here or on another machine that shares the folder."""
        for place in self.folder.iterdir():
            if place.name.startswith(_GONE):
                disk.remove(place)
            elif place.name.startswith(_NEW):
                _remove_left(place)


def _remove_left(bench: Path) -> None:
    """Remove it while holding its lock, so that a builder about to lock it sees that the folder is gone."""
    try:
        with (bench / _HELD).open() as held:
            if _locked(held.fileno(), fcntl.LOCK_EX):
                disk.remove(bench)
    except FileNotFoundError:  # about to be locked, or about to be renamed
        with contextlib.suppress(OSError):
            if time.time() - bench.stat().st_mtime > _RUBBISH_SECONDS:
                disk.remove(bench)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def too_large(max_mb: float) -> BuildFailed:
    """The error for an author whose requirements are too large."""
    return BuildFailed(
        f"the requirements take more than {max_mb:g} MB installed; require less, or raise environments.max_mb"
    )
