"""Blocking work on a local copy, in a thread that ends when its caller is cancelled.

Releases are fetched one after another, a thousand at the first start, so git's processes stay for a moment after use.
"""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from scrapeyard.repository.sources.git.command import Git
from scrapeyard.repository.sources.git.mirror import Mirror
from scrapeyard.repository.sources.git.objects import Objects, ObjectsBroken

KEEP_SECONDS = 1.0

T = TypeVar("T")


class Reader:
    """Reads one mirror. Who calls while another reads waits: git answers questions in the order of asking."""

    def __init__(self, git: Git, mirror: Mirror) -> None:
        self._git = git
        self._mirror = mirror
        self._one_at_a_time = asyncio.Lock()
        self._objects: Objects | None = None
        self._copy = (0, 0)
        self._closing: asyncio.TimerHandle | None = None

    async def run(self, work: Callable[[Objects], T]) -> T:
        """What `work` returns. Raises SourceUnavailable, and whatever `work` does."""
        async with self._one_at_a_time, self._mirror.reading() as folder:
            if self._is_open(folder):
                with contextlib.suppress(ObjectsBroken):  # the processes may be at fault: once more with new ones
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

    async def _run(self, work: Callable[[Objects], T]) -> T:
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
        """Whether the processes read this copy, not one that was replaced by it."""
        if self._closing is not None:
            self._closing.cancel()
        return self._objects is not None and self._copy == _identity(folder)

    def _open(self, folder: Path) -> None:
        self.close()
        self._copy = _identity(folder)
        self._objects = Objects(self._git, folder)


def _identity(folder: Path) -> tuple[int, int]:
    try:
        found = folder.stat()
    except OSError as error:
        raise ObjectsBroken(f"the local copy of the repository cannot be read: {error.strerror}") from None
    return found.st_dev, found.st_ino
