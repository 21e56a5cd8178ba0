"""Taking from JetStream: pulls that answer at once, or pulls that wait on every list."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from scrapeyard.background import Background
from scrapeyard.model import Delivery
from scrapeyard.queues.messages import Unreadable, decode_delivery
from scrapeyard.queues.nats.link import NatsLink, NatsLost

MAX_COUNT = 1000
LONGEST_PULL_SECONDS = 10.0
"""A pull that waits is lost when the leader of its consumer changes, so it is asked again this often."""
_LOST_PAUSE_SECONDS = 0.05
_GRACE_SECONDS = 30.0
"""For closing a subscription and for acknowledgements, which nobody waits for but `stop`."""


class NatsList(Struct, frozen=True):
    """The deliveries of one lane and priority."""

    subject: str
    consumer: str
    pull: str
    """The subject that asks for its next messages."""


class _Pull:
    """Messages that come for one take, in order. What comes after it has ended goes back to the server."""

    def __init__(self, client: Client, lists: Sequence[NatsList]) -> None:
        self.client = client
        self.lists = lists
        self.messages: list[tuple[int, Msg]] = []
        """Each with the place of its list."""
        self._places = {one.subject: place for place, one in enumerate(lists)}
        self._inbox = client.new_inbox()
        self._subscription: Subscription | None = None
        self._answered = 0
        self._ended = False
        self._came = asyncio.Event()

    async def start(self) -> None:
        """Listen for messages."""
        self._subscription = await self.client.subscribe(self._inbox, cb=self._receive)

    async def ask(self, one: NatsList, **what: object) -> None:
        """Ask for messages of a list."""
        await self.client.publish(one.pull, msgspec.json.encode(what), reply=self._inbox)

    async def have(self, count: int, lists: int) -> None:
        """Wait until there are so many messages, or so many lists were answered with the last word since this call."""
        enough = self._answered + lists
        while len(self.messages) < count and self._answered < enough:
            self._came.clear()
            await self._came.wait()

    def end(self) -> None:
        """Nobody waits for more."""
        self._ended = True

    async def close(self, link: NatsLink, until: float) -> None:
        """Withdraw what was asked, so that it takes nothing for nobody. Raises NatsLost."""
        subscription = self._subscription
        if subscription is None:
            return
        # `unsubscribe` would drop what is on its way, and `drain` does not wait for it
        await self.client._send_unsubscribe(subscription._id)
        await link.echo(self.client, until)
        while subscription.pending_msgs:  # noqa: ASYNC110 - the library has no event for it
            await asyncio.sleep(0)
        await subscription.unsubscribe()

    async def _receive(self, msg: Msg) -> None:
        """Called by the library, one message after the other."""
        if msg.headers and "Status" in msg.headers:
            self._answered += 1
        elif self._ended:
            await msg.nak()
        else:
            self.messages.append((self._places[msg.subject], msg))
        self._came.set()


class NatsTakers:
    """Runs takes. A message is acknowledged when it is handed out, and returned when its taker went away."""

    def __init__(
        self,
        link: NatsLink,
        ensure: Callable[[Client, Sequence[NatsList]], Awaitable[None]],
        bury: Callable[[Client, Msg, str], Awaitable[None]],
        patience: float,
    ) -> None:
        """`ensure` creates missing consumers; `bury` moves a message that is no delivery to the dead letters."""
        self._link = link
        self._ensure = ensure
        self._bury = bury
        self._patience = patience
        self._settling = Background()
        self._returning = Background()
        self._running: set[asyncio.Task[tuple[Client | None, list[Msg]]]] = set()
        self._stopped = True
        self.waiting = 0
        """How many takes wait for the server to send something."""

    def start(self) -> None:
        """Takes are allowed from now on."""
        self._stopped = False

    async def stop(self) -> None:
        """End every take soon, and return what nobody waits for."""
        self._stopped = True
        if running := list(self._running):
            for task in running:
                task.cancel()
            await asyncio.wait(running)
        await self.settled()

    async def settled(self) -> None:
        """Wait until the server has every acknowledgement of this process."""
        await self._returning.idle()
        await self._settling.idle()

    async def take(self, lists: Sequence[NatsList], count: int, timeout: float) -> list[Delivery]:
        """See the port. What an earlier take of this process returns comes first."""
        await self._returning.idle()
        if self._stopped:
            return []
        until = asyncio.get_running_loop().time() + timeout
        taking = asyncio.create_task(self._take(lists, min(count, MAX_COUNT), until))
        self._running.add(taking)
        taking.add_done_callback(self._running.discard)
        try:
            await asyncio.wait((taking,))
        except asyncio.CancelledError:
            self._returning.spawn(self._call_off(taking), name="nats-call-off")
            raise
        return [] if taking.cancelled() else self._keep(*taking.result())

    async def _call_off(self, taking: "asyncio.Task[tuple[Client | None, list[Msg]]]") -> None:
        taking.cancel()
        await asyncio.wait((taking,))
        if not taking.cancelled():
            await self._say(*taking.result(), b"-NAK")

    async def _take(self, lists: Sequence[NatsList], count: int, until: float) -> tuple[Client | None, list[Msg]]:
        """Messages that are not acknowledged yet, and the connection that they came on. None: nothing came."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                client = await self._link.ready(max(until, loop.time() + 0.001))
                if found := await self._attempt(client, lists, count, until):
                    return client, found
            except (NatsLost, NatsError, OSError):
                await asyncio.sleep(min(_LOST_PAUSE_SECONDS, max(0.0, until - loop.time())))
            if loop.time() >= until:
                return None, []

    async def _attempt(self, client: Client, lists: Sequence[NatsList], count: int, until: float) -> list[Msg]:
        loop = asyncio.get_running_loop()
        await self._ensure(client, lists)
        pull = _Pull(client, lists)
        try:
            await pull.start()
            found = await self._present(pull, count)
            if not found and (left := until - loop.time()) > 0:
                found = await self._wait(pull, min(left, LONGEST_PULL_SECONDS))
            pull.messages = [(place, msg) for place, msg in pull.messages if msg not in found]
            return found
        finally:
            pull.end()
            aside = self._returning if pull.messages else self._settling
            aside.spawn(self._close(pull), name="nats-close-pull")

    async def _present(self, pull: _Pull, count: int) -> list[Msg]:
        """What the lists hold now, the first list first."""
        until = asyncio.get_running_loop().time() + self._patience
        found: list[Msg] = []
        for place, one in enumerate(pull.lists):
            if len(found) >= count:
                break
            before = len(pull.messages)
            wanted = count - len(found)
            await pull.ask(one, batch=wanted, no_wait=True)
            await self._link.during(pull.have(before + wanted, 1), until)
            found += await self._readable(pull, [msg for at, msg in pull.messages if at == place])
        return found

    async def _wait(self, pull: _Pull, seconds: float) -> list[Msg]:
        """One message, the most urgent of those that came together; the others go back."""
        loop = asyncio.get_running_loop()
        for one in pull.lists:
            await pull.ask(one, batch=1, expires=int(seconds * 1e9))
        self.waiting += 1
        try:
            await self._link.during(pull.have(1, len(pull.lists)), loop.time() + seconds + self._patience)
            # what was published together comes together, but not in order: each list has a consumer of its own
            await self._link.echo(pull.client, loop.time() + self._patience)
        finally:
            self.waiting -= 1
        for _, msg in sorted(pull.messages, key=lambda came: came[0]):
            if found := await self._readable(pull, [msg]):
                return found
        return []

    async def _readable(self, pull: _Pull, messages: Sequence[Msg]) -> list[Msg]:
        found = []
        for msg in messages:
            try:
                decode_delivery(msg.data)
                found.append(msg)
            except Unreadable as error:
                pull.messages = [each for each in pull.messages if each[1] is not msg]
                await self._bury(pull.client, msg, str(error)[:200])
        return found

    async def _close(self, pull: _Pull) -> None:
        with suppress(NatsLost, NatsError, OSError):
            await pull.close(self._link, asyncio.get_running_loop().time() + _GRACE_SECONDS)
        await self._say(pull.client, [msg for _, msg in pull.messages], b"-NAK")

    def _keep(self, client: Client | None, messages: Sequence[Msg]) -> list[Delivery]:
        """The deliveries, acknowledged. One that was handed out before must be claimed in the store first."""
        if client is None:
            return []
        self._settling.spawn(self._say(client, messages, b"+ACK"), name="nats-acknowledge")
        return [_delivery(msg) for msg in messages]

    async def _say(self, client: Client | None, messages: Sequence[Msg], word: bytes) -> None:
        """Tell the server about each message. A word that is lost with the connection means another delivery."""
        if client is None or not messages:
            return
        until = asyncio.get_running_loop().time() + _GRACE_SECONDS
        with suppress(NatsLost, NatsError, OSError):
            for msg in messages[:-1]:
                await client.publish(msg.reply, word)
            await self._link.ask(client, messages[-1].reply, word, until)


def _delivery(msg: Msg) -> Delivery:
    delivery = decode_delivery(msg.data)
    return replace(delivery, redelivered=True) if msg.metadata.num_delivered != 1 else delivery
