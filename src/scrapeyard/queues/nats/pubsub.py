"""Small messages on core NATS: one subscription for each channel that somebody in this process listens on."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from scrapeyard.queues.listeners import Listener, Listeners
from scrapeyard.queues.nats.link import NatsLink, NatsLost
from scrapeyard.queues.port import MAX_MESSAGE_BYTES
from scrapeyard.telemetry.events import Log

_IN_SUBJECTS = re.compile(r"[^A-Za-z0-9:_-]")
_PATIENCE_SECONDS = 5.0


class NatsSubscriber:
    """Subscribes for a channel's first listener, again on every new connection, and leaves it with the last.

    Messages sent while the connection is away are lost.
    """

    def __init__(self, prefix: str, link: NatsLink, log: Log) -> None:
        self._prefix = prefix
        self._link = link
        self._log = log
        self._listeners = Listeners()
        self._subscriptions: dict[str, Subscription] = {}
        self._confirmed: dict[str, asyncio.Event] = {}
        self._stopped = False

    def start(self) -> None:
        """Listening is allowed from now on."""
        self._stopped = False

    def stop(self) -> None:
        """End every iteration, and let go those who wait for a subscription."""
        self._stopped = True
        self._listeners.close()
        for confirmed in self._confirmed.values():
            confirmed.set()

    def subject(self, channel: str) -> str:
        """Where a channel's messages are sent. Dots, wildcards and spaces mean something in subjects."""
        return f"{self._prefix}.c.{_IN_SUBJECTS.sub(lambda found: f'={ord(found[0]):x}=', channel)}"

    async def greet(self, client: Client) -> None:
        """Begin a new connection with every channel that somebody listens on."""
        self._subscriptions.clear()
        for channel in self._listeners.channels():
            await self._subscribe(client, channel)
        await self._link.echo(client, _soon())
        for channel in self._subscriptions:
            if channel in self._confirmed:
                self._confirmed[channel].set()

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Enters when the server has confirmed the subscription, however long the server is away."""
        listener = Listener(channel, self._log)
        try:
            if self._listeners.add(channel, listener):
                self._confirmed[channel] = asyncio.Event()
                await self._subscribe_now(channel)
            if self._stopped:
                listener.close()
            else:
                await self._confirmed[channel].wait()
            yield listener
        finally:
            listener.close()
            if self._listeners.remove(channel, listener):
                del self._confirmed[channel]
                await self._leave(channel)

    async def _leave(self, channel: str) -> None:
        if (subscription := self._subscriptions.pop(channel, None)) is not None:
            with suppress(NatsError, OSError):
                await subscription.unsubscribe()

    async def _subscribe_now(self, channel: str) -> None:
        """While there is no connection nothing need be said: the next one begins with all subscriptions."""
        if (client := self._link.client) is None:
            return
        with suppress(NatsLost, NatsError, OSError):
            await self._subscribe(client, channel)
            await self._link.echo(client, _soon())
            if channel in self._confirmed:
                self._confirmed[channel].set()
            return
        self._link.drop()

    async def _subscribe(self, client: Client, channel: str) -> None:
        async def heard(msg: Msg) -> None:
            if len(msg.data) > MAX_MESSAGE_BYTES:
                error = f"{len(msg.data)} bytes, at most {MAX_MESSAGE_BYTES} are read"
                self._log.warning("queue.dropped_message", channel=channel, error=error)
            else:
                self._listeners.give(channel, msg.data)

        self._subscriptions[channel] = await client.subscribe(self.subject(channel), cb=heard)


def _soon() -> float:
    return asyncio.get_running_loop().time() + _PATIENCE_SECONDS
