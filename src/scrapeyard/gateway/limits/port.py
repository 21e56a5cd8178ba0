"""How often a client may call, and how many of its calls may run at once, counted by all gateways together."""

import math
from typing import Literal, Protocol

from msgspec import Struct

from scrapeyard.model.identity import ClientLimits


class Entry(Struct, frozen=True, kw_only=True):
    """The answer to a call that wants to enter."""

    ticket: str
    """To leave with; empty if nothing is held."""
    client: str
    refused: Literal["", "rate", "concurrency"]
    retry_after: float
    """Seconds after which a refused call may come again."""
    remaining: float
    """Calls that may come at once now; 0 or more."""


class ClientLimiter(Protocol):
    """Counts calls of clients."""

    async def start(self) -> None:
        """Ready to count. May be called twice."""

    async def stop(self) -> None:
        """Let go of everything. May be called twice."""

    async def enter(self, client: str, limits: ClientLimits, *, holds: bool) -> Entry:
        """Count a call. One that `holds` counts as running until it leaves. A refused call is not counted. Never
        raises: if the shared counters are away, this gateway counts alone."""

    def leave(self, entry: Entry) -> None:
        """The call has ended. Never waits."""


def burst_of(rate: float) -> int:
    """Calls that may come at once after a rest: those of a second, at least one."""
    return max(1, math.floor(rate))


def window_of(rate: float) -> int:
    """Seconds in which `burst_of(rate)` calls are allowed."""
    return max(1, math.ceil(burst_of(rate) / rate))
