"""Scrapers as plain objects, a folder for each version: `{site}/{task}/{version}/scraper.toml` and the rest.

Such a folder is never complete at one definite moment. A version counts as present once its manifest is; upload that
last.
"""

import asyncio
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.archive.files import MAX_BYTES, MAX_FILES, is_skipped
from scrapeyard.repository.archive.members import Landing
from scrapeyard.repository.manifest.manifest import FILE_NAME
from scrapeyard.repository.manifest.semver import is_version
from scrapeyard.repository.sources.indexed.objects import Absent, Meta, Objects
from scrapeyard.repository.sources.port import Fault, Offer, Release

if TYPE_CHECKING:
    from obstore import GetOptions

MAX_OBJECTS = 200_000
AT_ONCE = 8
_MARK = "list:"


async def look_plain(objects: Objects, mark: str) -> Offer | None:
    """The offer from a listing; None if nothing changed. Raises SourceUnavailable."""
    found = await objects.under("", MAX_OBJECTS)
    now = _MARK + _digest(found)
    return None if now == mark else _offer(found, now)


async def fetch_plain(objects: Objects, release: Release, folder: Path) -> None:
    """Get the objects of one version as they were listed. Raises SourceUnavailable or ScraperInvalid, OSError."""
    found = await objects.under(release.place.rstrip("/"), MAX_OBJECTS)
    files = {name: meta for meta in found if (name := _file_name(meta.path.removeprefix(release.place)))}
    if _digest(files.values()) != release.mark:
        raise SourceUnavailable(f"{objects.place}: {release.place} has changed since it was listed; look again")
    if len(files) > MAX_FILES or sum(meta.size for meta in files.values()) > MAX_BYTES:
        raise ScraperInvalid(
            f"{release.place}: more than {MAX_FILES} files or {MAX_BYTES >> 20} MB; move what is not needed elsewhere"
        )
    landing, gate = Landing(folder), asyncio.Semaphore(AT_ONCE)

    async def get(name: str, meta: Meta) -> None:
        async with gate:
            options: GetOptions = {"if_match": meta.etag} if meta.etag else {}
            try:
                _, content = await objects.read(meta.path, meta.size, options)
            except Absent as error:
                raise SourceUnavailable(f"{error}; it was there a moment ago") from None
            landing.add_file(name, (content,))

    try:
        async with asyncio.TaskGroup() as tasks:
            for name, meta in files.items():
                tasks.create_task(get(name, meta))
    except ExceptionGroup as several:
        raise several.exceptions[0] from None


def has_plain(found: Iterable[Meta]) -> bool:
    """Whether a listing shows scrapers in plain folders. Archives lie in folders too, but without a manifest."""
    return any((place := _place(meta.path)) and meta.path == place + FILE_NAME for meta in found)


def _offer(found: list[Meta], mark: str) -> Offer:
    versions: dict[str, list[Meta]] = {}
    for meta in found:
        if place := _place(meta.path):
            versions.setdefault(place, []).append(meta)
    releases: list[Release] = []
    faults: list[Fault] = []
    for place, files in sorted(versions.items()):
        if any(meta.path == place + FILE_NAME for meta in files):
            _sort(place, files, releases, faults)
    return Offer(mark=mark, releases=tuple(releases), faults=tuple(faults))


def _sort(place: str, files: list[Meta], releases: list[Release], faults: list[Fault]) -> None:
    scraper_id, _, version = place.rstrip("/").rpartition("/")
    if not is_version(version):
        problem = f"{place}: the folder's name is not a semantic version such as 1.4.2"
        faults.append(Fault(id=scraper_id, version=version[:64], place=place, problem=problem))
        return
    size = sum(meta.size for meta in files)
    releases.append(Release(id=scraper_id, version=version, mark=_digest(files), place=place, size=size))


def _place(path: str) -> str:
    """`site/task/version/` of an object that is part of a scraper; empty for any other."""
    parts = path.split("/", 3)
    if len(parts) < 4 or SCRAPER_ID.fullmatch("/".join(parts[:2])) is None or not _file_name(parts[3]):
        return ""
    return "/".join(parts[:3]) + "/"


def _file_name(name: str) -> str:
    """The name; empty if the object is not part of a scraper."""
    return "" if any(is_skipped(part) for part in name.split("/")) else name


def _digest(found: Iterable[Meta]) -> str:
    total = hashlib.sha256()
    for meta in sorted(found, key=lambda meta: meta.path):
        changed = meta.modified.isoformat() if meta.modified and not meta.etag else ""
        total.update(f"{meta.path}\0{meta.etag}\0{changed}\0{meta.size}\n".encode("utf-8", "surrogatepass"))
    return total.hexdigest()
