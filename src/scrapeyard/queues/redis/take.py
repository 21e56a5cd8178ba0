"""Taking from Redis: at once by a script, else by one blocked read over all the streams, on a connection of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import Struct
from redis.exceptions import ResponseError

from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import Delivery
from scrapeyard.queues.messages import Unreadable, decode_delivery
from scrapeyard.redis.connection import Command, CommandLink, LinkLost
from scrapeyard.redis.keys import CONSUMER, FIELD, GROUP
from scrapeyard.redis.scripts import Script
from scrapeyard.telemetry.events import Log, get_log

MAX_COUNT = 1000
_TAKE = Script.load("scrapeyard.queues.redis", "take.lua")
_UNBLOCK_EVERY_SECONDS = 0.02
_REFUSED_PAUSE_SECONDS = 0.5
_LEAVE_SECONDS = 0.003
_CALM_SECONDS = 0.005
"""After a read that had to wait, so long the streams are taken to be as empty as they were then."""
_GROUP_GONE = ("NOGROUP", "UNBLOCKED")
"""Someone emptied the server while we waited; the script makes the group again."""


class Entry(Struct, frozen=True):
    """One entry of a stream as the server gave it."""

    stream: bytes
    id: bytes
    fields: Sequence[bytes]

    @property
    def message(self) -> bytes | None:
        """None when the entry is not ours."""
        pairs = dict(zip(self.fields[::2], self.fields[1::2], strict=False))
        return pairs.get(FIELD)


def read_entries(entries: Sequence[Entry], log: Log) -> list[Delivery]:
    """The deliveries in them; what cannot be read is dropped and logged."""
    deliveries = []
    for entry in entries:
        try:
            deliveries.append(decode_delivery(entry.message))
        except Unreadable as error:
            log.warning("queue.dropped_message", channel=entry.stream.decode(errors="replace"), error=str(error)[:200])
    return deliveries


def removals(entries: Sequence[Entry]) -> list[Command]:
    """What takes entries that a blocked read returned out of their streams."""
    ids: dict[bytes, list[bytes]] = {}
    for entry in entries:
        ids.setdefault(entry.stream, []).append(entry.id)
    commands: list[Command] = []
    for stream, here in ids.items():
        commands += [("XACK", stream, GROUP, *here), ("XDEL", stream, *here)]
    return commands


class Links:
    """Connections for blocked reads. As many are kept as were ever needed at once."""

    def __init__(self, new_link: Callable[[], CommandLink]) -> None:
        self._new_link = new_link
        self._all: list[CommandLink] = []
        self._idle: list[CommandLink] = []

    @contextmanager
    def lend(self) -> Iterator[CommandLink]:
        """A connection for one caller alone. One that is left before the answer came is closed and made anew."""
        link = self._idle.pop() if self._idle else self._make()
        try:
            yield link
        except asyncio.CancelledError:
            link.drop()
            raise
        finally:
            self._idle.append(link)

    async def stop(self) -> None:
        """Close them all; none may be lent."""
        links, self._all, self._idle = self._all, [], []
        await asyncio.gather(*(link.stop() for link in links))

    def _make(self) -> CommandLink:
        link = self._new_link()
        self._all.append(link)
        link.start()
        return link


class _Errand:
    """One `take`. It runs to its end though its caller may have gone, so that what it got can be put back."""

    def __init__(
        self,
        commands: CommandLink,
        links: Links,
        *,
        streams: Sequence[str],
        count: int,
        until: float,
        patience: float,
        leavings: "_Leavings",
    ) -> None:
        self.called_off = False
        self.blocked_on: CommandLink | None = None
        self._commands = commands
        self._links = links
        self._streams = streams
        self._count = count
        self._until = until
        self._patience = patience
        self._leavings = leavings
        self._log = get_log("queue")

    async def run(self) -> list[Delivery]:
        """Deliveries; none when the time is over or the errand was called off."""
        found: list[Delivery] = []
        while not found and not self.called_off:
            try:
                await self._commands.ready(self._until)
                found = await self._take()
            except LinkLost:
                found = []
            except ResponseError as error:
                self._log.warning("queue.refused", error=str(error)[:200])
                await asyncio.sleep(min(_REFUSED_PAUSE_SECONDS, max(0.0, self._left())))
            if self._left() <= 0:
                break
        return found

    async def _take(self) -> list[Delivery]:
        if self._leavings.is_busy() or self._left() <= 0:
            return await self._at_once() or await self._blocked()
        return await self._blocked()

    def _left(self) -> float:
        return self._until - asyncio.get_running_loop().time()

    async def _at_once(self) -> list[Delivery]:
        reply = await _TAKE.run(self._commands, GROUP, self._count, keys=self._streams, within=self._patience)
        return read_entries([Entry(*entry) for entry in _checked(reply) or ()], self._log)

    async def _blocked(self) -> list[Delivery]:
        if self._left() <= 0 or self.called_off:
            return []
        with self._links.lend() as link:
            await link.ready(self._until)
            self.blocked_on = link
            try:
                return await self._read(link)
            finally:
                self.blocked_on = None

    async def _read(self, link: CommandLink) -> list[Delivery]:
        left = max(0.001, self._left())
        how: Command = ("COUNT", self._count, "BLOCK", max(1, int(left * 1000)), "STREAMS", *self._streams)
        read: Command = ("XREADGROUP", "GROUP", GROUP, CONSUMER, *how, *(">" for _ in self._streams))
        (reply,) = await link.ask(read, within=left + self._patience, unheard=self._leavings.take())
        if isinstance(reply, ResponseError) and str(reply).startswith(_GROUP_GONE):
            self._leavings.forget_calm()
            return []
        entries = [Entry(stream, *entry) for stream, here in _checked(reply) or () for entry in here]
        if entries:
            self._leavings.leave(entries[: self._count], entries[self._count :])
        return read_entries(entries[: self._count], self._log)


class _Leavings:
    """What a blocked read leaves to be done at the server: entries to remove, and surplus to put back, since several
    streams may each have had as many as were asked for.

    It goes along with what is said to the server next, which as a rule is the next blocked read, and otherwise by
    itself a moment later. If it is lost on its way the entries stay pending; the copies recover() makes
    are marked redelivered.
    """

    def __init__(
        self, commands: CommandLink, patience: float, aside: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._commands = commands
        self._patience = patience
        self._aside = aside
        self._waiting: list[Command] = []
        self._calm_until = 0.0

    def is_busy(self) -> bool:
        """Whether the streams may hold more than a blocked read should see. After a read that waited for its one entry
        they are empty, or have been filled within a moment."""
        return asyncio.get_running_loop().time() >= self._calm_until

    def forget_calm(self) -> None:
        """The next take asks by script again."""
        self._calm_until = 0.0

    def leave(self, entries: Sequence[Entry], surplus: Sequence[Entry]) -> None:
        """After a blocked read; sees to it that all is done soon."""
        loop = asyncio.get_running_loop()
        self._calm_until = 0.0 if surplus else loop.time() + _CALM_SECONDS
        back: list[Command] = [("XADD", entry.stream, "*", *entry.fields) for entry in surplus]
        self._waiting += [*back, *removals([*entries, *surplus])]
        loop.call_later(_LEAVE_SECONDS, self.do)

    def take(self) -> list[Command]:
        """All of it; the caller does it."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def do(self) -> None:
        """Do what nobody has taken."""
        if self._waiting:
            self._aside(self._ask(self.take()))

    async def _ask(self, commands: Sequence[Command]) -> None:
        with suppress(LinkLost):
            await self._commands.ask(*commands, within=self._patience)


def _checked(reply: Any) -> Any:
    if isinstance(reply, ResponseError):
        raise reply
    return reply


class Takers:
    """Runs errands, and settles those whose caller went away."""

    def __init__(
        self,
        *,
        new_link: Callable[[], CommandLink],
        commands: CommandLink,
        put_back: Callable[[Sequence[Delivery]], Awaitable[int]],
        patience: float,
        log: Log,
    ) -> None:
        self._links = Links(new_link)
        self._commands = commands
        self._put_back = put_back
        self._patience = patience
        self._log = log
        self._leavings = _Leavings(commands, patience, self._set_aside)
        self._running: dict[asyncio.Task[list[Delivery]], _Errand] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self._stopped = False

    def start(self) -> None:
        """Connections are made when they are first needed."""
        self._stopped = False

    async def stop(self) -> None:
        """Let every errand end soon, put back what nobody waits for, close the connections."""
        self._stopped = True
        await asyncio.gather(*(self._hasten(task, errand) for task, errand in self._running.items()))
        self._leavings.do()
        await asyncio.gather(*self._settling)
        await self._links.stop()

    def leavings(self) -> list[Command]:
        """What takes have left to be done at the server; whoever asks sees to it."""
        return self._leavings.take()

    async def take(self, streams: Sequence[str], count: int, timeout: float) -> list[Delivery]:
        """See the port. A caller that is cancelled loses nothing: what was on its way to it is put back."""
        if self._stopped:
            return []
        until = asyncio.get_running_loop().time() + timeout
        errand = _Errand(
            self._commands,
            self._links,
            streams=streams,
            count=min(count, MAX_COUNT),
            until=until,
            patience=self._patience,
            leavings=self._leavings,
        )
        task = asyncio.create_task(errand.run())
        self._running[task] = errand
        task.add_done_callback(self._running.pop)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._set_aside(self._settle(task, errand))
            raise

    def _set_aside(self, work: Coroutine[Any, Any, None]) -> None:
        """Work that nobody waits for but `stop`."""
        task = asyncio.create_task(work)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle(self, task: asyncio.Task[list[Delivery]], errand: _Errand) -> None:
        await self._hasten(task, errand)
        found = [] if task.cancelled() else task.result()
        try:
            if found:
                await self._put_back(found)
        except QueueUnavailable as error:
            self._log.warning("queue.not_put_back", count=len(found), error=error.message)

    async def _hasten(self, task: asyncio.Task[list[Delivery]], errand: _Errand) -> None:
        """Wake the errand's blocked read from another connection until it has ended; else end it the hard way."""
        errand.called_off = True
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience
        with suppress(LinkLost):
            while not task.done() and self._commands.is_up and loop.time() < until:
                if errand.blocked_on is not None:
                    await self._commands.ask(("CLIENT", "UNBLOCK", errand.blocked_on.client_id), within=self._patience)
                await asyncio.wait((task,), timeout=_UNBLOCK_EVERY_SECONDS)
        if not task.done():
            # what the server had already given to this read stays pending there until recover()
            task.cancel()
            await asyncio.wait((task,))
