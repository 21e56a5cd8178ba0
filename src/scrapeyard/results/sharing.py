"""One reading of a job's items for several files at once: reading and packing them costs as much as writing a file."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final, Generic, TypeVar

Read = TypeVar("Read")

_AHEAD: Final = 1
"""That wait for one reader. All go at the pace of the slowest."""


class Reader(AsyncIterator[Read], Generic[Read]):
    """What one file gets. Whoever does not read to the end must close it, since the others wait for it."""

    def __init__(self) -> None:
        self.open = True
        self._waiting: asyncio.Queue[Read | Exception | None] = asyncio.Queue(_AHEAD)

    def close(self) -> None:
        """Take no more. May be called twice."""
        self.open = False
        while not self._waiting.empty():
            self._waiting.get_nowait()

    async def give(self, given: Read | Exception | None) -> None:
        """The next, why there are no more, or None at the end. Waits until there is room."""
        if self.open:
            await self._waiting.put(given)

    async def __anext__(self) -> Read:
        found = await self._waiting.get()
        if found is None:
            raise StopAsyncIteration
        if isinstance(found, Exception):
            raise found
        return found


@asynccontextmanager
async def shared(source: AsyncGenerator[Read, None], readers: int) -> AsyncIterator[list[Reader[Read]]]:
    """So many readers of one source, for the length of the block."""
    made: list[Reader[Read]] = [Reader() for _ in range(readers)]
    handing = asyncio.create_task(_hand_out(source, made))
    try:
        yield made
    finally:
        handing.cancel()
        await asyncio.gather(handing, return_exceptions=True)


async def _hand_out(source: AsyncGenerator[Read, None], readers: list[Reader[Read]]) -> None:
    end: Exception | None = None
    try:
        async with aclosing(source) as given:
            async for one in given:
                for reader in readers:
                    await reader.give(one)
    except Exception as error:  # noqa: BLE001 - each reader raises it
        end = error
    for reader in readers:
        await reader.give(end)
