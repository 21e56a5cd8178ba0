"""Subscribers of channels in this process, each with a bounded buffer of its own."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

import msgspec

from scrapeyard.errors import ScrapeyardError
from scrapeyard.queues.port import Queue
from scrapeyard.telemetry.events import Log, get_log

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


log = get_log("gateway")
PAUSE_SECONDS = 0.5


async def subscribe_forever(queue: Queue, channel: str, hear: Callable[[bytes], None], heard: asyncio.Event) -> None:
    """Give every message of `channel` to `hear` until cancelled; one that it cannot decode is dropped. `heard` is set
    once the channel is listened to."""
    while True:
        try:
            async with queue.listen(channel) as messages:
                heard.set()
                async for message in messages:
                    _give(channel, message, hear)
        except ScrapeyardError as error:
            log.warning("gateway.not_heard", channel=channel, error=error.message)
        await asyncio.sleep(PAUSE_SECONDS)


def _give(channel: str, message: bytes, hear: Callable[[bytes], None]) -> None:
    try:
        hear(message)
    except msgspec.MsgspecError as error:
        log.warning("queue.dropped_message", channel=channel, error=str(error))
