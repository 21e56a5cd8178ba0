"""Taking from Redis: at once by a script, else by one blocked read over all the streams, on a connection of its own."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

from msgspec import Struct
from redis.exceptions import NoScriptError, ResponseError

from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import Delivery
from scrapeyard.queues.messages import Unreadable, decode_delivery
from scrapeyard.queues.redis_keys import CONSUMER, FIELD, GROUP
from scrapeyard.queues.redis_link import Command, CommandLink, LinkLost
from scrapeyard.telemetry.events import Log

MAX_COUNT = 1000
MAX_IDLE_LINKS = 8
SCRIPT = files("scrapeyard.queues").joinpath("lua", "take.lua").read_text("utf-8")
SCRIPT_SHA = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
"""The server knows a script by its SHA-1."""

_UNBLOCK_EVERY_SECONDS = 0.02
_REFUSED_PAUSE_SECONDS = 0.5
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


class _Errand:
    """One `take`. It runs to its end though its caller may have gone, so that what it got can be put back."""

    def __init__(self, link: CommandLink, streams: Sequence[str], count: int, until: float, patience: float, log: Log):
        self.called_off = False
        self._link = link
        self._streams = streams
        self._count = count
        self._until = until
        self._patience = patience
        self._log = log

    async def run(self) -> list[Delivery]:
        """Deliveries; none when the time is over or the errand was called off."""
        found: list[Delivery] = []
        while not found and not self.called_off:
            try:
                await self._link.ready(self._until)
                found = await self._at_once() or await self._blocked()
            except LinkLost:
                found = []
            except ResponseError as error:
                self._log.warning("queue.refused", error=str(error)[:200])
                await asyncio.sleep(min(_REFUSED_PAUSE_SECONDS, max(0.0, self._left())))
            if self._left() <= 0:
                break
        return found

    def _left(self) -> float:
        return self._until - asyncio.get_running_loop().time()

    async def _at_once(self) -> list[Delivery]:
        arguments = (len(self._streams), *self._streams, GROUP, self._count)
        (reply,) = await self._link.ask(("EVALSHA", SCRIPT_SHA, *arguments), within=self._patience)
        if isinstance(reply, NoScriptError):
            (reply,) = await self._link.ask(("EVAL", SCRIPT, *arguments), within=self._patience)
        return read_entries([Entry(*entry) for entry in _checked(reply) or ()], self._log)

    async def _blocked(self) -> list[Delivery]:
        left = self._left()
        if left <= 0 or self.called_off:
            return []
        where = (*self._streams, *(">" for _ in self._streams))
        how = ("COUNT", self._count, "BLOCK", max(1, int(left * 1000)), "STREAMS")
        (reply,) = await self._link.ask(
            ("XREADGROUP", "GROUP", GROUP, CONSUMER, *how, *where), within=left + self._patience
        )
        if isinstance(reply, ResponseError) and str(reply).startswith(_GROUP_GONE):
            return []
        entries = [Entry(stream, *entry) for stream, here in _checked(reply) or () for entry in here]
        return await self._keep(entries[: self._count], entries[self._count :])

    async def _keep(self, entries: Sequence[Entry], surplus: Sequence[Entry]) -> list[Delivery]:
        """Remove what is ours. Several streams may have had `count` each: what is too much goes back to its tail."""
        back: list[Command] = [("XADD", entry.stream, "*", *entry.fields) for entry in surplus]
        commands = back + removals([*entries, *surplus])
        # an answer that never comes leaves them pending: we run them now, and recover() will mark the others redelivered
        with suppress(LinkLost):
            if commands:
                await self._link.ask(*commands, within=self._patience)
        return read_entries(entries, self._log)


def _checked(reply: Any) -> Any:
    if isinstance(reply, ResponseError):
        raise reply
    return reply


class Takers:
    """Runs errands, each on a connection of its own while it lasts, and settles those whose caller went away."""

    def __init__(
        self,
        *,
        new_link: Callable[[], CommandLink],
        commands: CommandLink,
        put_back: Callable[[Sequence[Delivery]], Awaitable[int]],
        patience: float,
        log: Log,
    ) -> None:
        self._new_link = new_link
        self._commands = commands
        self._put_back = put_back
        self._patience = patience
        self._log = log
        self._links: set[CommandLink] = set()
        self._idle: list[CommandLink] = []
        self._running: dict[asyncio.Task[list[Delivery]], tuple[_Errand, CommandLink]] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self._stopped = False

    def start(self) -> None:
        """Links are made when they are first needed."""
        self._stopped = False

    async def stop(self) -> None:
        """Let every errand end soon, put back what nobody waits for, close the connections."""
        self._stopped = True
        await asyncio.gather(*(self._hasten(task) for task in list(self._running)))
        await asyncio.gather(*self._settling)
        links, self._links = self._links, set()
        self._idle.clear()
        await asyncio.gather(*(link.stop() for link in links))

    async def take(self, streams: Sequence[str], count: int, timeout: float) -> list[Delivery]:
        """See the port. A caller that is cancelled loses nothing: what was on its way to it is put back."""
        if self._stopped:
            return []
        link = self._borrow()
        until = asyncio.get_running_loop().time() + timeout
        errand = _Errand(link, streams, min(count, MAX_COUNT), until, self._patience, self._log)
        task = asyncio.create_task(errand.run())
        self._running[task] = errand, link
        try:
            found = await asyncio.shield(task)
        except asyncio.CancelledError:
            settling = asyncio.create_task(self._settle(task))
            self._settling.add(settling)
            settling.add_done_callback(self._settling.discard)
            raise
        await self._release(task)
        return found

    def _borrow(self) -> CommandLink:
        if self._idle:
            return self._idle.pop()
        link = self._new_link()
        self._links.add(link)
        link.start()
        return link

    async def _release(self, task: asyncio.Task[list[Delivery]]) -> None:
        _, link = self._running.pop(task)
        if len(self._idle) < MAX_IDLE_LINKS and not task.cancelled():
            self._idle.append(link)
        else:
            self._links.discard(link)
            await link.stop()

    async def _settle(self, task: asyncio.Task[list[Delivery]]) -> None:
        await self._hasten(task)
        try:
            found = [] if task.cancelled() else task.result()
            if found:
                await self._put_back(found)
        except QueueUnavailable as error:
            self._log.warning("queue.not_put_back", count=len(found), error=error.message)
        finally:
            await self._release(task)

    async def _hasten(self, task: asyncio.Task[list[Delivery]]) -> None:
        """Wake the errand's blocked read from another connection until it has ended; else end it the hard way."""
        errand, link = self._running[task]
        errand.called_off = True
        until = asyncio.get_running_loop().time() + self._patience
        with suppress(LinkLost):
            while not task.done() and link.is_up and asyncio.get_running_loop().time() < until:
                await self._commands.ask(("CLIENT", "UNBLOCK", link.client_id), within=self._patience)
                await asyncio.wait((task,), timeout=_UNBLOCK_EVERY_SECONDS)
        if not task.done():
            # what the server had already given to this read stays pending there until recover()
            task.cancel()
            await asyncio.wait((task,))
