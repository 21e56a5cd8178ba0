"""Secrets that operators grant to scrapers.

Every method raises StoreUnavailable when the database does not answer; nothing is then half done.
"""

from typing import Protocol

from msgspec import Struct


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
