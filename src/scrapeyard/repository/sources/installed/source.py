"""Scrapers of installed Python packages, announced by entry points of the group `scrapeyard.scrapers`."""

import asyncio
import hashlib
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.manifest.semver import is_version
from scrapeyard.repository.manifest.signature import read_signature
from scrapeyard.repository.sources.installed.discovery import SECONDS, Announced, Discovered, discover
from scrapeyard.repository.sources.installed.packages import (
    MAX_MODULE_BYTES,
    Package,
    find_packages,
    interpreter_path,
    is_readable_to_children,
    module_file,
    quick_stamp,
    read_module,
)
from scrapeyard.repository.sources.port import Fault, Offer, Release

_MANIFEST_KEYS = (
    "id",
    "version",
    "name",
    "description",
    "capabilities",
    "allowed_hosts",
    "network",
    "lane",
    "isolation",
    "config",
    "policy",
    "limits",
)


def write_scraper(announced: Announced, source: bytes, mark: str, folder: Path) -> None:
    """Write the folder. `source` is the module's; `mark` makes the content, and so the digest, change with the package.

    Raises ScraperInvalid if the function cannot take an input, or if its options do not fit a manifest.
    """
    told, where = announced.told, f"{announced.module}:{announced.function}"
    schema = told.get("input")
    if schema is None:
        schema = read_signature(source, announced.function, announced.module)
    manifest = [f"{key} = {_toml(told[key], where)}" for key in _MANIFEST_KEYS if key in told]
    manifest.append('input = { schema = "input.json" }')
    (folder / "input.json").write_text(json.dumps(schema), "utf-8")
    if "output" in told:
        manifest.append('output = { schema = "output.json" }')
        (folder / "output.json").write_text(json.dumps(told["output"]), "utf-8")
    (folder / "scraper.toml").write_text("\n".join(manifest) + "\n", "utf-8", "replace")
    (folder / "scraper.py").write_text(_script(announced, mark), "utf-8")


def _script(announced: Announced, mark: str) -> str:
    """The generated script; it contains only checked names."""
    lines = [
        f'"""{announced.function} of the installed package\'s module {announced.module}."""',
        f"# The package's content: {mark}",
        f"from {announced.module} import {announced.function} as run",
    ]
    if announced.validates:
        lines.append(f"from {announced.module} import validate_result")
    return "\n".join(lines) + "\n"


def _toml(value: Any, where: str) -> str:
    """A value of JSON on one line of TOML. Its text is JSON's, which TOML reads, but for DEL and lone surrogates."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_text(key)} = {_toml(child, where)}" for key, child in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(child, where) for child in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if value is None:
        raise ScraperInvalid(f"{where}: @scraper was told None inside a table; leave the key out")
    return json.dumps(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


RETRY_SECONDS = 300.0
"""Seconds until a package whose import hung or died is tried again, changed or not."""


class _Known(Struct, frozen=True, kw_only=True):
    mark: str
    discovered: Discovered
    try_again_at: float


class _Entry(Struct, frozen=True, kw_only=True):
    announced: Announced
    mark: str
    source: bytes


class InstalledSource:
    """What the packages of this interpreter offer.

    `search` adds folders to search, which children must have on their path too; `is_readable` says whether the sandbox
    lets a child read a file.
    """

    name = "installed"
    kind = "installed"
    is_mutable = True
    needs_signatures = False

    def __init__(
        self,
        home: Path,
        *,
        search: tuple[Path, ...] = (),
        is_readable: Callable[[Path], bool] = is_readable_to_children,
        seconds: float = SECONDS,
    ) -> None:
        self._home = home
        self._added = search
        self._is_readable = is_readable
        self._seconds = seconds
        self._known: dict[str, _Known] = {}
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._modules: tuple[Path, ...] = ()
        self._stamp: tuple[int, ...] | None = None
        self._mark = ""

    async def poll(self, mark: str) -> Offer | None:
        """As the port says."""
        search = (*self._added, *interpreter_path())
        stamp = await asyncio.to_thread(quick_stamp, search, self._modules)
        if stamp == self._stamp and mark == self._mark and not self._is_due():
            return None
        packages = await asyncio.to_thread(find_packages, search)
        await self._learn(packages)
        offer = await asyncio.to_thread(self._offer, packages, search)
        self._stamp = await asyncio.to_thread(quick_stamp, search, self._modules)
        self._mark = offer.mark
        return None if offer.mark == mark else offer

    async def fetch(self, release: Release, folder: Path) -> Path:
        """As the port says."""
        key = release.id, release.version
        if key not in self._entries:
            await self.poll("")
        entry = self._entries.get(key)
        if entry is None or entry.mark != release.mark:
            raise SourceUnavailable(
                f"{release.id}@{release.version} is not installed any more as it was", retry_after=1
            )
        await asyncio.to_thread(write_scraper, entry.announced, entry.source, entry.mark, folder)
        return folder

    async def stop(self) -> None:
        """Nothing to close."""

    def _is_due(self) -> bool:
        now = time.monotonic()
        return any(known.try_again_at <= now for known in self._known.values())

    async def _learn(self, packages: tuple[Package, ...]) -> None:
        """Import new and changed packages, one after another; forget those that are gone."""
        known: dict[str, _Known] = {}
        for package in packages:
            before = self._known.get(package.name)
            if before is None or before.mark != package.mark or before.try_again_at <= time.monotonic():
                before = await self._import(package)
            known[package.name] = before
        self._known = known

    async def _import(self, package: Package) -> _Known:
        try:
            found = await discover(package, self._added, self._home, self._seconds)
        except OSError as error:
            raise SourceUnavailable(f"no process could be made to look at packages: {error.strerror}") from None
        again = math.inf if found.ended_well else time.monotonic() + RETRY_SECONDS
        return _Known(mark=package.mark, discovered=found, try_again_at=again)

    def _offer(self, packages: tuple[Package, ...], search: tuple[Path, ...]) -> Offer:
        self._entries, modules = {}, []
        releases, faults = [], []
        for package in packages:
            discovered = self._known[package.name].discovered
            for broken in discovered.broken:
                faults.append(_fault(package, broken.entry, f"{package.name}: {broken.entry}: {broken.problem}"))
            for announced in discovered.announced:
                file = module_file(announced.module, search)
                modules += [file] if file else []
                try:
                    releases.append(self._release(announced, file))
                except ScraperInvalid as error:
                    faults.append(_fault_of(announced, error.message))
        self._modules = tuple(dict.fromkeys(modules))
        told = msgspec.json.encode((releases, faults))
        return Offer(mark=hashlib.sha256(told).hexdigest(), releases=tuple(releases), faults=tuple(faults))

    def _release(self, announced: Announced, file: Path | None) -> Release:
        """Raises ScraperInvalid."""
        key = _identity(announced)
        source = self._source(announced, file)
        if key in self._entries:
            other = self._entries[key].announced
            raise ScraperInvalid(f"{_place(announced)}: {'@'.join(key)} is announced by {_place(other)} too")
        told = msgspec.json.encode((announced.told, announced.validates, announced.package.mark))
        mark = hashlib.sha256(told + hashlib.sha256(source).digest()).hexdigest()
        self._entries[key] = _Entry(announced=announced, mark=mark, source=source)
        return Release(id=key[0], version=key[1], mark=mark, place=_place(announced))

    def _source(self, announced: Announced, file: Path | None) -> bytes:
        if file is None:
            raise ScraperInvalid(
                f"{_place(announced)}: the source of {announced.module} is not found; install it as a package"
            )
        if not self._is_readable(file):
            raise ScraperInvalid(
                f"{_place(announced)}: {announced.module} lies where children cannot read it, as in an editable "
                "install; install it as a package"
            )
        source = read_module(file)
        if not 0 < len(source) <= MAX_MODULE_BYTES:
            raise ScraperInvalid(f"{_place(announced)}: {announced.module} is gone or over {MAX_MODULE_BYTES >> 10} KB")
        return source


def _identity(announced: Announced) -> tuple[str, str]:
    scraper_id, version = announced.told.get("id"), announced.told.get("version")
    if not isinstance(scraper_id, str) or SCRAPER_ID.fullmatch(scraper_id) is None:
        raise ScraperInvalid(f'{_place(announced)}: id: must be site/task in lower case, e.g. "shop/product"')
    if not isinstance(version, str) or not is_version(version):
        raise ScraperInvalid(f'{_place(announced)}: version: must be a semantic version such as "1.4.2"')
    return scraper_id, version


def _place(announced: Announced) -> str:
    return f"{announced.package.name} {announced.package.version}, {announced.module}:{announced.function}"


def _fault(package: Package, entry: str, problem: str) -> Fault:
    return Fault(id=package.name, place=f"{package.name} {package.version}, {entry}", problem=problem)


def _fault_of(announced: Announced, problem: str) -> Fault:
    scraper_id, version = announced.told.get("id"), announced.told.get("version")
    good = isinstance(scraper_id, str) and SCRAPER_ID.fullmatch(scraper_id) is not None
    return Fault(
        id=str(scraper_id) if good else announced.package.name,
        version=version if good and isinstance(version, str) and is_version(version) else "",
        place=_place(announced),
        problem=problem,
    )
