"""The process that writes a file, from its parent's side: items go in, the file comes out, both bounded by pipes."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from scrapeyard.errors import ExportFailed
from scrapeyard.model.job import ExportWish
from scrapeyard.results.exports import protocol
from scrapeyard.results.exports.protocol import ExportProgress, Written

_ENVIRONMENT: Final = frozenset({"PATH", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "TMPDIR"})
"""What it needs of ours. Secrets are none of its business."""

Tell = Callable[[ExportProgress], None]


class FileProcess:
    """One file in the making. `written` is there once all pieces were read."""

    def __init__(self, process: asyncio.subprocess.Process, tell: Tell) -> None:
        assert process.stdin is not None  # noqa: S101 - made with pipes
        assert process.stdout is not None  # noqa: S101
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._report = tell
        self.written: Written | None = None

    async def pieces(self, wish: ExportWish, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The file made of these frames. What `frames` raises leaves as it is; ExportFailed says why there is none."""
        feeding = asyncio.create_task(self._feed(wish, frames))
        try:
            async for piece in self._read():
                yield piece
            await feeding
        except ExportFailed:
            if feeding.done() and not feeding.cancelled() and (error := feeding.exception()) is not None:
                raise error from None
            raise
        finally:
            feeding.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await feeding

    async def end(self) -> None:
        """Kill and reap. May be called when it has ended."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._stdin.close()
        while await self._stdout.read(1 << 20):  # it is not reaped before its pipes are empty
            pass
        await self._process.wait()

    async def _feed(self, wish: ExportWish, frames: AsyncIterator[bytes]) -> None:
        try:
            self._stdin.write(protocol.frame(protocol.BEGIN, protocol.encode(wish)))
            async for frame in frames:
                self._stdin.write(frame)
                await self._stdin.drain()
            self._stdin.write(protocol.frame(protocol.END))
            await self._stdin.drain()
        except ConnectionError:
            return  # what it said last tells why
        except BaseException:
            self._stdin.close()  # without the last frame nothing is finished
            raise

    async def _read(self) -> AsyncIterator[bytes]:
        while self.written is None:
            try:
                size, letter = protocol.read_head(await self._stdout.readexactly(protocol.HEAD))
                body = await self._stdout.readexactly(size)
            except asyncio.IncompleteReadError:
                raise ExportFailed(
                    "the process that wrote the file ended early; it may have run out of memory"
                ) from None
            if letter == protocol.DATA:
                yield body
            elif letter == protocol.TOLD:
                self._report(protocol.decode_told(body))
            elif letter == protocol.END:
                self.written = protocol.decode_written(body)
            else:
                raise ExportFailed(f"the file could not be written: {body.decode(errors='replace')[:500]}")


@asynccontextmanager
async def file_process(tell: Tell) -> AsyncIterator[FileProcess]:
    """A process for one file; it is gone when the block is left."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "scrapeyard.results.exports.child"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name in _ENVIRONMENT},
    )
    file = FileProcess(process, tell)
    try:
        yield file
    finally:
        await asyncio.shield(file.end())
