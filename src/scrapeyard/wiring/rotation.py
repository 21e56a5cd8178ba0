"""Replaces the master key: wraps the data keys anew, while servers go on. What is sealed is not touched."""

import time

from scrapeyard.errors import BadRequest, SettingsInvalid
from scrapeyard.model.audit import command_entry
from scrapeyard.sealing.masters import CommandMasters, FileMasters
from scrapeyard.sealing.port import Masters, WrappedKey
from scrapeyard.settings import Settings
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.backends import make_store
from scrapeyard.wiring.masters import make_masters

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


async def _rotate(store: SqlStore, masters: Masters) -> str:
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
