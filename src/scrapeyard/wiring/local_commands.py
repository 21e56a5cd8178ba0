"""Commands on the server's machine that work on the database itself: the first key is made before anybody can call, the
audit is verified without a server, and the master key is replaced while servers go on."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from scrapeyard.errors import BadRequest, SettingsInvalid
from scrapeyard.gateway.auth.keys import KeyRing
from scrapeyard.model.audit import AuditCheck, AuditFault, command_entry
from scrapeyard.sealing.masters import CommandMasters, FileMasters
from scrapeyard.sealing.port import Masters, WrappedKey
from scrapeyard.settings import Settings, load
from scrapeyard.store.ports.store import DurableStore
from scrapeyard.wiring.backends import make_masters, make_store
from scrapeyard.wiring.data_folder import make_pepper

_SAME = (
    "the data keys are wrapped with the current master key already; put a new key first (openssl rand -base64 32), "
    "keep the present one as an old one (secrets.old_master_keys, or the next line of secrets.master_key_file), "
    "restart the servers one by one, then come back"
)


async def rotate(settings: Settings) -> str:
    """Wrap every data key with a new master key; tells what was done.

    The file `master.key` in the data directory gets a new key by itself. It holds both keys until the database has
    changed, so that a process may start at any moment, also after a crash. Raises SettingsInvalid or BadRequest.
    """
    store = make_store(settings)
    await store.start()
    try:
        return await _rotate(store, make_masters(settings))
    except OSError as error:
        raise SettingsInvalid(f"secrets: {error.filename} cannot be written: {error.strerror}") from None
    finally:
        await store.stop()


async def _rotate(store: DurableStore, masters: Masters) -> str:
    kept = await store.data_keys.all()
    masters.prepare(kept)
    plain = [(key, masters.unwrap(key)) for key in kept]
    own = masters if isinstance(masters, FileMasters) and masters.is_own else None
    if own is not None:
        own.add()
    elif not isinstance(masters, CommandMasters) and all(key.master == masters.current for key in kept):
        raise BadRequest(_SAME)
    await store.data_keys.rewrap([_wrapped(key, value, masters) for key, value in plain])
    told = {"data_keys": len(kept), "master": masters.current}
    await store.audit.append([command_entry(time.time(), "rotate_master", "secrets", told)])
    if own is not None:
        own.drop_old()
    return f"{len(kept)} data key{'s' * (len(kept) != 1)} wrapped with master key {masters.current}"


def _wrapped(key: WrappedKey, value: bytes, masters: Masters) -> WrappedKey:
    wrapped = masters.wrap(value)
    return WrappedKey(number=key.number, wrapped=wrapped, master=masters.current, created_at=key.created_at)


async def check_audit(expected: tuple[int, str] | None = None) -> AuditCheck:
    """Verify the audit in the database of the settings. `expected` is a number and the hash that this row had."""
    store = make_store(load())
    await store.start()
    try:
        check = await store.audit.verify()
        if expected is None or check.fault is not None:
            return check
        number, known = expected
        found = await store.audit.hash_of(number)
        if number < check.first or found == known:
            return check
        reason = "the row is missing" if found is None else "the row has another hash than it had"
        return replace(check, fault=AuditFault(number=number, reason=reason))
    finally:
        await store.stop()


class LocalKeys:
    """The keys of one database. What a command changes stands in the audit, as `local:USER`."""

    def __init__(self, ring: KeyRing, store: DurableStore) -> None:
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
