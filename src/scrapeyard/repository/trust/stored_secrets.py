"""Secrets that operators keep in the store, brought into force in a worker."""

import asyncio
import time
from collections.abc import Sequence

from scrapeyard.model import Scraper
from scrapeyard.repository.trust.secrets import Secrets
from scrapeyard.store.ports.followed import FollowedTable
from scrapeyard.store.ports.keys import ScraperSecretStore, StoredSecret
from scrapeyard.telemetry.events import get_log

log = get_log("secrets")
EVERY_SECONDS = 2.0
"""How long a changed or removed secret may still be given to runs. A new one is found by the first run that needs
it."""


class StoredSecrets:
    """Keeps `secrets` up to date. While the store is away, what was last known stays in force."""

    def __init__(self, store: ScraperSecretStore, secrets: Secrets) -> None:
        self._secrets = secrets
        self._looked_at = 0.0
        self._looking = asyncio.Lock()
        self._table = FollowedTable[Sequence[StoredSecret]](
            "scraper-secrets",
            EVERY_SECONDS,
            read=store.all,
            adopt=self._adopt,
            on_away=lambda error: log.warning("secrets.unknown", error=error.message),
        )

    async def start(self) -> None:
        """Check those of the file, read those of the store, then follow. May be called twice. Raises
        SettingsInvalid."""
        self._secrets.check()
        await self._table.start()

    async def stop(self) -> None:
        """Stop following. May be called twice."""
        await self._table.stop()

    async def find(self, scraper: Scraper) -> None:
        """Look again, at most once a second, if the scraper names a secret that is not known."""
        async with self._looking:
            if self._secrets.lacks(scraper) and time.monotonic() - self._looked_at >= 1:
                await self._table.refresh()
                self._looked_at = time.monotonic()

    def _adopt(self, kept: Sequence[StoredSecret]) -> None:
        grants: dict[str, dict[str, str]] = {}
        for secret in kept:
            grants.setdefault(secret.scrapers, {})[secret.name] = secret.value
        self._secrets.adopt(grants)
