"""One build, step by step: find, resolve, install, make read-only, move into place. Blocking; runs in a thread."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from scrapeyard.repository.environments import disk, spec
from scrapeyard.repository.environments.spec import EnvironmentSpec, environment_key, names
from scrapeyard.repository.environments.store import Built, EnvironmentStore, too_large
from scrapeyard.repository.environments.uv import BuildFailed, BuildStopped, BuildUnavailable, Deadline, Uv
from scrapeyard.settings import EnvironmentSettings

_MB = 1024 * 1024
_MEASURE_SECONDS = 0.5
_CLEAN_SECONDS = 30.0


class Builder:
    """Builds environments in a store. Processes and threads that want the same one build it only once."""

    def __init__(self, settings: EnvironmentSettings, shelf: EnvironmentStore, stopping: threading.Event) -> None:
        self._settings = settings
        self._shelf = shelf
        self._stopping = stopping
        self._uv = Uv(settings, shelf.uv_cache)

    def make(self, wish: EnvironmentSpec) -> Built:
        """Raises BuildFailed with words for the author, BuildUnavailable, BuildStopped, or OSError."""
        lock = self._lock(wish)
        key = environment_key(lock)
        built = self._shelf.find(key)
        if built is not None:
            return built
        with self._shelf.turn(key, self._patience()):
            built = self._shelf.find(key)
            return built if built is not None else self._build(wish, lock, key)

    def make_room(self) -> list[str]:
        """Evict until `cache_mb` is met, uv's own cache first; returns the keys of the removed environments."""
        self._shelf.remove_rubbish()
        most = int(self._settings.cache_mb * _MB)
        if self._shelf.total() + disk.measure(self._shelf.uv_cache).size_bytes > most:
            self._empty_cache()
        return self._shelf.make_room(most)

    def _deadline(self) -> Deadline:
        return Deadline(self._settings.build_seconds, self._stopping)

    def _patience(self) -> Deadline:
        """How long to wait for another builder: time to resolve and install, plus a margin."""
        return Deadline(2.5 * self._settings.build_seconds, self._stopping)

    def _lock(self, wish: EnvironmentSpec) -> str:
        if wish.lock:
            return wish.lock
        known = self._shelf.lock(wish.key)
        if known:
            return known
        with self._shelf.turn(wish.key, self._patience()):
            return self._shelf.lock(wish.key) or self._resolve(wish)

    def _resolve(self, wish: EnvironmentSpec) -> str:
        with self._shelf.workbench() as bench:
            wanted, held, lock = bench / "wanted.txt", bench / "held.txt", bench / "lock.txt"
            wanted.write_text("".join(f"{line}\n" for line in wish.requirements), "utf-8")
            held.write_text("".join(f"{line}\n" for line in spec.pins()), "utf-8")
            self._uv.compile(wanted, held, lock, self._deadline())
            text = lock.read_text("utf-8")
            self._shelf.keep_lock(wish.key, text, bench)
            return text

    def _build(self, wish: EnvironmentSpec, lock: str, key: str) -> Built:
        with self._shelf.workbench() as bench:
            try:
                self._fill(bench, lock)
                return self._shelf.put(bench, key)
            except disk.Odd as error:
                raise BuildFailed(f"{error} in the requirements is neither a file nor a folder") from None
            except BuildUnavailable:
                raise
            except BuildFailed:
                self._shelf.forget_lock(wish.key)
                self._empty_cache()  # uv's cache may hold what was too large, or incomplete downloads
                raise

    def _fill(self, bench: Path, lock: str) -> None:
        packages, file = bench / "packages", bench / "lock.txt"
        packages.mkdir()
        file.write_text(lock, "utf-8")
        self._uv.install(file, packages, self._deadline(), self._watch(packages))
        (packages / ".lock").unlink(missing_ok=True)
        spec.copy_to(packages, names(lock))
        if disk.measure(packages).size_bytes > self._settings.max_mb * _MB:
            raise too_large(self._settings.max_mb)

    def _watch(self, packages: Path) -> Callable[[], None]:
        """A callback that measures the size now and then; the longer measuring takes, the less often.

        uv unpacks into its cache first, which all builds share, so the limit there is that of all builds together.
        """
        most = self._settings.max_mb * _MB
        before = disk.measure(self._shelf.uv_cache).size_bytes
        next_at = 0.0

        def look() -> None:
            nonlocal next_at
            if time.monotonic() < next_at:
                return
            began = time.monotonic()
            grown = disk.measure(self._shelf.uv_cache).size_bytes - before
            if disk.measure(packages).size_bytes > most or grown > most * self._settings.builds:
                raise too_large(self._settings.max_mb)
            next_at = time.monotonic() + max(_MEASURE_SECONDS, 10 * (time.monotonic() - began))

        return look

    def _empty_cache(self) -> None:
        """Empty uv's cache; leave it for now if another uv uses it."""
        with self._shelf.workbench() as bench:
            try:
                self._uv.clean(bench, Deadline(_CLEAN_SECONDS, self._stopping))
            except (BuildFailed, BuildStopped):
                return
            self._shelf.uv_cache.mkdir(exist_ok=True)
