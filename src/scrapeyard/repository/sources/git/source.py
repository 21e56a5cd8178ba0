"""Scrapers from a Git repository, by the `git` program.

Polling an unchanged repository costs one `git ls-remote`. Changes are fetched, shallow and incremental, into a bare
local copy. Versions are read from its objects and nothing is ever checked out, so no hook, filter or attribute of the
repository runs.

Limits: 512 MB of local copy; 100 newest tags of each scraper and of the whole repository; the last `history` commits of
the branch; folders up to four levels below the root. If the URL is a path, git refuses a repository that another user
of this machine owns. LFS files appear as their pointer files.
"""

import asyncio
import os
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import TypeVar

from scrapeyard.errors import ScraperInvalid, SettingsInvalid, SourceUnavailable
from scrapeyard.repository.archive.files import MAX_BYTES
from scrapeyard.repository.sources.git.access import read_access
from scrapeyard.repository.sources.git.command import Git, GitFailed
from scrapeyard.repository.sources.git.mirror import Mirror, MirrorReader
from scrapeyard.repository.sources.git.objects import OBJECT_ID, GitObjects, ObjectsBroken, ObjectTooLarge
from scrapeyard.repository.sources.git.refs import Refs, check_branch, read_tag
from scrapeyard.repository.sources.git.tree import check_sizes, list_tree
from scrapeyard.repository.sources.git.versions import Memory, Scope, TagReading
from scrapeyard.repository.sources.port import Offer, Release
from scrapeyard.settings import SourceSettings
from scrapeyard.telemetry.events import get_log

RULES = 1
"""Increase it when the same repository must be read differently."""
HEAD_LOOKS = 20
"""Polls after which the default branch is queried again; the query makes the remote list all of its refs."""
MAX_MIRROR = 512 << 20

T = TypeVar("T")
log = get_log("repository")


class GitSource:
    """A Git repository as the port `Source` says. Raises SettingsInvalid for a URL, branch or path that cannot be.

    `home` is where its local copy is kept; processes may share it. `timeout_seconds` is for one look or one fetch.
    """

    kind = "git"
    is_mutable = False
    needs_signatures = True

    def __init__(
        self, settings: SourceSettings, home: Path, timeout_seconds: float, *, max_bytes: int = MAX_MIRROR
    ) -> None:
        access = read_access(settings)
        home = home.absolute()
        self.name = settings.name or access.shown
        self._branch = check_branch(settings.branch) if settings.branch else ""
        self._path = _check_path(settings.path)
        self._history = settings.history
        self._timeout = timeout_seconds
        git = Git(access, home)
        self._mirror = Mirror(git, access, home, history=self._history, branch=self._branch, most=max_bytes)
        self._reader = MirrorReader(git, self._mirror)
        self._memory = Memory()
        self._head, self._looks = "", 0
        self._dropped = 0

    async def poll(self, mark: str) -> Offer | None:
        """As the port says. Costs one `ls-remote` when nothing changed."""
        async with _Patience(self._timeout):
            refs = await self._refs()
            now = refs.mark(RULES, self._path, self._history)
            if now == mark:
                return None
            await self._mirror.sync(refs)
            reading = await self._read_whole(refs)
        self._note(refs, reading)
        return Offer(mark=now, releases=reading.releases, faults=reading.faults, channels=self._memory.channels)

    async def fetch(self, release: Release, folder: Path) -> Path:
        """As the port says: the files of the tree that `release.mark` names, written one by one."""
        if OBJECT_ID.fullmatch(release.mark) is None:
            raise SourceUnavailable(f"{release.place}: not a release of a Git repository")
        async with _Patience(self._timeout):
            try:
                await self._write(release, folder)
            except (ObjectsBroken, GitFailed):
                await self._fetch_again(release, folder)
        return folder

    async def stop(self) -> None:
        """As the port says."""
        self._reader.close()

    async def _fetch_again(self, release: Release, folder: Path) -> None:
        """Fetch a release that the local copy lacks: it was lost, or the release has left the repository."""
        await self._mirror.sync(await self._refs(), anew=True)
        try:
            await self._write(release, folder)
        except ObjectsBroken as error:
            raise SourceUnavailable(f"{release.place} is not in the repository any more ({error.message})") from None

    async def _refs(self) -> Refs:
        branch = self._branch or await self._default()
        try:
            return await self._mirror.refs(branch)
        except SourceUnavailable:
            self._head = ""
            raise

    async def _default(self) -> str:
        self._looks += 1
        if not self._head or self._looks % HEAD_LOOKS == 0:
            self._head = await self._mirror.head()
        return self._head

    async def _read_whole(self, refs: Refs) -> TagReading:
        try:
            return await self._read(refs)
        except (ObjectsBroken, GitFailed) as error:
            log.warning("repository.git_anew", source=self.name, error=error.message)
            await self._mirror.sync(refs, anew=True)
            return await self._read(refs)

    async def _read(self, refs: Refs) -> TagReading:
        """Read what was fetched, which may be newer than what the remote listed."""
        async with self._mirror.reading():
            scope = await self._scope(refs)
            return await self._reader.run(lambda objects: _read(objects, self._memory, scope))

    async def _scope(self, refs: Refs) -> Scope:
        local = await self._mirror.local()
        tip = local.get(f"refs/heads/{refs.branch}")
        commits = await self._mirror.commits(tip) if tip else ()
        if not commits:
            raise ObjectsBroken("the local copy of the repository has lost its branch")
        ids = ((tag.name, local.get(f"refs/tags/{tag.name}", "")) for tag in refs.tags)
        tags = tuple(tag for name, object_id in ids if object_id and (tag := read_tag(name, object_id)))
        return Scope(branch=refs.branch, commits=commits, tags=tags, path=self._path)

    async def _write(self, release: Release, folder: Path) -> None:
        await self._reader.run(lambda objects: self._copy(objects, release, folder))

    def _copy(self, objects: GitObjects, release: Release, folder: Path) -> None:
        """Write the files of a release. Blocking. Refuses what is too large before reading any of it."""
        try:
            files = list_tree(objects, self._memory.trees, release.mark)
            check_sizes(objects, files)
            for file in files:
                _put(folder / file.name, objects.read(file.blob, "blob", MAX_BYTES))
        except (ScraperInvalid, ObjectTooLarge) as error:
            raise ScraperInvalid(f"{release.place}: {getattr(error, 'message', 'too large')}") from None
        except OSError as error:
            raise SourceUnavailable(f"{release.place}: cannot be written: {error.strerror}") from None

    def _note(self, refs: Refs, reading: TagReading) -> None:
        if refs.dropped > self._dropped:
            log.warning("repository.git_tags_dropped", source=self.name, count=refs.dropped)
        self._dropped = refs.dropped
        if reading.cut:
            log.warning("repository.too_many", folder=self.name, count=len(reading.releases))


class _Patience:
    """A timeout that ends with a readable error message."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            raise SourceUnavailable(
                f"no answer within {self._seconds:g} s; a large repository may need a higher repository.timeout_seconds"
            ) from None


def _read(objects: GitObjects, memory: Memory, scope: Scope) -> TagReading:
    reading = TagReading(objects, memory, scope)
    reading.read()
    return reading


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    how = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, how, 0o644), "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
        stream.write(content)


def _check_path(path: str) -> str:
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts or not path.isprintable() or "\\" in path or len(path) > 500:
        raise SettingsInvalid("repository.source.path: must be a folder inside the repository, e.g. scrapers/shop")
    return "/".join(parts)
