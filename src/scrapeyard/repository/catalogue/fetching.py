"""From a release to a checked copy in the cache, or to the reason why there is none."""

import asyncio
import errno
import shutil
from pathlib import Path

from msgspec.structs import replace

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import Scraper
from scrapeyard.repository.archive.copies import Cache, content_digest
from scrapeyard.repository.archive.files import ChangedMeanwhile, scraper_files
from scrapeyard.repository.catalogue.entries import VersionEntry
from scrapeyard.repository.catalogue.loading import LoadTerms, load_files
from scrapeyard.repository.sources.port import Release, Source


class NotNow(Exception):
    """The release could not be fetched, through no fault of its author. Try again later; the message says why."""


class OtherContent(Exception):
    """The version has another digest than before. The message names both."""


class Fetcher:
    """Gets releases of one source. Each download uses a temporary folder that is removed at the end."""

    def __init__(self, source: Source, cache: Cache, terms: LoadTerms, timeout_seconds: float) -> None:
        self._source = source
        self._cache = cache
        self._terms = terms if source.needs_signatures else replace(terms, public_keys=())
        self._timeout = timeout_seconds

    async def fetch(self, release: Release, known: str) -> VersionEntry:
        """The entry of a release; it holds a problem if its author must fix it. `known` is the digest that the version
        must have; empty if any digest will do. Raises NotNow or OtherContent."""
        try:
            return await self._land(release, known)
        except ScraperInvalid as error:
            return VersionEntry(release=release, problem=error.message)
        except (NotNow, OtherContent):
            raise
        except Exception as error:  # a failing source must not end the refresh of others
            raise NotNow(why(error, self._timeout)) from error

    async def _land(self, release: Release, known: str) -> VersionEntry:
        folder = await asyncio.to_thread(self._cache.make_scratch)
        try:
            async with asyncio.timeout(self._timeout):
                path = await self._source.fetch(release, folder)
            return await asyncio.to_thread(self._load, release, path, known)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def recall(self, release: Release, digest: str) -> VersionEntry | None:
        """The entry of an earlier copy; None if the copy is gone or damaged. Blocking. Raises OSError."""
        files = self._cache.files(digest)
        if files is None:
            return None
        try:
            scraper = load_files(files, self._cache, self._terms, release.place)
        except ScraperInvalid as error:
            return VersionEntry(release=release, problem=error.message)
        except ChangedMeanwhile:
            return None
        return VersionEntry(release=release, scraper=scraper, size=sum(file.size for file in files))

    def _load(self, release: Release, path: Path, known: str) -> VersionEntry:
        files = scraper_files(path, path.resolve(), release.place, self._cache.folder.resolve())
        if known or release.digest:
            _check_digest(release, content_digest(files), known)
        scraper = load_files(files, self._cache, self._terms, release.place)
        self._check_name(release, scraper)
        return VersionEntry(release=release, scraper=scraper, size=sum(file.size for file in files))

    def _check_name(self, release: Release, scraper: Scraper) -> None:
        """Refuse a release whose manifest has another id or version than the offer."""
        if (scraper.ref.id, scraper.ref.version) == (release.id, release.version):
            return
        if self._source.is_mutable:
            raise ChangedMeanwhile
        raise ScraperInvalid(
            f"{release.place}: offered as {release.id}@{release.version}, but its manifest says {scraper.ref}; "
            "make them agree"
        )


def _check_digest(release: Release, digest: str, known: str) -> None:
    if known and digest != known:
        raise OtherContent(
            f"{release.id}@{release.version} was {known[:12]} and now comes as {digest[:12]} from {release.place}; "
            "the first stays, publish the other under a new version"
        )
    if release.digest and digest != release.digest:
        raise ScraperInvalid(
            f"{release.place}: {release.id}@{release.version} is said to be {release.digest[:12]}, but its content is "
            f"{digest[:12]}; publish it again"
        )


def why(error: BaseException, timeout_seconds: float) -> str:
    """The error message for listings and logs, without paths of this machine."""
    if isinstance(error, SourceUnavailable):
        return error.message
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_seconds:g} s"
    if isinstance(error, ChangedMeanwhile):
        return "changing at this moment"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "the disk is full"
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}; check its permissions and the disk"
    return f"{type(error).__name__}: {str(error)[:200]}"
