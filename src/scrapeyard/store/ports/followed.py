"""A small table of the store, followed by a process that keeps a copy of it in memory."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from scrapeyard.background import Background
from scrapeyard.errors import ScrapeyardError

T = TypeVar("T")


class FollowedTable(Generic[T]):
    """Reads the table at the start, every `every_seconds` and on `refresh_soon`, and passes it to `adopt`.

    While the store is away, what was adopted last stays in force. `on_away` is called once each time the store goes
    away; `after_read` after each read, whether it succeeded or not.
    """

    def __init__(
        self,
        name: str,
        every_seconds: float,
        *,
        read: Callable[[], Awaitable[T]],
        adopt: Callable[[T], None],
        on_away: Callable[[ScrapeyardError], None],
        after_read: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.lock = asyncio.Lock()
        """Held during a read. Hold it to write and adopt, so that an older read does not undo the write."""
        self._name = name
        self._every_seconds = every_seconds
        self._read = read
        self._adopt = adopt
        self._on_away = on_away
        self._after_read = after_read
        self._asked = asyncio.Event()
        self._background = Background()
        self._away = False

    async def start(self) -> None:
        """Read once, then follow in the background. May be called twice."""
        if not self._background.started:
            await self.refresh()
            self._background.start(self._poll_forever, name=self._name)

    async def stop(self) -> None:
        """Stop following. May be called twice."""
        await self._background.stop()

    def refresh_soon(self) -> None:
        """Read in the background now, instead of when the time is up."""
        self._asked.set()

    async def refresh(self) -> None:
        """Read and adopt now. Returns also when the store is away."""
        try:
            async with self.lock:
                self._adopt(await self._read())
        except ScrapeyardError as error:
            if not self._away:
                self._on_away(error)
            self._away = True
        else:
            self._away = False
        if self._after_read is not None:
            await self._after_read()

    async def _poll_forever(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_seconds):
                    await self._asked.wait()
            self._asked.clear()
            await self.refresh()
