"""Who may pass, and what went through: the credentials, counts and connections of each context."""

import asyncio
import hmac
import secrets
from collections.abc import Callable

from msgspec import Struct

from scrapeyard.engines.browser.port import Passage, PassageCount
from scrapeyard.engines.browser.proxy.peer import Peer
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.errors import FetchFailed

BOOKED_BYTES = 1024 * 1024
"""Bytes received after which they are written into the books at once."""


class Connection(Struct, eq=False):
    """One connection of a browser, with the one that it leads to."""

    browser: Peer
    task: "asyncio.Task[object]"
    upstream: Peer | None = None
    received: int = 0

    def close(self) -> None:
        """At once; its task ends."""
        self.task.cancel()

    @property
    def touched(self) -> float:
        """When bytes last came or went."""
        return max(peer.touched for peer in (self.browser, self.upstream) if peer is not None)


class OpenPassage:
    """Of one context."""

    def __init__(self, passage: Passage, wake: Callable[[], None]) -> None:
        """`wake` is called when much is unbooked."""
        self._wake = wake
        self.passage = passage
        self.user, self.password = secrets.token_urlsafe(9), secrets.token_urlsafe(24)
        self.connections: set[Connection] = set()
        self.unbooked = 0
        """Bytes received that are in no book yet."""
        self._begun = self._refused = self._received = self._sent = 0
        self._last_refusal = ""

    @property
    def proxy_class(self) -> str:
        """Of its exit; empty: none."""
        return self.passage.exit.proxy_class if self.passage.exit else ""

    @property
    def count(self) -> PassageCount:
        """What went through so far."""
        return PassageCount(
            connections=self._begun,
            refused=self._refused,
            received=self._received,
            sent=self._sent,
            last_refusal=self._last_refusal,
        )

    def admits(self, password: str) -> bool:
        """Whether it is the password."""
        return hmac.compare_digest(self.password.encode(), password.encode())

    def begin(self, connection: Connection, upstream: Peer) -> None:
        """A connection leads to a site from now on."""
        self._begun += 1
        connection.upstream = upstream

        def count(received: int, sent: int) -> None:
            self._received += received
            self._sent += sent
            self.unbooked += received
            connection.received += received
            if self.unbooked >= BOOKED_BYTES:
                self._wake()

        upstream.on_bytes = count

    def refuse(self, failure: FetchFailed) -> str:
        """Remember why one did not pass. Returns it in words."""
        self._refused += 1
        self._last_refusal = f"{failure.reason.value}: {failure.message}"
        return self._last_refusal

    async def book(self, budgets: Budgets) -> None:
        """Write what was received into the books. When a budget is used up, all connections are closed."""
        size, self.unbooked = self.unbooked, 0
        try:
            await budgets.flow(self.passage.caller, self.proxy_class, size=size)
        except FetchFailed as failure:
            for connection in self.connections:
                self.refuse(failure)
                connection.close()
