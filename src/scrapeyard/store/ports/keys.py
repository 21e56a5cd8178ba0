"""Keys of callers, and secrets that operators grant to scrapers.

Every method raises StoreUnavailable when the database does not answer; nothing is then half done. Times are Unix
seconds, given by the caller.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

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


class StoredSecret(Struct, frozen=True, kw_only=True):
    """A secret in clear; the database has it sealed. Its `repr` hides the value."""

    scrapers: str
    """`site/task`, or `site/*`."""
    name: str
    value: str
    changed_at: float

    @property
    def place(self) -> str:
        """What its seal is bound to."""
        return f"scraper_secrets/{self.scrapers}/{self.name}"

    def __repr__(self) -> str:
        return f"StoredSecret(scrapers={self.scrapers!r}, name={self.name!r}, value=***)"


class ScraperSecretStore(Protocol):
    """The secrets of scrapers, sealed at rest."""

    async def all(self) -> tuple[StoredSecret, ...]:
        """Every secret, in order. One that cannot be opened is left out, and logged."""

    async def put(self, secret: StoredSecret) -> bool:
        """Write a secret. True if it is new, False if it replaces one."""

    async def remove(self, scrapers: str, name: str) -> bool:
        """Remove a secret. False if there was none."""
