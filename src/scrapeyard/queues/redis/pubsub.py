"""Pub/sub: one connection hears for every listener of the process."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from scrapeyard.queues.listeners import Listener, Listeners
from scrapeyard.queues.port import MAX_MESSAGE_BYTES
from scrapeyard.redis.connection import Link
from scrapeyard.redis.keys import Keys
from scrapeyard.redis.outage import Outage
from scrapeyard.telemetry.events import Log


class RedisSubscriber(Link):
    """Subscribes to a channel for its first listener, again after every reconnect, and leaves it with the last.

    Messages sent while the connection is away are lost. A process that reads its socket too slowly is cut off by the
    server (`client-output-buffer-limit pubsub`), which is the same as an outage.
    """

    def __init__(self, dial: Callable[[], AbstractConnection], outage: Outage, keys: Keys, log: Log) -> None:
        super().__init__(dial, outage)
        self._keys = keys
        self._log = log
        self._listeners = Listeners()
        self._asked: Counter[str] = Counter()
        self._confirmed: dict[str, asyncio.Event] = {}
        self._stopped = False

    def start(self) -> None:
        """Begin to connect; whoever listens already is subscribed with it."""
        self._stopped = False
        super().start()

    async def stop(self) -> None:
        """End every iteration, and let go those who wait for a subscription."""
        self._stopped = True
        self._listeners.close()
        for confirmed in self._confirmed.values():
            confirmed.set()
        await super().stop()

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Enters when the server has confirmed the subscription, however long the server is away."""
        listener = Listener(channel, self._log)
        try:
            if self._listeners.add(channel, listener):
                self._confirmed[channel] = asyncio.Event()
                await self._subscribe(channel)
            if self._stopped:
                listener.close()
            else:
                await self._confirmed[channel].wait()
            yield listener
        finally:
            listener.close()
            if self._listeners.remove(channel, listener):
                del self._confirmed[channel]
                await self._say("UNSUBSCRIBE", channel)

    async def _subscribe(self, *channels: str) -> None:
        self._asked.update(channels)
        await self._say("SUBSCRIBE", *channels)

    async def _say(self, verb: str, *channels: str) -> None:
        # while there is no connection nothing need be said: the next one begins with all subscriptions
        if self._connection is not None and self._connection.is_connected:
            with suppress(RedisError):
                names = [self._keys.channel(channel) for channel in channels]
                await self._connection.send_command(verb, *names, check_health=False)

    async def _greet(self, connection: AbstractConnection) -> None:
        # set before the channels are read, so that whoever begins to listen meanwhile speaks on this connection too
        self._connection = connection
        self._asked.clear()
        channels = self._listeners.channels()
        if channels:
            await self._subscribe(*channels)

    def _lose(self) -> None:
        if not self._stopped:
            for confirmed in self._confirmed.values():
                confirmed.clear()

    def _receive(self, reply: Any) -> None:
        if not isinstance(reply, list):
            return
        kind, channel = reply[0], self._keys.channel_name(reply[1].decode())
        if kind == b"message":
            self._deliver(channel, reply[2])
        elif kind == b"subscribe":
            self._confirm(channel)

    def _deliver(self, channel: str, message: bytes) -> None:
        if len(message) > MAX_MESSAGE_BYTES:
            error = f"{len(message)} bytes, at most {MAX_MESSAGE_BYTES} are read"
            self._log.warning("queue.dropped_message", channel=channel, error=error)
        else:
            self._listeners.give(channel, message)

    def _confirm(self, channel: str) -> None:
        # a channel left and entered again at once is confirmed twice; only the last means that we are in
        self._asked[channel] -= 1
        if self._asked[channel] <= 0:
            del self._asked[channel]
            if channel in self._confirmed:
                self._confirmed[channel].set()
