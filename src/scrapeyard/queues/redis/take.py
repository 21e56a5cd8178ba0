"""Taking from Redis: pops at once, or one pop that waits on a connection of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from redis.exceptions import ResponseError

from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import Delivery
from scrapeyard.queues.messages import Unreadable, decode_delivery
from scrapeyard.redis.connection import Command, CommandLink, LinkLost
from scrapeyard.telemetry.events import Log

MAX_COUNT = 1000
_UNBLOCK_EVERY_SECONDS = 0.02
_REFUSED_PAUSE_SECONDS = 0.5


class _Take:
    """One `take`. It runs to its end though its caller may have gone, so that what it got can be put back."""

    def __init__(
        self, link: CommandLink, lists: Sequence[str], count: int, *, until: float, patience: float, log: Log
    ) -> None:
        self.link = link
        self.until = until
        """When to stop waiting, in the loop's time. Whoever calls the take off moves it to the past."""
        self._lists = lists
        self._count = count
        self._patience = patience
        self._log = log

    async def all_at_once(self) -> list[Delivery]:
        """What the lists hold now, the first list first."""
        found: list[Delivery] = []
        while len(found) < self._count:
            popped = await self._pop(("LMPOP",), self._count - len(found))
            if popped is None:
                break
            found += popped
        return found

    async def wait(self) -> list[Delivery]:
        """From the first list that holds anything, as soon as one does. Nothing when the time is over."""
        found: list[Delivery] = []
        while not found and (left := self._left()) > 0:
            # the server takes 0 for "wait forever"
            found = await self._pop(("BLMPOP", f"{max(0.001, left):.3f}"), self._count) or []
        return found

    def _left(self) -> float:
        return self.until - asyncio.get_running_loop().time()

    async def _pop(self, verb: Command, count: int) -> list[Delivery] | None:
        """None means that nothing was popped. What was popped and cannot be read is dropped and logged."""
        pop: Command = (*verb, len(self._lists), *self._lists, "LEFT", "COUNT", count)
        try:
            await self.link.ready(self.until)
            (reply,) = await self.link.ask(pop, within=max(0.0, self._left()) + self._patience)
        except LinkLost:
            return None
        if isinstance(reply, ResponseError):
            self._log.warning("queue.refused", error=str(reply)[:200])
            await asyncio.sleep(min(_REFUSED_PAUSE_SECONDS, max(0.0, self._left())))
            return None
        return None if reply is None else self._read(*reply)

    def _read(self, name: bytes, messages: Sequence[bytes]) -> list[Delivery]:
        deliveries = []
        for message in messages:
            try:
                deliveries.append(decode_delivery(message))
            except Unreadable as error:
                self._log.warning("queue.dropped_message", channel=name.decode(), error=str(error)[:200])
        return deliveries


class Takers:
    """Runs takes, and puts back what came for a caller that went away.

    A take that waits has a connection to itself. As many connections are kept as were ever needed at once.
    """

    def __init__(
        self,
        *,
        new_link: Callable[[], CommandLink],
        commands: CommandLink,
        put_back: Callable[[Sequence[Delivery]], Awaitable[None]],
        patience: float,
        log: Log,
    ) -> None:
        self._new_link = new_link
        self._commands = commands
        self._put_back = put_back
        self._patience = patience
        self._log = log
        self._links: list[CommandLink] = []
        self._idle: list[CommandLink] = []
        self._running: dict[asyncio.Task[list[Delivery]], _Take] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self._stopped = False

    def start(self) -> None:
        """Connections are made when they are first needed."""
        self._stopped = False

    async def stop(self) -> None:
        """Let every take end soon, put back what nobody waits for, close the connections."""
        self._stopped = True
        await asyncio.gather(*(self._hasten(task, take) for task, take in self._running.items()))
        await asyncio.gather(*self._settling)
        links, self._links, self._idle = self._links, [], []
        await asyncio.gather(*(link.stop() for link in links))

    async def take(self, lists: Sequence[str], count: int, timeout: float) -> list[Delivery]:
        """See the port. A caller that is cancelled loses nothing: what was on its way to it is put back."""
        if self._stopped:
            return []
        task = self._begin(lists, min(count, MAX_COUNT), timeout)
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            self._settle_aside(self._settle(task))
            raise
        return [] if task.cancelled() else task.result()

    def _begin(self, lists: Sequence[str], count: int, timeout: float) -> asyncio.Task[list[Delivery]]:
        link = self._lend() if timeout > 0 else self._commands
        until = asyncio.get_running_loop().time() + timeout
        take = _Take(link, lists, count, until=until, patience=self._patience, log=self._log)
        task = asyncio.create_task(take.wait() if timeout > 0 else take.all_at_once())
        self._running[task] = take
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[list[Delivery]]) -> None:
        link = self._running.pop(task).link
        if link is self._commands:
            return
        if task.cancelled():
            # the server may still hold its pop, which would take a delivery for nobody
            link.drop()
        self._idle.append(link)

    def _lend(self) -> CommandLink:
        if self._idle:
            return self._idle.pop()
        link = self._new_link()
        self._links.append(link)
        link.start()
        return link

    def _settle_aside(self, work: Coroutine[Any, Any, None]) -> None:
        """Nobody waits for it but `stop`."""
        task = asyncio.create_task(work)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle(self, task: asyncio.Task[list[Delivery]]) -> None:
        if task in self._running:
            await self._hasten(task, self._running[task])
        found = [] if task.cancelled() else task.result()
        try:
            if found:
                await self._put_back(found)
        except QueueUnavailable as error:
            self._log.warning("queue.not_put_back", count=len(found), error=error.message)

    async def _hasten(self, task: asyncio.Task[list[Delivery]], take: _Take) -> None:
        """Wake the take's blocked pop from another connection until it has ended; else end it the hard way."""
        take.until = 0.0
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience
        with suppress(LinkLost):
            while not task.done() and self._commands.is_up and loop.time() < until:
                await self._commands.ask(("CLIENT", "UNBLOCK", take.link.client_id), within=self._patience)
                await asyncio.wait((task,), timeout=_UNBLOCK_EVERY_SECONDS)
        if not task.done():
            # what the server had already given to this pop is lost here; the dispatcher publishes it again
            task.cancel()
            await asyncio.wait((task,))
