"""Limits of clients on Redis 7 or Valkey, counted by all gateways together.

The place of a call is a lease that its gateway renews, so that those of a killed gateway are free LEASE_SECONDS later.
While the server is away, each gateway counts alone.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from redis.exceptions import ResponseError

from scrapeyard.background import Background
from scrapeyard.gateway.limits.memory import MemoryLimiter
from scrapeyard.gateway.limits.port import Entry, burst_of
from scrapeyard.model import new_id
from scrapeyard.model.identity import ClientLimits
from scrapeyard.redis.connection import Command, CommandLink, Dialer, LinkLost
from scrapeyard.redis.keys import Keys
from scrapeyard.redis.outage import Outage
from scrapeyard.redis.scripts import Script
from scrapeyard.telemetry.events import get_log

log = get_log("limits")
ANSWER_SECONDS: Final = 1.0
LEASE_SECONDS: Final = 30.0
RENEW_SECONDS: Final = 10.0
_ENTER: Final = Script.load("scrapeyard.gateway.limits", "lua/enter.lua")
_RENEW: Final = Script(
    "local time = redis.call('TIME') for i = 2, #ARGV do "
    "redis.call('ZADD', KEYS[1], 'XX', tonumber(time[1]) + tonumber(ARGV[1]), ARGV[i]) end "
    "redis.call('EXPIRE', KEYS[1], tonumber(ARGV[1]) + 60)"
)


class RedisLimiter:
    """A ClientLimiter for many gateways."""

    def __init__(self, url: str, *, prefix: str = "scrapeyard") -> None:
        """Raises SettingsInvalid when the URL or the prefix cannot be used."""
        self._keys = Keys(prefix)
        outage = Outage(
            away=lambda error, _: log.warning("limits.away", error=error), back=lambda _: log.info("limits.back")
        )
        self._link = CommandLink(Dialer(url), outage)
        self._alone = MemoryLimiter()
        self._held: dict[str, set[str]] = {}
        self._background = Background()

    async def start(self) -> None:
        """Begin to connect, and wait for it a moment."""
        self._link.start()
        self._background.start(self._keep_renewing, name="limits")
        try:
            await self._link.ready(asyncio.get_running_loop().time() + ANSWER_SECONDS)
        except LinkLost:
            return

    async def stop(self) -> None:
        """Close the connection. What is held is let go of when its lease ends."""
        await self._background.stop()
        await self._link.stop()

    async def enter(self, client: str, limits: ClientLimits, *, holds: bool) -> Entry:
        """Count a call, in one round trip."""
        ticket = new_id("call") if limits.concurrency and holds else ""
        words = (limits.rate, burst_of(limits.rate), limits.concurrency, ticket, LEASE_SECONDS)
        try:
            reply: Any = await _ENTER.run(self._link, *words, keys=self._keys.client(client), within=ANSWER_SECONDS)
        except LinkLost:
            return await self._alone.enter(client, limits, holds=holds)
        if isinstance(reply, ResponseError):
            log.warning("limits.refused", error=str(reply))
            return await self._alone.enter(client, limits, holds=holds)
        refused, wait, left = (part.decode("ascii") for part in reply)
        if ticket and not refused:
            self._held.setdefault(client, set()).add(ticket)
        given = "" if refused else ticket
        return Entry(ticket=given, client=client, refused=refused, retry_after=float(wait), remaining=float(left))

    def leave(self, entry: Entry) -> None:
        """The call has ended; the server is told in the background."""
        self._alone.leave(entry)
        held = self._held.get(entry.client)
        if not entry.ticket or held is None or entry.ticket not in held:
            return
        held.discard(entry.ticket)
        if not held:
            del self._held[entry.client]
        if self._background.started:
            command: Command = ("ZREM", self._keys.client(entry.client)[1], entry.ticket)
            self._background.spawn(self._tell(command), name="limits-leave")

    async def _tell(self, *commands: Command) -> None:
        try:
            await self._link.ask(*commands, within=ANSWER_SECONDS)
        except LinkLost:
            return  # the lease ends by itself

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            calls: list[tuple[Sequence[str], Sequence[str | int]]] = [
                ((self._keys.client(client)[1],), (round(LEASE_SECONDS), *sorted(tickets)))
                for client, tickets in self._held.items()
            ]
            try:
                if calls:
                    await _RENEW.run_many(self._link, calls, within=ANSWER_SECONDS)
            except LinkLost:
                continue
