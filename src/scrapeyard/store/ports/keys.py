"""Keys of callers.

Every method raises StoreUnavailable when the database does not answer; nothing is then half done. Times are Unix
seconds, given by the caller.
"""

from collections.abc import Mapping
from typing import Protocol

from scrapeyard.model.identity import ApiKey

MAX_KEYS = 10_000
"""Keys in one database. Every gateway has all of them in memory."""


class ApiKeyStore(Protocol):
    """Keys, as hashes."""

    async def add(self, key: ApiKey, ended_before: float) -> bool:
        """Write a new key. If there are MAX_KEYS, those that ended before that time are removed first; False, and
        nothing is written, if none did."""

    async def all(self) -> tuple[ApiKey, ...]:
        """Every key, ended ones included, the oldest first."""

    async def mark(self) -> str:
        """Another text after each change but those of `last_used_at`."""

    async def revoke(self, key_id: str, now: float) -> ApiKey | None:
        """End a key now. One that was revoked stays as it is. None if there is no such key."""

    async def rotate(self, key_id: str, successor: ApiKey, until: float, now: float) -> ApiKey | None:
        """Add a key in place of another, which ends at `until`, atomically. Returns the old one. None, and nothing is
        written, if there is no such key, or it was revoked or replaced."""

    async def note_use(self, used: Mapping[str, float]) -> None:
        """Write when keys were last used, unless a later time is known."""
