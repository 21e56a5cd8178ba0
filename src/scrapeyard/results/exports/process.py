"""The process that writes a file, from its parent's side: items go in, the file comes out, both bounded by pipes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from scrapeyard.errors import ExportFailed
from scrapeyard.framed_process import FramedProcess, start_process
from scrapeyard.results.exports import protocol
from scrapeyard.results.exports.protocol import ExportProgress, Task, Written

Tell = Callable[[ExportProgress], None]


class FileProcess:
    """One file in the making. `written` is there once all pieces were read."""

    def __init__(self, process: FramedProcess, tell: Tell) -> None:
        self._process = process
        self._report = tell
        self.written: Written | None = None

    async def pieces(self, task: Task, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The file made of these frames. What `frames` raises leaves as it is; ExportFailed says why there is none."""
        feeding = asyncio.create_task(self._feed(task, frames))
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

    async def _feed(self, task: Task, frames: AsyncIterator[bytes]) -> None:
        try:
            await self._process.send(protocol.frame(protocol.BEGIN, protocol.encode(task)))
            async for frame in frames:
                await self._process.send(frame)
            await self._process.send(protocol.frame(protocol.END))
        except ConnectionError:
            return  # what it said last tells why
        except BaseException:
            self._process.close_stdin()  # without the last frame nothing is finished
            raise

    async def _read(self) -> AsyncIterator[bytes]:
        while self.written is None:
            try:
                letter, body = await self._process.receive()
            except EOFError:
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
    process = await start_process("scrapeyard.results.exports.child", framing=protocol.FRAMING, variables=("TMPDIR",))
    try:
        yield FileProcess(process, tell)
    finally:
        await asyncio.shield(process.end())
