"""A helper process of our own, which talks with its parent in frames over stdin and stdout.

A frame is four bytes of length, one letter and a body. Both ends share a `Framing`; the letters and bodies are theirs.
The parent calls `start_process` and gets a `FramedProcess`. The child calls `prepare_child`, then `Framing.read`, which
blocks. Each side imports what it needs where it is used: the child needs no asyncio, the parent no ctypes.
"""

import os
import signal
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from scrapeyard.child_process import ChildProcess

HEAD: Final = 5
"""Bytes before a body: four of length, one letter."""
_ENVIRONMENT: Final = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")
"""What every child needs of ours. Secrets are none of its business."""
_PR_SET_PDEATHSIG: Final = 1


class PipeClosed(EOFError):
    """The parent closed its end of the pipe. End the process: nobody waits for an answer."""


class Framing:
    """Frames with a body of at most `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes

    def pack(self, letter: bytes, body: bytes = b"") -> bytes:
        """The frame, with its head. Raises ValueError for a body that is too long."""
        return self._checked(len(body)).to_bytes(4) + letter + body

    def parse_head(self, head: bytes) -> tuple[int, bytes]:
        """Length of the body, and the letter. Raises ValueError for a body that is too long."""
        return self._checked(int.from_bytes(head[:4])), head[4:]

    def read(self, source: BinaryIO) -> tuple[bytes, bytes]:
        """Wait for a frame; its letter and body. Raises PipeClosed when no whole frame comes, and as `parse_head`."""
        size, letter = self.parse_head(_read_exactly(source, HEAD))
        return letter, _read_exactly(source, size)

    def _checked(self, size: int) -> int:
        if size > self.max_bytes:
            raise ValueError(f"a frame of {size} bytes; {self.max_bytes} are allowed")
        return size


class FramedProcess:
    """The child, from its parent's side. End it when it is not needed any more."""

    def __init__(self, child: "ChildProcess", framing: Framing) -> None:
        assert child.stdin is not None  # noqa: S101 - made with pipes
        assert child.stdout is not None  # noqa: S101
        self._child = child
        self._stdin, self._stdout = child.stdin, child.stdout
        self._framing = framing
        self.pid = child.pid

    async def send(self, frame: bytes) -> None:
        """Write a packed frame and wait until the pipe has room. Raises ConnectionError when the child is gone."""
        self._stdin.write(frame)
        await self._stdin.drain()

    async def receive(self) -> tuple[bytes, bytes]:
        """Letter and body of the next frame. Raises EOFError when the child is gone, ValueError as `parse_head`."""
        size, letter = self._framing.parse_head(await self._stdout.readexactly(HEAD))
        return letter, await self._stdout.readexactly(size)

    def close_stdin(self) -> None:
        """Send no more: the child reads what was sent, then PipeClosed."""
        self._stdin.close()

    def kill(self) -> None:
        """Return at once; `end` must follow. May be called when the child has ended."""
        self._child.kill()

    async def end(self) -> None:
        """Kill and reap. May be called twice."""
        await self._child.end()


async def start_process(module: str, *arguments: str, framing: Framing, variables: Iterable[str] = ()) -> FramedProcess:
    """Run `python -m MODULE ARGUMENTS`. It sees only what it needs of our environment, and `variables`."""
    from scrapeyard.child_process import PIPE, start_child  # noqa: PLC0415 - a child does without

    child = await start_child(
        (sys.executable, "-m", module, *arguments),
        stdin=PIPE,
        env={name: os.environ[name] for name in (*_ENVIRONMENT, *variables) if name in os.environ},
    )
    return FramedProcess(child, framing)


def prepare_child() -> None:
    """Let the kernel kill this process with its parent, and let nobody but the parent end it."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - a parent does without

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group; the parent decides what ends
        signal.signal(number, signal.SIG_IGN)


def _read_exactly(source: BinaryIO, size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise PipeClosed("the parent is gone")
    return data
