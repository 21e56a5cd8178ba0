"""Host names to addresses: kept for half a minute, asked once however many wait, checked by the guard."""

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from scrapeyard.engines.http.guard import Guard
from scrapeyard.engines.http.url import Address, Target
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import HttpSettings

Resolve = Callable[[str, int], Awaitable[list[Address]]]
"""Addresses of a name, in the order to try them. Raises OSError when there are none."""


async def system_resolve(host: str, port: int) -> list[Address]:
    """What the operating system says, in its order of preference."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(info[4][0]) for info in found))


class DnsCache:
    """A small cache in front of a resolver. Failures are not kept.

    A resolution outlives the caller that asked for it, so that one impatient caller does not spoil it for the others.
    """

    def __init__(self, resolve: Resolve, *, keep_seconds: float = 30.0, size: int = 4096) -> None:
        self._resolve = resolve
        self._keep_seconds = keep_seconds
        self._size = size
        self._known: OrderedDict[str, tuple[float, tuple[Address, ...]]] = OrderedDict()
        self._asking: dict[str, asyncio.Task[tuple[Address, ...]]] = {}

    def known(self, host: str) -> tuple[Address, ...]:
        """What was found lately; empty if nothing was."""
        until, known = self._known.get(host, (0.0, ()))
        return known if until > time.monotonic() else ()

    async def addresses(self, host: str, port: int) -> tuple[Address, ...]:
        """At least one address. Raises FetchFailed (fetch_dns)."""
        if known := self.known(host):
            return known
        task = self._asking.get(host)
        if task is None:
            task = self._asking[host] = asyncio.create_task(self._ask(host, port))
            task.add_done_callback(lambda done: self._asked(host, done))
        return await asyncio.shield(task)

    async def stop(self) -> None:
        """Give up what is being asked. May be called twice."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, host: str, port: int) -> tuple[Address, ...]:
        try:
            found = tuple(await self._resolve(host, port))
        except (OSError, UnicodeError, ValueError) as error:
            raise _no_such(host, str(error)) from None
        if not found:
            raise _no_such(host, "no addresses")
        return found

    def _asked(self, host: str, task: asyncio.Task[tuple[Address, ...]]) -> None:
        self._asking.pop(host, None)
        # Reading the exception also tells asyncio that a failure nobody waits for any more was seen.
        if task.cancelled() or task.exception() is not None:
            return
        self._known[host] = (time.monotonic() + self._keep_seconds, task.result())
        self._known.move_to_end(host)
        if len(self._known) > self._size:
            self._known.popitem(last=False)


class GuardedDns:
    """Resolves a target and asks the guard. Whoever connects uses the addresses that it returns, and no others."""

    def __init__(
        self, settings: HttpSettings, *, resolve: Resolve = system_resolve, own_port: int | None = None
    ) -> None:
        """`own_port` is the gateway's on this machine, which nobody reaches; None: there is none.

        Raises SettingsInvalid when an allowed host makes no sense.
        """
        self._guard = Guard(allow_private=settings.allow_private, allow_hosts=settings.allow_hosts, own_port=own_port)
        self._names = DnsCache(resolve)

    async def addresses(self, target: Target) -> tuple[Address, ...]:
        """At least one, and every one may be reached. Raises FetchFailed (fetch_private_address, fetch_dns)."""
        found = await self.unchecked(target)
        self._guard.check(target.host, found)
        self._guard.check_port(target.host, target.port, found)
        return found

    def known(self, target: Target) -> tuple[Address, ...] | None:
        """Addresses that have passed the guard already; None: ask for them."""
        literal = target.literal
        found = (literal,) if literal is not None else self._names.known(target.host)
        return found if found and self._guard.has_passed(target.host, target.port, found) else None

    async def unchecked(self, target: Target) -> tuple[Address, ...]:
        """For what the operator chose, such as a proxy. Raises FetchFailed (fetch_dns)."""
        literal = target.literal
        return (literal,) if literal is not None else await self._names.addresses(target.host, target.port)

    async def stop(self) -> None:
        """Give up what is being asked. May be called twice."""
        await self._names.stop()


def _no_such(host: str, cause: str) -> FetchFailed:
    message = f"the name {host} does not resolve; check its spelling and this machine's DNS"
    return FetchFailed(ExitReason.FETCH_DNS, message, host=host, cause=cause)
