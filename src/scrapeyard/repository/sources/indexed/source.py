"""Scrapers from a web server, a published folder or a bucket, by the index beside the archives."""

import asyncio
import hashlib
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from posixpath import basename, dirname
from typing import Any, BinaryIO

from obstore.exceptions import NotModifiedError

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.repository.archive.archives import MAX_ARCHIVE_BYTES, unpack
from scrapeyard.repository.sources.indexed.document import FILE_NAME, MAX_BYTES, path_fault, read_offer
from scrapeyard.repository.sources.indexed.objects import Absent, Objects, TooLarge, condition, mark_of
from scrapeyard.repository.sources.indexed.plain import fetch_plain, look_plain
from scrapeyard.repository.sources.indexed.stores import (
    bucket_store,
    bucket_url,
    check_bucket,
    login_headers,
    read_url,
    shown_url,
    web_store,
)
from scrapeyard.repository.sources.port import Offer, Release
from scrapeyard.settings import SourceSettings


def http_source(settings: SourceSettings, timeout_seconds: float) -> "IndexedSource":
    """The index at `settings.url` (http, https or file): the URL of the document if it ends with `.json`, otherwise of
    its folder. Raises SettingsInvalid."""
    url = read_url(settings.url.get_secret_value())
    index = FILE_NAME
    if url.path.endswith(".json"):
        index, url = basename(url.path), url._replace(path=dirname(url.path))
    open_store = partial(web_store, url, login_headers(url, settings.token.get_secret_value()), timeout_seconds)
    objects = Objects(open_store, settings.name or shown_url(url), timeout_seconds)
    return IndexedSource(objects, kind="http", index=index)


def bucket_source(settings: SourceSettings, timeout_seconds: float) -> "IndexedSource":
    """The index in a bucket; where there is none, plain folders by version. Raises SettingsInvalid."""
    check_bucket(settings)
    name = settings.name or bucket_url(settings)
    objects = Objects(partial(bucket_store, settings, timeout_seconds), name, timeout_seconds)
    return IndexedSource(objects, kind=settings.type or "s3", index=FILE_NAME, plain=True)


class IndexedSource:
    """Offers what the index says. With `plain`, a store without an index offers its folders by version."""

    is_mutable = False
    needs_signatures = True

    def __init__(self, objects: Objects, *, kind: str, index: str, plain: bool = False) -> None:
        self.name = objects.place
        self.kind = kind
        self._objects = objects
        self._index = index
        self._plain = plain

    async def poll(self, mark: str) -> Offer | None:
        """As the port says; one conditional request. Without entity tags, the whole document is read each time while
        its date is less than a minute old, or if it has none."""
        try:
            meta, text = await self._objects.read(self._index, MAX_BYTES, condition(mark))
        except NotModifiedError:
            return None
        except Absent as error:
            if self._plain:
                return await look_plain(self._objects, mark)
            raise SourceUnavailable(f"{error}; `scrapeyard publish` makes one") from None
        now = mark_of(meta, f"body:{hashlib.sha256(text).hexdigest()}")
        if now == mark:
            return None
        return await asyncio.to_thread(read_offer, text, now, f"{self.name}: {self._index}")

    async def fetch(self, release: Release, folder: Path) -> Path:
        """As the port says. Checks size and digest of an archive before unpacking any of it."""
        try:
            if self._plain and release.place.endswith("/"):
                await fetch_plain(self._objects, release, folder)
            else:
                await self._fetch_archive(release, folder)
        except OSError as error:
            raise SourceUnavailable(f"{release.place}: cannot be written here: {error.strerror or error}") from None
        return folder

    async def stop(self) -> None:
        """Nothing to stop: only idle connections are held between calls."""

    async def _fetch_archive(self, release: Release, folder: Path) -> None:
        if fault := path_fault(release.place):
            raise ScraperInvalid(f"archive: {fault}")
        with tempfile.TemporaryFile(dir=folder.parent) as archive:
            await self._download(release, archive)
            await _to_end(unpack, archive, release.place, folder)

    async def _download(self, release: Release, archive: BinaryIO) -> None:
        digest = hashlib.sha256()

        def take(piece: bytes) -> None:
            digest.update(piece)
            archive.write(piece)

        try:
            meta = await self._objects.stream(release.place, min(release.size, MAX_ARCHIVE_BYTES), take)
        except TooLarge as error:
            raise ScraperInvalid(f"{error.message}, because the index says so; publish it again") from None
        except Absent as error:
            raise SourceUnavailable(f"{error}, though the index names it; publish it again") from None
        archive.flush()
        if meta.size != release.size or digest.hexdigest() != release.mark:
            raise ScraperInvalid(
                f"{release.place}: is not the archive that the index names: {meta.size} bytes with SHA-256 "
                f"{digest.hexdigest()}, not {release.size} with {release.mark}; publish it again"
            )


async def _to_end(work: Callable[..., None], *arguments: Any) -> None:
    """Run in a thread and wait for its end even if cancelled: the thread writes where the caller then cleans up."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        with suppress(Exception):
            await task
        raise
