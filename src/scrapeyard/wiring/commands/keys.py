"""Keys in the database itself, for commands on the server's machine: the first key is made before anybody can call."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scrapeyard.gateway.auth.keys import KeyRing
from scrapeyard.model.audit import command_entry
from scrapeyard.settings import Settings
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.backends import make_store
from scrapeyard.wiring.data_folder import make_pepper


class LocalKeys:
    """The keys of one database. What a command changes stands in the audit, without a client and an address."""

    def __init__(self, ring: KeyRing, store: SqlStore) -> None:
        self.ring = ring
        self._store = store

    async def note(self, action: str, key_id: str, told: object) -> None:
        """Write a change to the audit."""
        entry = command_entry(time.time(), action, f"/api/keys/{key_id}", told)
        await self._store.audit.append([entry])


@asynccontextmanager
async def local_keys(settings: Settings) -> AsyncIterator[LocalKeys]:
    """Open the database that the settings name. A server that uses it sees a change within a second."""
    store = make_store(settings)
    await store.start()
    try:
        yield LocalKeys(KeyRing(store.api_keys, make_pepper(settings)), store)
    finally:
        await store.stop()
