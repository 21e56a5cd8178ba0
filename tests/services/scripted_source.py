"""A source that does what a test tells it: it offers, lies, breaks and comes back."""

import asyncio
import hashlib
from pathlib import Path

from scrapeyard.errors import SourceUnavailable
from scrapeyard.repository.sources.port import Fault, Offer, Release

SCRIPT = "async def run(ctx, url: str):\n    return url\n"


class ScriptedSource:
    """Holds releases in memory. `down`, `broken` and `held` say what goes wrong."""

    def __init__(self, name: str = "shop", *, is_mutable: bool = False) -> None:
        self.name = name
        self.kind = "http"
        self.is_mutable = is_mutable
        self.needs_signatures = True
        self.contents: dict[Release, dict[str, str]] = {}
        self.faults: tuple[Fault, ...] = ()
        self.channels: dict[str, dict[str, str]] = {}
        self.down: Exception | None = None
        """Raised by every look."""
        self.broken: dict[str, Exception] = {}
        """By version: raised by its fetch."""
        self.held: dict[str, asyncio.Event] = {}
        """By version: its fetch waits for it."""
        self.looked: list[str] = []
        self.fetched: list[str] = []
        self.reached = asyncio.Event()
        """Set when a held fetch is reached."""
        self.stopped = 0

    def add(
        self, version: str, scraper_id: str = "shop/product", *, script: str = SCRIPT, place: str = "", more: str = ""
    ) -> Release:
        """Offer a version; another content of it has another mark."""
        files = {"scraper.py": script, "scraper.toml": f'id = "{scraper_id}"\nversion = "{version}"\n{more}'}
        return self.add_files(scraper_id, version, files, place)

    def add_files(self, scraper_id: str, version: str, files: dict[str, str], place: str = "") -> Release:
        """Offer what need not be good."""
        place = place or f"{scraper_id}@{version}"
        self.contents = {
            release: known
            for release, known in self.contents.items()
            if (release.id, release.version, release.place) != (scraper_id, version, place)
        }
        mark = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()
        release = Release(id=scraper_id, version=version, mark=mark, place=place)
        self.contents[release] = files
        return release

    def remove(self, version: str, scraper_id: str = "shop/product") -> None:
        """Offer it no more."""
        self.contents = {
            release: files
            for release, files in self.contents.items()
            if (release.id, release.version) != (scraper_id, version)
        }

    @property
    def mark(self) -> str:
        """Of all that is offered now."""
        told = (sorted(release.mark for release in self.contents), sorted(self.channels.items()), self.faults)
        return hashlib.sha256(repr(told).encode()).hexdigest()

    async def poll(self, mark: str) -> Offer | None:
        """As the port says."""
        self.looked.append(mark)
        if self.down is not None:
            raise self.down
        if mark == self.mark:
            return None
        return Offer(mark=self.mark, releases=tuple(self.contents), faults=self.faults, channels=self.channels)

    async def fetch(self, release: Release, folder: Path) -> Path:
        """As the port says."""
        self.fetched.append(f"{release.id}@{release.version}")
        if release.version in self.held:
            self.reached.set()
            await self.held[release.version].wait()
        if release.version in self.broken:
            raise self.broken[release.version]
        if release not in self.contents:
            raise SourceUnavailable(f"{release.place} is not there")
        for name, text in self.contents[release].items():
            (folder / name).write_text(text)
        return folder

    async def stop(self) -> None:
        """As the port says."""
        self.stopped += 1
