"""Subscribers of channels in this process, each with a bounded buffer of its own."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from scrapeyard.telemetry.events import Log

MAX_WAITING = 4096
MAX_WAITING_BYTES = 64 * 1024 * 1024


class Listener(AsyncIterator[bytes]):
    """Messages of one channel, in order, for one reader.

    A reader that falls behind by MAX_WAITING messages or MAX_WAITING_BYTES loses the oldest; that is logged once for
    each time it falls behind. The iteration ends when the queue stops or the context of `listen` is left.
    """

    def __init__(self, channel: str, log: Log) -> None:
        self._channel = channel
        self._log = log
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._lost = 0
        self._closed = False
        self._wake: asyncio.Future[None] | None = None

    def give(self, message: bytes) -> None:
        """Add a message; never blocks."""
        self._waiting.append(message)
        self._bytes += len(message)
        while len(self._waiting) > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            self._lose()
        self._rouse()

    def close(self) -> None:
        """End the iteration once what waits has been read."""
        self._closed = True
        self._rouse()

    async def __anext__(self) -> bytes:
        while not self._waiting:
            self._lost = 0
            if self._closed:
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        message = self._waiting.popleft()
        self._bytes -= len(message)
        return message

    def _lose(self) -> None:
        self._bytes -= len(self._waiting.popleft())
        self._lost += 1
        if self._lost == 1:
            self._log.warning("queue.listener_slow", channel=self._channel, waiting=len(self._waiting))

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class Listeners:
    """All listeners of this process, by channel."""

    def __init__(self) -> None:
        self._by_channel: dict[str, set[Listener]] = {}

    def channels(self) -> list[str]:
        """Every channel that someone listens on."""
        return list(self._by_channel)

    def add(self, channel: str, listener: Listener) -> bool:
        """Whether this is the channel's first listener."""
        here = self._by_channel.setdefault(channel, set())
        here.add(listener)
        return len(here) == 1

    def remove(self, channel: str, listener: Listener) -> bool:
        """Whether this was the channel's last listener."""
        here = self._by_channel.get(channel, set())
        here.discard(listener)
        return not here and self._by_channel.pop(channel, None) is not None

    def give(self, channel: str, message: bytes) -> None:
        """Hand a message to everyone who listens on the channel."""
        for listener in self._by_channel.get(channel, ()):
            listener.give(message)

    def close(self) -> None:
        """End every iteration."""
        for here in self._by_channel.values():
            for listener in here:
                listener.close()
