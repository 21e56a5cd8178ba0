"""Keys as credentials: every gateway has all keys in memory, so a call costs one hash.

Changes are read from the store every half second: a key that is made or revoked anywhere, by the API or by a command,
is in force on every gateway within a second. While the store is away, the keys known last stay in force; a gateway that
has never read them refuses every call.
"""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace
from starlette.types import Scope

from scrapeyard.background import Background
from scrapeyard.errors import NotFound, Refusal, ScrapeyardError, StoreUnavailable
from scrapeyard.gateway.auth.credentials import unauthenticated
from scrapeyard.model import new_id
from scrapeyard.model.identity import PREFIX, ApiKey, Identity, Pepper, Role, is_secret, new_secret
from scrapeyard.store.ports.followed import FollowedTable
from scrapeyard.store.ports.keys import MAX_KEYS, ApiKeyStore
from scrapeyard.store.ports.operations import LeaderStore
from scrapeyard.telemetry.events import get_log

log = get_log("auth")
EVERY_SECONDS: Final = 0.5
USE_SECONDS: Final = 60.0
"""Between two writes of when keys were last used."""
FORGET_SECONDS: Final = 90 * 86_400.0
"""Keys that ended that long ago make room for new ones."""
FIRST: Final = "admin"
FIRST_SECONDS: Final = 60.0
"""Meanwhile no other gateway makes a first key."""
_Known = tuple[str, tuple[ApiKey, ...]]


class KeyRing:
    """The keys in force, and changes to them."""

    def __init__(self, store: ApiKeyStore, pepper: Pepper, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._pepper = pepper
        self._clock = clock
        self._known: _Known | None = None
        self._by_digest: dict[str, ApiKey] = {}
        self._by_id: dict[str, ApiKey] = {}
        self._identities: dict[str, Identity] = {}
        self._verified: dict[bytes, ApiKey] = {}
        """By a digest of the secret: those of valid keys alone, until a key changes."""
        self._used: dict[str, float] = {}
        self._background = Background()
        self._read_at = float("-inf")
        self._table = FollowedTable[_Known](
            "keys",
            EVERY_SECONDS,
            read=self._read,
            adopt=self._adopt,
            on_away=lambda error: log.warning("auth.keys_unknown", error=error.message),
        )

    async def start(self) -> None:
        """Read the keys, then follow them. May be called twice."""
        await self._table.start()
        if not self._background.started:
            self._background.start(self._write_use, name="key-use")

    async def stop(self) -> None:
        """Stop following, and write when keys were last used. May be called twice."""
        await self._table.stop()
        await self._background.stop()
        await self._flush()

    @property
    def in_use(self) -> bool:
        """Whether there is a key, or that is not known yet. A key that has ended counts: authentication does not
        switch itself off."""
        return self._known is None or bool(self._by_id)

    async def identify(self, token: str | None, _scope: Scope) -> Identity | None:
        """Who calls; None if it is not a key. Raises Refusal (401), or StoreUnavailable if no key is known yet."""
        if token is None or not token.startswith(PREFIX):
            return None
        shown = hashlib.sha256(token.encode()).digest()
        key = self._verified.get(shown)
        if key is None:
            key = self._verified[shown] = await self._verify(token)
        return self.checked(key)

    async def _verify(self, token: str) -> ApiKey:
        if not is_secret(token):
            raise unauthenticated("the key is not complete or mistyped: its checksum does not fit")
        digest = self._pepper.digest(token)
        key = self._by_digest.get(digest) or await self._newer(digest)
        if key is None or not hmac.compare_digest(key.digest, digest):
            raise unauthenticated("there is no such key")
        return key

    def checked(self, key: ApiKey) -> Identity:
        """The identity of a key that can be used now. Raises Refusal (401)."""
        now = self._clock()
        if fault := key.fault(now):
            raise unauthenticated(f"{fault}; its id is {key.id}")
        self._used[key.id] = now
        return self._identities[key.id]

    def fault(self, key_id: str) -> str:
        """Why a key cannot be used now; empty if it can."""
        key = self._by_id.get(key_id)
        return "the key is gone" if key is None else key.fault(self._clock())

    def get(self, key_id: str) -> ApiKey:
        """A key as last read. Raises NotFound."""
        key = self._by_id.get(key_id)
        if key is None:
            raise NotFound(f"no key {key_id}")
        return replace(key, last_used_at=self._used.get(key.id, key.last_used_at))

    async def all(self) -> list[ApiKey]:
        """Every key, the newest first."""
        await self._table.refresh()
        return [self.get(key_id) for key_id in sorted(self._by_id, reverse=True)]

    async def create(self, draft: ApiKey) -> tuple[ApiKey, str]:
        """A new key like the draft, and its secret. In force here on return. Raises Refusal (409)."""
        key, secret = self._made(draft)
        if not await self._store.add(key, key.created_at - FORGET_SECONDS):
            raise Refusal("conflict", 409, f"there are {MAX_KEYS} keys already, and none that ended long ago")
        await self._table.refresh()
        log.info("auth.key_made", key=key.id, name=key.name, client=key.client, role=key.role.value)
        return key, secret

    async def first(self, leaders: LeaderStore) -> tuple[ApiKey, str] | None:
        """Make an admin key where there is none; returns it and its secret. None if another gateway makes it now."""
        now = self._clock()
        if not await leaders.claim("first-key", new_id("gateway"), now, now + FIRST_SECONDS):
            return None
        draft = ApiKey(
            id="", name=FIRST, client=FIRST, role=Role.ADMIN, digest="", pepper_id="", created_at=now, changed_at=now
        )
        return await self.create(draft)

    async def rotate(self, key_id: str, overlap_seconds: float) -> tuple[ApiKey, str, ApiKey]:
        """A new key and secret in place of one, which ends after the overlap. Raises NotFound or Refusal (409)."""
        await self._table.refresh()
        old = self.get(key_id)
        key, secret = self._made(replace(old, expires_at=_moved(old, self._clock())))
        before = await self._store.rotate(key_id, key, key.created_at + overlap_seconds, key.created_at)
        if before is None:
            raise Refusal("conflict", 409, f"the key {key_id} was revoked or rotated before; make a new one")
        await self._table.refresh()
        log.info("auth.key_rotated", key=key_id, successor=key.id)
        return key, secret, before

    async def revoke(self, key_id: str) -> ApiKey:
        """End a key now. Raises NotFound."""
        key = await self._store.revoke(key_id, self._clock())
        await self._table.refresh()
        if key is None:
            raise NotFound(f"no key {key_id}")
        log.info("auth.key_revoked", key=key_id, name=key.name)
        return key

    def _made(self, draft: ApiKey) -> tuple[ApiKey, str]:
        secret, now = new_secret(), self._clock()
        made = replace(
            draft,
            id=new_id("key"),
            digest=self._pepper.digest(secret),
            pepper_id=self._pepper.id,
            created_at=now,
            changed_at=now,
            revoked_at=None,
            replaced_by="",
            last_used_at=None,
        )
        return made, secret

    async def _newer(self, digest: str) -> ApiKey | None:
        """A key that was made this moment. Strangers cannot make us read more often than we do anyway."""
        if asyncio.get_running_loop().time() - self._read_at >= EVERY_SECONDS:
            await self._table.refresh()
        if self._known is None:
            raise StoreUnavailable("the keys could not be read yet; try again in a moment")
        return self._by_digest.get(digest)

    async def _read(self) -> _Known:
        self._read_at = asyncio.get_running_loop().time()
        mark = await self._store.mark()
        if self._known is not None and self._known[0] == mark:
            return self._known
        return mark, await self._store.all()

    def _adopt(self, known: _Known) -> None:
        if known is self._known:
            return
        self._known, keys = known, known[1]
        self._by_id = {key.id: key for key in keys}
        self._by_digest = {key.digest: key for key in keys}
        self._identities = {key.id: key.identity for key in keys}
        self._verified = {}
        foreign = sum(key.pepper_id != self._pepper.id and not key.fault(self._clock()) for key in keys)
        if foreign:
            log.error("auth.pepper_differs", count=foreign)

    async def _write_use(self) -> None:
        while True:
            await asyncio.sleep(USE_SECONDS)
            await self._flush()

    async def _flush(self) -> None:
        used, self._used = self._used, {}
        if not used:
            return
        try:
            await self._store.note_use(used)
        except ScrapeyardError as error:
            log.warning("auth.use_lost", count=len(used), error=error.message)


def _moved(key: ApiKey, now: float) -> float | None:
    """When a successor ends: it lives as long as the key was meant to."""
    return None if key.expires_at is None else now + (key.expires_at - key.created_at)
