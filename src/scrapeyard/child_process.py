"""Start a program, talk with it through pipes, and end it for certain.

Not by `asyncio.create_subprocess_exec`: uvloop forks, and runs Python in the child before it calls exec. When another
thread held a lock of the interpreter at that moment, the child hangs for good, and so does uvloop, which waits for it.
`subprocess` runs no Python between the two.
"""

import asyncio
import fcntl
import os
import signal
import subprocess
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from subprocess import DEVNULL, PIPE
from typing import IO, Any

__all__ = ["DEVNULL", "PIPE", "ChildProcess", "kill_group", "start_child"]

_READ_AHEAD = 1 << 16
_PIPE_BYTES = 1 << 20
"""Halves the cost of frames of half a megabyte."""


class ChildProcess:
    """A started program. Call `end` when it is not needed any more."""

    def __init__(self, process: "subprocess.Popen[bytes]", *, leads_group: bool) -> None:
        self._process = process
        self._leads_group = leads_group
        self._transports: list[asyncio.BaseTransport] = []
        self.pid = process.pid
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None

    async def connect(self) -> None:
        """Open the pipes that were asked for."""
        for pipe in (self._process.stdin, self._process.stdout):
            _widen(pipe)
        if self._process.stdin is not None:
            self.stdin = await self._writer(self._process.stdin)
        if self._process.stdout is not None:
            self.stdout = await self._reader(self._process.stdout)
        if self._process.stderr is not None:
            self.stderr = await self._reader(self._process.stderr)

    def kill(self) -> None:
        """Return at once; `end` must follow. May be called when the child has ended."""
        if self._leads_group:
            kill_group(self.pid)
        self._process.kill()

    async def wait(self) -> int:
        """Wait for its end; its exit status."""
        return await asyncio.to_thread(self._process.wait)

    async def end(self) -> None:
        """Kill it, with its group if it leads one, and reap it, even if the caller is cancelled meanwhile.

        Nothing can be read from it afterwards. May be called twice.
        """
        self.kill()
        for transport in self._transports:
            transport.close()
        await _through(self.wait())

    async def _reader(self, pipe: IO[bytes]) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(_READ_AHEAD)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        self._transports.append(transport)
        return reader

    async def _writer(self, pipe: IO[bytes]) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
        )
        self._transports.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, loop)


async def start_child(
    command: Sequence[str],
    *,
    stdin: int = DEVNULL,
    stdout: int | None = PIPE,
    stderr: int | None = None,
    start_new_session: bool = False,
    **options: Any,
) -> ChildProcess:
    """Start a program; `options` as for `subprocess.Popen`. Raises OSError when it cannot be started."""
    process = subprocess.Popen(  # noqa: ASYNC220 - it returns as soon as the program is executed
        command,
        bufsize=0,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=start_new_session,
        **options,
    )
    child = ChildProcess(process, leads_group=start_new_session)
    try:
        await _through(child.connect())
    except BaseException:
        await child.end()
        raise
    return child


async def _through(work: Coroutine[Any, Any, Any]) -> None:
    """Do it to its end, and only then let a cancel of the caller through: half opened pipes belong to nobody."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _widen(pipe: IO[bytes] | None) -> None:
    """Only Linux can, and a plain user has few such pipes; the size of a pipe matters for speed alone."""
    if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def kill_group(pid: int) -> None:
    """End a process that leads its own group, and all of that group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
