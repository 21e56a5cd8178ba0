"""The shared tier for one process: pages as files in the data directory, there again after a restart.

A file is `<site>/<url>-<id>`, all in hex digits, so that a look at the names tells what an invalidation needs. Its time
of change is when it was last used. Only one process may use a folder. The size counted is that of the files' content.
"""

import asyncio
import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import ParamSpec, TypeVar

from msgspec import Struct

from scrapeyard.engines.cache.coding import UnreadablePage, decode, encode
from scrapeyard.engines.cache.identity import url_digest
from scrapeyard.engines.cache.port import CachedPage, PageKey, StoreStats
from scrapeyard.errors import Unavailable
from scrapeyard.telemetry.events import get_log

P = ParamSpec("P")
T = TypeVar("T")
log = get_log("cache")
_PART = ".part"
_NAME = re.compile(r"([0-9a-f]{32})-([0-9a-f]{32})")


class _File(Struct, frozen=True):
    path: Path
    url: str
    site: str
    """Digest, as in the folder's name."""
    size: int


class DiskPages:
    """Pages in a folder, at most `limit_bytes` of files. All of its work is done in one thread, in the order asked."""

    def __init__(
        self, folder: Path, *, limit_bytes: int, max_page_bytes: int, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._limit = limit_bytes
        self._max_page = max_page_bytes
        self._clock = clock
        self._files: OrderedDict[str, _File] = OrderedDict()
        self._bytes = self._hits = self._misses = self._evicted = 0
        self._thread: ThreadPoolExecutor | None = None
        self._broken = False

    async def start(self) -> None:
        """Look at what is there from before; what should not be there, such as half-written files, is removed."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "cache-disk")
            await self._quietly(self._scan)

    async def stop(self) -> None:
        """Let what is under way end."""
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.get_running_loop().run_in_executor(None, thread.shutdown)

    async def get(self, key: PageKey) -> CachedPage | None:
        """One read; None also when the file is damaged, and then it is removed."""
        if key.id not in self._files:
            self._misses += 1
            return None
        page = await self._quietly(self._read, key)
        self._misses += page is None
        self._hits += page is not None
        return page

    async def put(self, key: PageKey, page: CachedPage) -> None:
        """Written beside and then renamed, so that no reader finds half a page."""
        if len(page.body) <= self._max_page and page.expires_at > self._clock():
            await self._quietly(self._write, key, page)

    async def drop(self, url: str) -> int:
        """By the names of the files."""
        digest = url_digest(url)
        return await self._surely(self._remove_where, lambda file: file.url == digest)

    async def drop_site(self, site: str) -> int:
        """By the names of the folders."""
        digest = _site_digest(site)
        return await self._surely(self._remove_where, lambda file: file.site == digest)

    async def drop_all(self) -> int:
        """Every file."""
        return await self._surely(self._remove_where, lambda _file: True)

    async def stats(self) -> StoreStats:
        """Counted since the start."""
        return StoreStats(
            kind="disk",
            pages=len(self._files),
            bytes=self._bytes,
            limit_bytes=self._limit,
            hits=self._hits,
            misses=self._misses,
            evicted=self._evicted,
        )

    async def claim(self, name: str, seconds: float) -> bool:  # noqa: ARG002  there is no other process
        """Always: one process uses the folder."""
        return True

    async def release(self, name: str) -> None:
        """Nothing to give back."""

    async def _do(self, work: Callable[P, T], *args: P.args, **_: P.kwargs) -> T:
        if self._thread is None:
            raise OSError("stopped")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    async def _quietly(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            done = await self._do(work, *args, **kwargs)
            self._broken = False
        except OSError as error:
            if not self._broken:
                self._broken = True
                log.warning("cache.away", error=str(error))
            return None
        return done

    async def _surely(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._do(work, *args, **kwargs)
        except OSError as error:
            raise Unavailable(f"the folder of kept pages cannot be used: {error}") from None

    def _scan(self) -> None:
        found: list[tuple[float, str, _File]] = []
        for path in filter(Path.is_file, self._folder.glob("*/*")):
            name = _NAME.fullmatch(path.name)
            if name is None:
                path.unlink(missing_ok=True)
                continue
            stat = path.stat()
            found.append((stat.st_mtime, name[2], _File(path, name[1], path.parent.name, stat.st_size)))
        for _, page_id, file in sorted(found, key=lambda each: each[0]):
            self._files[page_id] = file
            self._bytes += file.size
        self._make_room(0)
        self._remove_empty_folders()

    def _remove_empty_folders(self) -> None:
        used = {file.path.parent for file in self._files.values()}
        for folder in self._folder.glob("*/"):
            if folder not in used:
                with suppress(OSError):
                    folder.rmdir()

    def _read(self, key: PageKey) -> CachedPage | None:
        file = self._files.get(key.id)
        if file is None:
            return None
        try:
            page = decode(file.path.read_bytes(), self._max_page)
        except FileNotFoundError:
            self._remove((key.id,))
            return None
        except UnreadablePage as error:
            log.warning("cache.unreadable", page=key.id, error=str(error))
            self._remove((key.id,))
            return None
        if page.expires_at <= self._clock():
            self._remove((key.id,))
            return None
        os.utime(file.path)
        self._files.move_to_end(key.id)
        return page

    def _write(self, key: PageKey, page: CachedPage) -> None:
        data = encode(page)
        self._remove((key.id,))
        if len(data) > self._limit:
            return
        self._make_room(len(data))
        folder = self._folder / _site_digest(key.site)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{key.url}-{key.id}"
        part = path.with_name(path.name + _PART)
        part.write_bytes(data)
        part.replace(path)
        self._files[key.id] = _File(path, key.url, folder.name, len(data))
        self._bytes += len(data)

    def _make_room(self, size: int) -> None:
        while self._bytes + size > self._limit and self._files:
            self._evicted += self._remove((next(iter(self._files)),))

    def _remove_where(self, matches: Callable[[_File], bool]) -> int:
        return self._remove([page_id for page_id, file in self._files.items() if matches(file)])

    def _remove(self, ids: Iterable[str]) -> int:
        count = 0
        for page_id in ids:
            file = self._files.pop(page_id, None)
            if file is not None:
                self._bytes -= file.size
                file.path.unlink(missing_ok=True)
                count += 1
        return count


def _site_digest(site: str) -> str:
    return blake2b(site.encode(), digest_size=8).hexdigest()
