"""Repositories as tests set them up: the real thing behind each kind of source, with its author's and saboteur's hands.

A stand publishes what an author would, spoils a version as bad luck would, and goes away and comes back as servers do.
"""

import json
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import obstore
from pydantic import SecretStr

from scrapeyard.model import Limits
from scrapeyard.repository.publish.publish import Published, PublishTarget, pack_scraper, publish
from scrapeyard.repository.publish.targets import open_target
from scrapeyard.repository.sources.git.source import GitSource
from scrapeyard.repository.sources.indexed.source import bucket_source, http_source
from scrapeyard.repository.sources.port import Source
from scrapeyard.settings import SourceSettings
from tests.leaks import PATIENCE
from tests.services.git_repository import GitRepository, environment
from tests.services.seaweed import SeaweedServer
from tests.services.static_site import StaticSite

TIMEOUT_SECONDS = PATIENCE
"""Nothing here is meant to take so long: a repository that is away says so at once."""
SCRIPT = "async def run(ctx, url: str):\n    return url\n"


class Stand(Protocol):
    """One repository and a source over it."""

    source: Source
    keeps_copy: bool
    """Whether what was looked at can be fetched while the repository is away."""

    async def publish(self, folder: Path) -> None:
        """Offer the scraper in this folder, beside those offered before."""

    async def withdraw(self, scraper_id: str, version: str) -> None:
        """Offer it no more."""

    async def spoil(self, scraper_id: str, version: str) -> None:
        """Change bytes of a version that was offered, and nothing of what is said about it."""

    def go_away(self) -> None:
        """Nothing answers from now on."""

    def come_back(self) -> None:
        """As it was."""


def write_scraper(
    folder: Path, scraper_id: str = "shop/product", version: str = "1.0.0", script: str = SCRIPT, **more: bytes
) -> Path:
    """A scraper with a few files beside its script; keys of `more` are file names with `__` for a slash."""
    folder.mkdir(parents=True)
    (folder / "scraper.toml").write_text(f'id = "{scraper_id}"\nversion = "{version}"\n')
    (folder / "scraper.py").write_text(script)
    for name, content in more.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def publish_folder(folder: Path, target: PublishTarget, work: Path, channel: str = "") -> Published:
    """As the command line does."""
    work.mkdir()
    parcel = pack_scraper(folder, work, Limits())
    try:
        return await publish(parcel, target, channel=channel)
    finally:
        shutil.rmtree(work)


class FolderIndex:
    """An index and archives in a folder, as every indexed stand but S3 has it."""

    keeps_copy = False

    def __init__(self, folder: Path, work: Path) -> None:
        self.folder = folder
        self._work = work
        self._target = open_target(str(folder), SourceSettings(), TIMEOUT_SECONDS)

    async def publish(self, folder: Path, channel: str = "") -> Published:
        return await publish_folder(folder, self._target, self._work / "parcel", channel)

    async def withdraw(self, scraper_id: str, version: str) -> None:
        self.edit(lambda tree: tree["scrapers"][scraper_id]["versions"].pop(version))

    async def spoil(self, scraper_id: str, version: str) -> None:
        path = self.folder / self.read()["scrapers"][scraper_id]["versions"][version]["archive"]
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)

    def read(self) -> dict:
        return json.loads((self.folder / "index.json").read_bytes())

    def edit(self, change: Callable[[dict], object]) -> None:
        tree = self.read()
        change(tree)
        (self.folder / "index.json").write_text(json.dumps(tree))


class GitStand:
    """A bare repository in which each version is a tag, on a commit of its own."""

    keeps_copy = True

    def __init__(self, work: Path) -> None:
        self._work = work
        self.repository = GitRepository(work / "remote")
        self.repository.write("README.md", "Scrapers are in the tags.")
        self._root = self.repository.commit()
        settings = SourceSettings(type="git", url=SecretStr(self.repository.url))
        self.source: Source = GitSource(settings, work / "home", TIMEOUT_SECONDS)

    async def publish(self, folder: Path) -> None:
        manifest = (folder / "scraper.toml").read_text()
        scraper_id, version = (line.split('"')[1] for line in manifest.splitlines()[:2])
        self.repository.git("checkout", "--quiet", "--detach", self._root)
        shutil.copytree(folder, self.repository.folder / scraper_id)
        self.repository.git("add", "--all", "--force")
        self.repository.git("commit", "--quiet", "--message=version")
        self.repository.git("tag", f"{scraper_id}@{version}")
        self.repository.git("checkout", "--quiet", "--detach", self._root)
        self.repository.push()

    async def withdraw(self, scraper_id: str, version: str) -> None:
        self.repository.git("tag", "--delete", f"{scraper_id}@{version}")
        self.repository.push()

    async def spoil(self, scraper_id: str, version: str) -> None:
        """In the repository and in the copy of it, which otherwise serves what it has."""
        await self.source.stop()
        blob = self.repository.git("rev-parse", f"{scraper_id}@{version}:{scraper_id}/scraper.py")
        for store in (self.repository.bare, *(self._work / "home").glob("*.git")):
            for pack in store.glob("objects/pack/*.pack"):
                pack.rename(store / "pack")
                with (store / "pack").open("rb") as content:
                    unpack = ["git", "unpack-objects", "-q"]
                    subprocess.run(unpack, cwd=store, env=environment(), stdin=content, check=True)
            loose = store / "objects" / blob[:2] / blob[2:]
            loose.chmod(0o644)
            loose.write_bytes(zlib.compress(b"blob 6\0spoilt"))

    def go_away(self) -> None:
        self.repository.bare.rename(self.repository.bare.with_suffix(".away"))

    def come_back(self) -> None:
        self.repository.bare.with_suffix(".away").rename(self.repository.bare)


class HttpStand(FolderIndex):
    """A web server."""

    def __init__(self, site: StaticSite, work: Path) -> None:
        super().__init__(site.folder, work)
        self.site = site
        self.source: Source = http_source(SourceSettings(type="http", url=SecretStr(site.url)), TIMEOUT_SECONDS)

    def go_away(self) -> None:
        self.site.stop()

    def come_back(self) -> None:
        self.site.start()


class FileStand(FolderIndex):
    """The published folder itself."""

    def __init__(self, folder: Path, work: Path) -> None:
        super().__init__(folder, work)
        self.source: Source = http_source(SourceSettings(type="http", url=SecretStr(folder.as_uri())), TIMEOUT_SECONDS)

    def go_away(self) -> None:
        self.folder.rename(self.folder.with_name("away"))

    def come_back(self) -> None:
        self.folder.with_name("away").rename(self.folder)


class S3Stand:
    """A bucket with an index, under a prefix."""

    keeps_copy = False

    def __init__(self, server: SeaweedServer, bucket: str, work: Path) -> None:
        self.server = server
        self.settings = server.settings(bucket, "team/scrapers/")
        self.store = server.store(bucket, "team/scrapers")
        self._work = work
        self._target = open_target(f"s3://{bucket}/team/scrapers", self.settings, TIMEOUT_SECONDS)
        self.source: Source = bucket_source(self.settings, TIMEOUT_SECONDS)

    async def publish(self, folder: Path, channel: str = "") -> Published:
        return await publish_folder(folder, self._target, self._work / "parcel", channel)

    async def withdraw(self, scraper_id: str, version: str) -> None:
        tree = self.read()
        del tree["scrapers"][scraper_id]["versions"][version]
        obstore.put(self.store, "index.json", json.dumps(tree).encode())

    async def spoil(self, scraper_id: str, version: str) -> None:
        path = self.read()["scrapers"][scraper_id]["versions"][version]["archive"]
        content = bytearray(bytes(obstore.get(self.store, path).bytes()))
        content[len(content) // 2] ^= 0xFF
        obstore.put(self.store, path, bytes(content))

    def read(self) -> dict:
        return json.loads(bytes(obstore.get(self.store, "index.json").bytes()))

    def go_away(self) -> None:
        self.server.stop()

    def come_back(self) -> None:
        self.server.start()


class PlainStand:
    """A bucket with a folder for each version, uploaded by hand."""

    keeps_copy = False

    def __init__(self, server: SeaweedServer, bucket: str) -> None:
        self.server = server
        self.settings = server.settings(bucket, "plain")
        self.store = server.store(bucket, "plain")
        self.source: Source = bucket_source(self.settings, TIMEOUT_SECONDS)

    async def publish(self, folder: Path) -> None:
        files = contents(folder)
        place = self._place(files["scraper.toml"].decode())
        for name in sorted(files, key=lambda name: name == "scraper.toml"):
            obstore.put(self.store, f"{place}/{name}", files[name])

    async def withdraw(self, scraper_id: str, version: str) -> None:
        found = obstore.list(self.store, prefix=f"{scraper_id}/{version}").collect()
        obstore.delete(self.store, [meta["path"] for meta in found])

    async def spoil(self, scraper_id: str, version: str) -> None:
        obstore.put(self.store, f"{scraper_id}/{version}/scraper.py", b"spoilt")

    def go_away(self) -> None:
        self.server.stop()

    def come_back(self) -> None:
        self.server.start()

    def _place(self, manifest: str) -> str:
        scraper_id, version = (line.split('"')[1] for line in manifest.splitlines()[:2])
        return f"{scraper_id}/{version}"
