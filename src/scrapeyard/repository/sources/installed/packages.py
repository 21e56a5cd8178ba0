"""Installed packages that announce scrapers: found by reading their metadata. Nothing is imported. Blocking."""

import hashlib
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from msgspec import Struct

from scrapeyard_sdk.registry import GROUP

MAX_PACKAGES = 200
MAX_ENTRIES = 500
MAX_MODULE_BYTES = 512 * 1024
_ENTRY = re.compile(r"[A-Za-z_]\w{0,99}(\.[A-Za-z_]\w{0,99}){0,15}(:[A-Za-z_]\w{0,99})?", re.ASCII)


class Package(Struct, frozen=True, kw_only=True):
    """One installed distribution with scrapers."""

    name: str
    version: str
    entries: tuple[str, ...]
    """`package.module` or `package.module:function`."""
    mark: str
    """Changes when the package is installed anew or one of the announced modules is edited."""


def interpreter_path() -> tuple[Path, ...]:
    """The module search path for a child: ours, without what environment variables added to it."""
    added = {*os.environ.get("PYTHONPATH", "").split(os.pathsep), ""}
    return tuple(Path(entry) for entry in sys.path if entry not in added and Path(entry).is_dir())


def find_packages(search: tuple[Path, ...]) -> tuple[Package, ...]:
    """Every distribution with entry points of our group, by name; at most MAX_PACKAGES.

    Of two installations of one name the first on the path counts, as for Python.
    """
    found: dict[str, Package] = {}
    for distribution in distributions(path=[str(path) for path in search]):
        try:
            package = _package(distribution, search)
        except (OSError, ValueError, TypeError, LookupError, AttributeError):
            continue  # third-party metadata may be anything; unreadable metadata announces nothing
        if package is not None and package.name not in found and len(found) < MAX_PACKAGES:
            found[package.name] = package
    return tuple(found[name] for name in sorted(found))


def _package(distribution: Distribution, search: tuple[Path, ...]) -> Package | None:
    """None when it announces no scraper."""
    announced = [point.value.replace(" ", "") for point in distribution.entry_points if point.group == GROUP]
    if not announced:
        return None
    entries = tuple(dict.fromkeys(entry[:500] for entry in announced[:MAX_ENTRIES]))
    name, version = str(distribution.metadata["Name"])[:100], str(distribution.version)[:100]
    return Package(name=name, version=version, entries=entries, mark=_mark(distribution, entries, search))


def module_file(module: str, search: Iterable[Path]) -> Path | None:
    """The source of a module, found without importing its parents; None when it has none on this path."""
    relative = Path(*module.split("."))
    for folder in search:
        for candidate in (folder / relative.with_suffix(".py"), folder / relative / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


def is_readable_to_children(file: Path) -> bool:
    """Whether the sandbox lets a child read it: below the interpreter or its libraries, so no editable install."""
    places = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()}
    return any(file.resolve().is_relative_to(Path(place).resolve()) for place in places)


def quick_stamp(search: tuple[Path, ...], modules: Iterable[Path]) -> tuple[int, ...]:
    """Equal while nothing was installed, removed or edited; costs only stat calls."""
    return tuple(_when(path) for path in (*search, *modules))


def is_entry(text: str) -> bool:
    """Whether an announcement names a module, or a function in one."""
    return _ENTRY.fullmatch(text) is not None


def _mark(distribution: Distribution, entries: tuple[str, ...], search: tuple[Path, ...]) -> str:
    total = hashlib.sha256(repr((distribution.version, entries)).encode())
    total.update((distribution.read_text("RECORD") or "").encode("utf-8", "replace"))
    for content in _contents(entries, search):
        total.update(hashlib.sha256(content).digest())
    return total.hexdigest()


def _contents(entries: tuple[str, ...], search: tuple[Path, ...]) -> Iterator[bytes]:
    for entry in entries:
        file = module_file(entry.partition(":")[0], search) if is_entry(entry) else None
        yield read_module(file) if file else b""


def read_module(file: Path) -> bytes:
    """The source, read up to one byte beyond the limit; empty if it is gone."""
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_MODULE_BYTES + 1)
    except OSError:
        return b""


def _when(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
