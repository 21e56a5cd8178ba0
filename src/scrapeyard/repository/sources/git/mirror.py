"""The local copy of a Git repository: bare, shallow, updated incrementally, and discarded when in doubt.

It holds nothing that the remote does not have, so every problem has one remedy: clone it again beside the old copy,
then replace that. Processes that share a folder take turns through a lock; a git process that outlives its killed
parent holds the lock until it ends.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from scrapeyard.errors import SourceUnavailable
from scrapeyard.repository.sources.git.access import Access
from scrapeyard.repository.sources.git.command import Bounds, Git, GitFailed
from scrapeyard.repository.sources.git.objects import GitObjects, ObjectsBroken
from scrapeyard.repository.sources.git.refs import Refs, read_head, read_refs
from scrapeyard.telemetry.events import get_log

log = get_log("repository")

MAX_REFS_OUTPUT = 16 << 20
MAX_PACKS = 50
"""Every fetch adds one or two packs; beyond this number they are repacked into one."""
LOCK_PAUSE = 0.05
FORGOTTEN_SECONDS = 30 * 86400.0
_SYNCED = "scrapeyard-synced"


class Mirror:
    """One remote repository and its local copy below `home`. Every method raises SourceUnavailable."""

    def __init__(self, git: Git, access: Access, home: Path, *, history: int, branch: str, most: int) -> None:
        """`branch` may be empty; sources with other branches of the same repository have copies of their own."""
        name = hashlib.sha256(f"{access.url}\n{history}\n{branch}".encode()).hexdigest()[:24]
        self._git = git
        self._url = access.url
        self._shown = access.shown
        self._home = home
        self._history = history
        self._most = most
        self.folder = home / f"{name}.git"

    async def head(self) -> str:
        """The branch that the remote names."""
        return read_head(await self._ask("--symref", "--", self._url, "HEAD"))

    async def refs(self, branch: str) -> Refs:
        """What the remote has now; the only cost of an unchanged repository."""
        return read_refs(await self._ask("--heads", "--tags", "--refs", "--", self._url), branch)

    async def sync(self, refs: Refs, *, anew: bool = False) -> None:
        """Update the copy, or clone it again. Afterwards it holds everything that `refs` names."""
        async with self._locked(fcntl.LOCK_EX) as lock:
            if not anew and _read(self.folder / _SYNCED) == refs.mark():
                return
            if anew or not await self._updated(refs, lock):
                with _disk_errors():
                    await self._replace(refs, lock)

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[Path]:
        """The copy, locked against replacement meanwhile; it may be missing or damaged."""
        async with self._locked(fcntl.LOCK_SH):
            yield self.folder

    async def local(self) -> dict[str, str]:
        """Full ref name → object id of everything fetched. Call it inside `reading`."""
        return await self._local(self.folder)

    async def _local(self, folder: Path) -> dict[str, str]:
        text = await self._run(folder, "for-each-ref", "--format=%(objectname) %(refname)")
        lines = (line.partition(" ") for line in text.decode(errors="replace").splitlines())
        return {name: object_id for object_id, _, name in lines}

    async def commits(self, tip: str) -> tuple[tuple[str, str], ...]:
        """Commit and tree along the branch's first parents, newest first. Call it inside `reading`."""
        how = ("--first-parent", f"--max-count={self._history}", "--format=%H %T", "--end-of-options", tip)
        text = await self._run(self.folder, "log", *how, output=200 * self._history)
        lines = (line.partition(" ") for line in text.decode().splitlines())
        return tuple((commit, tree) for commit, _, tree in lines)

    async def _ask(self, *arguments: str) -> bytes:
        with _disk_errors():
            self._home.mkdir(parents=True, exist_ok=True)
        return await self._git.run(("ls-remote", *arguments), self._home, bounds=Bounds(output=MAX_REFS_OUTPUT))

    async def _updated(self, refs: Refs, lock: int) -> bool:
        """Update the copy. False if there is none or a step failed, which may leave it damaged."""
        if not self.folder.is_dir():
            return False
        try:
            await self._update(self.folder, refs, lock)
        except (GitFailed, OSError) as error:
            log.warning("repository.git_anew", source=self._shown, error=str(error))
            return False
        return True

    async def _replace(self, refs: Refs, lock: int) -> None:
        fresh = self.folder.with_suffix(f".new-{secrets.token_hex(4)}")
        try:
            self._remove_leftovers()
            fresh.mkdir(parents=True)
            digest = "sha1" if len(refs.tip) == 40 else "sha256"
            how = ("--quiet", "--bare", "--template=", "--initial-branch=none", f"--object-format={digest}", ".")
            await self._git.run(("init", *how), fresh)
            await self._update(fresh, refs, lock)
            self._put(fresh)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _put(self, fresh: Path) -> None:
        old = self.folder.with_suffix(f".old-{secrets.token_hex(4)}")
        with contextlib.suppress(FileNotFoundError):
            self.folder.rename(old)
        fresh.rename(self.folder)
        shutil.rmtree(old, ignore_errors=True)

    def _remove_leftovers(self) -> None:
        """Remove what a process killed during a replacement left, and copies for settings no longer used."""
        for pattern in ("new", "old"):
            for path in self._home.glob(f"{self.folder.stem}.{pattern}-*"):
                shutil.rmtree(path, ignore_errors=True)
        for path in self._home.glob("*.lock"):
            if time.time() - path.stat().st_mtime > FORGOTTEN_SECONDS:
                _remove_unused(path)

    async def _update(self, folder: Path, refs: Refs, lock: int) -> None:
        """Fetch tags first, then the branch with its history: in the other order, a tag would truncate the history."""
        _remove_stale(folder)
        (folder / _SYNCED).unlink(missing_ok=True)
        have = await self._local(folder)
        wanted, branch = refs.wanted(), f"refs/heads/{refs.branch}"
        await self._forget(folder, sorted(have.keys() - wanted.keys()))
        new = [name for name, object_id in wanted.items() if name != branch and have.get(name) != object_id]
        if new:
            await self._fetch(folder, new, 1, lock)
        await self._fetch(folder, [branch], self._history, lock)
        await self._pack(folder)
        (folder / _SYNCED).write_text(refs.mark())

    async def _fetch(self, folder: Path, names: Sequence[str], depth: int, lock: int) -> None:
        how = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-gc")
        arguments = ("fetch", *how, "--update-shallow", f"--depth={depth}", "--stdin", "--", self._url)
        text = "".join(f"+{name}:{name}\n" for name in names).encode()
        bounds = Bounds(disk=self._most, kept=(lock,))
        await self._git.run(("--git-dir=.", *arguments), folder, text=text, bounds=bounds)

    async def _forget(self, folder: Path, names: Sequence[str]) -> None:
        if names:
            text = "".join(f"delete {name}\n" for name in names).encode()
            await self._git.run(("--git-dir=.", "update-ref", "--stdin"), folder, text=text)

    async def _pack(self, folder: Path) -> None:
        if _packs(folder) > MAX_PACKS:
            await self._run(folder, "repack", "-a", "-d", "-q")

    async def _run(self, folder: Path, *arguments: str, output: int = MAX_REFS_OUTPUT) -> bytes:
        return await self._git.run(("--git-dir=.", *arguments), folder, bounds=Bounds(output=output))

    @contextlib.asynccontextmanager
    async def _locked(self, how: int) -> AsyncIterator[int]:
        with _disk_errors():
            self._home.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.utime(lock)
            while not _try_lock(lock, how):  # noqa: ASYNC110 - other processes cannot wake us
                await asyncio.sleep(LOCK_PAUSE)
            yield lock
        finally:
            os.close(lock)


def _packs(folder: Path) -> int:
    return sum(1 for _ in folder.glob("objects/pack/*.pack"))


def _try_lock(lock: int, how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_unused(lock_file: Path) -> None:
    """Remove an unused copy but not its lock file: another process may be about to take it."""
    lock = os.open(lock_file, os.O_RDWR | os.O_CLOEXEC)
    try:
        if _try_lock(lock, fcntl.LOCK_EX):
            shutil.rmtree(lock_file.with_suffix(".git"), ignore_errors=True)
    finally:
        os.close(lock)


def _remove_stale(folder: Path) -> None:
    """Remove what a killed git left. Safe because this process holds the lock."""
    for path in (*folder.glob("*.lock"), *folder.glob("refs/**/*.lock"), *folder.glob("objects/pack/tmp_*")):
        path.unlink(missing_ok=True)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")[:200]
    except OSError:
        return ""


@contextlib.contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SourceUnavailable(f"the local copy cannot be written: {error.strerror}") from None


KEEP_SECONDS = 1.0

T = TypeVar("T")


class MirrorReader:
    """Reads one mirror. Callers wait for each other, because git answers requests in order."""

    def __init__(self, git: Git, mirror: Mirror) -> None:
        self._git = git
        self._mirror = mirror
        self._one_at_a_time = asyncio.Lock()
        self._objects: GitObjects | None = None
        self._copy = (0, 0)
        self._closing: asyncio.TimerHandle | None = None

    async def run(self, work: Callable[[GitObjects], T]) -> T:
        """What `work` returns. Raises SourceUnavailable, and whatever `work` does."""
        async with self._one_at_a_time, self._mirror.reading() as folder:
            if self._is_open(folder):
                with contextlib.suppress(ObjectsBroken):  # the git processes may be broken: retry once with new ones
                    return await self._run(work)
            self._open(folder)
            return await self._run(work)

    def close(self) -> None:
        """End the processes. May be called twice."""
        if self._closing is not None:
            self._closing.cancel()
        objects, self._objects, self._closing = self._objects, None, None
        if objects is not None:
            objects.close()

    async def _run(self, work: Callable[[GitObjects], T]) -> T:
        objects = self._objects
        assert objects is not None  # noqa: S101 - the caller opened it
        task = asyncio.create_task(asyncio.to_thread(work, objects))
        try:
            result = await asyncio.shield(task)
        except asyncio.CancelledError:
            objects.kill()
            await asyncio.gather(task, return_exceptions=True)
            self.close()
            raise
        except BaseException:
            self.close()
            raise
        self._closing = asyncio.get_running_loop().call_later(KEEP_SECONDS, self.close)
        return result

    def _is_open(self, folder: Path) -> bool:
        """Whether the processes read this copy and not one that it has replaced."""
        if self._closing is not None:
            self._closing.cancel()
        return self._objects is not None and self._copy == _identity(folder)

    def _open(self, folder: Path) -> None:
        self.close()
        self._copy = _identity(folder)
        self._objects = GitObjects(self._git, folder)


def _identity(folder: Path) -> tuple[int, int]:
    try:
        found = folder.stat()
    except OSError as error:
        raise ObjectsBroken(f"the local copy of the repository cannot be read: {error.strerror}") from None
    return found.st_dev, found.st_ino
