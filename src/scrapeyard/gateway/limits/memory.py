"""Limits of clients, counted in one process."""

import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from scrapeyard.gateway.limits.port import Entry, burst_of
from scrapeyard.model import new_id
from scrapeyard.model.identity import ClientLimits

_CLIENTS: Final = 10_000
BUSY_SECONDS: Final = 1.0
"""What a client is told to wait if all its places are taken: nobody knows when one is free."""


class _Count(Struct):
    tokens: float
    at: float
    held: set[str]


class MemoryLimiter:
    """A ClientLimiter for one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[str, _Count] = {}

    async def start(self) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Forget everything."""
        self._counts.clear()

    async def enter(self, client: str, limits: ClientLimits, *, holds: bool) -> Entry:
        """Count a call."""
        now, burst = self._clock(), burst_of(limits.rate)
        count = self._count(client, burst, now)
        count.tokens, count.at = min(burst, count.tokens + (now - count.at) * limits.rate), now
        if limits.concurrency and holds and len(count.held) >= limits.concurrency:
            return Entry(ticket="", client=client, refused="concurrency", retry_after=BUSY_SECONDS, remaining=0.0)
        if limits.rate and count.tokens < 1:
            wait = (1 - count.tokens) / limits.rate
            return Entry(ticket="", client=client, refused="rate", retry_after=wait, remaining=0.0)
        count.tokens -= 1 if limits.rate else 0
        ticket = new_id("call") if limits.concurrency and holds else ""
        if ticket:
            count.held.add(ticket)
        return Entry(ticket=ticket, client=client, refused="", retry_after=0.0, remaining=count.tokens)

    def leave(self, entry: Entry) -> None:
        """The call has ended."""
        if entry.ticket and (count := self._counts.get(entry.client)) is not None:
            count.held.discard(entry.ticket)

    def _count(self, client: str, burst: int, now: float) -> _Count:
        """Of the client that was not seen for longest, the count is forgotten when there are too many."""
        count = self._counts.pop(client, None) or _Count(tokens=burst, at=now, held=set())
        self._counts[client] = count
        if len(self._counts) > _CLIENTS:
            idle = next((name for name, each in self._counts.items() if not each.held), client)
            del self._counts[idle]
        return count
