"""Reading objects of a local Git repository: two processes for any number of objects.

Everything is blocking and meant for a thread. Every object is checked against its id, so that damage to the disk or a
change by another process is detected and never read.
"""

import contextlib
import hashlib
import re
import subprocess
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from msgspec import Struct

from scrapeyard.child_process import kill_group
from scrapeyard.errors import SourceUnavailable
from scrapeyard.repository.sources.git.command import Git

OBJECT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
MAX_HEADER = 4096


class ObjectsBroken(SourceUnavailable):
    """The local repository lacks an object or holds a damaged one. Clone it again."""


class ObjectTooLarge(Exception):
    """The object is larger than the caller's limit."""


class Info(Struct, frozen=True, kw_only=True):
    """What an object is."""

    id: str
    kind: str
    """`blob`, `tree`, `commit` or `tag`."""
    size: int


class GitObjects:
    """The objects of one local repository. Use as a context; `kill` may be called from another thread."""

    def __init__(self, git: Git, repository: Path) -> None:
        self._git = git
        self._repository = repository
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._killed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes. May be called twice; nothing can be read afterwards."""
        self.kill()
        for process in self._processes.values():
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    _there(pipe).close()
        self._processes.clear()

    def kill(self) -> None:
        """Make a running read fail at once with ObjectsBroken."""
        self._killed = True
        for process in tuple(self._processes.values()):
            kill_group(process.pid)

    def info(self, name: str) -> Info | None:
        """About an object, by its id or an id with `^{commit}`, `^{tree}`; None when there is none of that kind."""
        header = self._ask("--batch-check", name)
        if len(header) != 3 or OBJECT_ID.fullmatch(header[0]) is None or not header[2].isdigit():
            return None
        return Info(id=header[0], kind=header[1], size=int(header[2]))

    def read(self, object_id: str, kind: str, most: int) -> bytes:
        """The content. Raises ObjectTooLarge before it is read, ObjectsBroken when it is not there or damaged."""
        found = self.info(object_id)
        if found is None or found.kind != kind or found.id != object_id:
            raise ObjectsBroken(f"the local copy of the repository lacks {kind} {object_id[:12]}")
        if found.size > most:
            raise ObjectTooLarge
        self._ask("--batch", object_id)
        stream = _there(self._process("--batch").stdout)
        content = stream.read(found.size)
        if stream.read(1) != b"\n" or _name(kind, content, object_id) != object_id:
            raise ObjectsBroken(f"the local copy of the repository is damaged at {kind} {object_id[:12]}")
        return content

    def _ask(self, how: str, name: str) -> list[str]:
        process = self._process(how)
        try:
            stdin = _there(process.stdin)
            stdin.write(f"{name}\n".encode())
            stdin.flush()
            header = _there(process.stdout).readline(MAX_HEADER)
        except OSError as error:
            raise ObjectsBroken(f"the local copy of the repository cannot be read: {error.strerror}") from None
        if not header.endswith(b"\n"):
            raise ObjectsBroken("the local copy of the repository cannot be read")
        return header.decode(errors="replace").split()

    def _process(self, how: str) -> "subprocess.Popen[bytes]":
        if self._killed:
            raise ObjectsBroken("reading the repository was broken off")
        if how not in self._processes:
            self._processes[how] = self._git.open(("--git-dir=.", "cat-file", how), self._repository)
        return self._processes[how]


def _name(kind: str, content: bytes, like: str) -> str:
    """The id that git gives an object; the length of `like` selects the hash."""
    digest = hashlib.sha1(usedforsecurity=False) if len(like) == 40 else hashlib.sha256()
    digest.update(b"%s %d\0" % (kind.encode(), len(content)))
    digest.update(content)
    return digest.hexdigest()


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # noqa: S101 - it was asked for
    return pipe
