"""A lease on one job's reading: whoever holds it reads, and another takes over when the holder is gone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from scrapeyard.errors import StoreUnavailable
from scrapeyard.store.ports.runs import LeaderStore
from scrapeyard.telemetry.events import get_log

log = get_log("intake")
LEASE_SECONDS = 15.0
RENEW_SECONDS = 4.0


class Lease:
    """`held` tells whether it still is; a holder looks at it before it writes."""

    def __init__(self, *, held: bool) -> None:
        self.held = held


class Leases:
    """Leases of one process. `holder` names it; `clock` gives Unix seconds.

    A holder that lost its lease, since it stood still or the store was away, may write a last block beside the new one.
    That is harmless: a block is added once, whoever adds it.
    """

    def __init__(self, store: LeaderStore, holder: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._holder = holder
        self._clock = clock
        self._roles: set[str] = set()

    @asynccontextmanager
    async def hold(self, job_id: str) -> AsyncIterator[Lease]:
        """Not held when somebody else reads this job, in this process or another. Raises StoreUnavailable."""
        role = f"reading {job_id}"
        if role in self._roles:
            yield Lease(held=False)
            return
        self._roles.add(role)  # before the store is asked, which knows this process by one name
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
        return await self._store.lead(role, self._holder, now, now + LEASE_SECONDS)

    async def _renew(self, role: str, lease: Lease) -> None:
        while lease.held:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                lease.held = await self._lead(role)
            except StoreUnavailable:
                continue  # the reader meets the same, and gives up by itself
        log.warning("intake.lease_lost", job=role.removeprefix("reading "))

    async def _resign(self, role: str) -> None:
        try:
            await self._store.resign(role, self._holder)
        except StoreUnavailable as error:
            log.warning("intake.lease_kept", job=role.removeprefix("reading "), error=error.message)
