"""What a run needs before its child can start: its config with secrets in place, and its packages."""

import asyncio
import time
from typing import Any

from msgspec import Struct

from scrapeyard.errors import Overloaded
from scrapeyard.model import Environment, Scraper
from scrapeyard.repository.environments.environments import Environments
from scrapeyard.repository.trust.secrets import Secrets
from scrapeyard.worker.slots import Seat


class Prepared(Struct, frozen=True, kw_only=True):
    """Ready to run."""

    scraper: Scraper
    config: dict[str, Any]
    hidden: tuple[str, ...]
    """Secrets that must not be told in logs and errors."""
    environment: Environment | None
    environment_ms: float


class Preparer:
    """Serves every run of a worker."""

    def __init__(self, environments: Environments, secrets: Secrets) -> None:
        self._environments = environments
        self._secrets = secrets

    async def prepare(self, scraper: Scraper, seat: Seat | None) -> Prepared:
        """With a `seat`, a run that must wait for its packages leaves its slot to others.

        Raises ScraperInvalid, or Overloaded when too many runs wait, or this one has waited too long.
        """
        config, hidden = self._secrets.fill(scraper), self._secrets.named_by(scraper)
        began = time.perf_counter()
        environment = self._environments.at_hand(scraper)
        if environment is None and self._environments.requires(scraper):
            environment = await self._wait(scraper, seat)
        return Prepared(
            scraper=scraper,
            config=config,
            hidden=hidden,
            environment=environment,
            environment_ms=(time.perf_counter() - began) * 1000,
        )

    async def _wait(self, scraper: Scraper, seat: Seat | None) -> Environment | None:
        if seat is None:
            return await self._built(scraper)
        async with seat.left():
            return await self._built(scraper)

    async def _built(self, scraper: Scraper) -> Environment | None:
        try:
            async with asyncio.timeout(self._environments.patience_seconds):
                return await self._environments.ready(scraper)
        except TimeoutError:
            raise Overloaded(
                f"the packages of {scraper.ref} are not installed yet: others are built before them", retry_after=10
            ) from None
