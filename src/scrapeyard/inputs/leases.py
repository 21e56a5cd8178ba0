"""One process reads a source at a time, and adds what it reads while it reads on."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from scrapeyard.errors import StoreUnavailable
from scrapeyard.inputs.mapper import Shaped
from scrapeyard.model.job import NewItem
from scrapeyard.store.ports.jobs import ITEM_BLOCK, ItemStore
from scrapeyard.store.ports.operations import LeaderStore
from scrapeyard.telemetry.events import get_log

log = get_log("intake")
LEASE_SECONDS = 15.0
RENEW_SECONDS = 4.0


class Lease:
    """`held` is False once the lease is lost; check it before writing."""

    def __init__(self, *, held: bool) -> None:
        self.held = held


class Leases:
    """Leases of one process. `holder` names it; `clock` gives Unix seconds.

    A holder that lost its lease, because it stalled or the store was away, may still write one block. That is harmless:
    each block is added once, whoever adds it.
    """

    def __init__(self, leaders: LeaderStore, holder: str, clock: Callable[[], float]) -> None:
        self._leaders = leaders
        self._holder = holder
        self._clock = clock
        self._roles: set[str] = set()

    @asynccontextmanager
    async def hold(self, job_id: str) -> AsyncIterator[Lease]:
        """Acquire the lease; not held if this or another process already reads the job. Raises StoreUnavailable."""
        role = f"reading {job_id}"
        if role in self._roles:
            yield Lease(held=False)
            return
        self._roles.add(role)  # check here first: the store knows this process by one name
        try:
            if await self._lead(role):
                async with self._kept(role) as lease:
                    yield lease
            else:
                yield Lease(held=False)
        finally:
            self._roles.discard(role)

    @asynccontextmanager
    async def _kept(self, role: str) -> AsyncIterator[Lease]:
        lease = Lease(held=True)
        renewing = asyncio.create_task(self._renew(role, lease), name="intake-lease")
        try:
            yield lease
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await self._resign(role)

    async def _lead(self, role: str) -> bool:
        now = self._clock()
        return await self._leaders.claim(role, self._holder, now, now + LEASE_SECONDS)

    async def _renew(self, role: str, lease: Lease) -> None:
        while lease.held:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                lease.held = await self._lead(role)
            except StoreUnavailable:
                continue  # the reader gets the same error and gives up by itself
        log.warning("intake.lease_lost", job=role.removeprefix("reading "))

    async def _resign(self, role: str) -> None:
        try:
            await self._leaders.resign(role, self._holder)
        except StoreUnavailable as error:
            log.warning("intake.lease_kept", job=role.removeprefix("reading "), error=error.message)


EARLY = "early"
"""The source of blocks that were added before the list was read whole."""
_EARLY_SECONDS = 1.0


class EarlyItems:
    """Adds the items of a source to its job while the source is still read, so that they begin at once.

    If it cannot add all of them, the file of the list is added as a whole afterwards, and so it is after a crash: items
    that are there already add nothing.
    """

    def __init__(self, items: ItemStore, job_id: str, lease: Lease, clock: Callable[[], float]) -> None:
        self._items = items
        self._job_id = job_id
        self._lease = lease
        self._clock = clock
        self._is_open = True
        self._held: list[NewItem] = []
        self._added_at = 0.0
        self.took_all = False
        """Whether every item was added, once all are read."""

    async def watch(self, shaped: AsyncIterator[Shaped]) -> AsyncIterator[Shaped]:
        """Pass on what is read, and add its items in blocks: the first at once, later ones when they are full or a
        second has passed."""
        async for some in shaped:
            self._held += some.items
            while len(self._held) >= ITEM_BLOCK or (self._held and self._clock() - self._added_at >= _EARLY_SECONDS):
                await self._add()
            yield some
        while self._held:
            await self._add()
        self.took_all = self._is_open

    async def _add(self) -> None:
        block, self._held = self._held[:ITEM_BLOCK], self._held[ITEM_BLOCK:]
        self._is_open = self._is_open and self._lease.held
        if self._is_open:
            now = self._added_at = self._clock()
            number = secrets.randbits(62)  # after a crash, blocks of another reading may be there
            self._is_open = await self._items.add(self._job_id, block, number, now, source=EARLY) is not None
