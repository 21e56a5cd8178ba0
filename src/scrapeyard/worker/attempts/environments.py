"""What a run needs before its child can start: its config with secrets filled in, and its installed packages."""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.background import Background
from scrapeyard.errors import Overloaded, ScrapeyardError
from scrapeyard.model import Environment, EnvironmentState, EnvironmentStatus, Scraper
from scrapeyard.repository.environments.environments import Environments
from scrapeyard.repository.port import Catalogue
from scrapeyard.repository.trust.secrets import Secrets
from scrapeyard.repository.trust.stored_secrets import StoredSecrets
from scrapeyard.telemetry.events import get_log
from scrapeyard.worker.attempts.slots import SlotLease


class Prepared(Struct, frozen=True, kw_only=True):
    """Ready to run."""

    scraper: Scraper
    config: dict[str, Any]
    hidden: tuple[str, ...]
    """Secret values that must not appear in logs, errors and results."""
    environment: Environment | None
    environment_ms: float


class Preparer:
    """Serves every run of a worker."""

    def __init__(self, environments: Environments, secrets: Secrets, stored: StoredSecrets | None = None) -> None:
        """`stored` keeps `secrets` up to date with the store; None if there are those of the file alone."""
        self._environments = environments
        self._secrets = secrets
        self._stored = stored

    async def prepare(self, scraper: Scraper, seat: SlotLease | None) -> Prepared:
        """Prepare a run. With a `seat`, a run that must wait for its packages releases its slot.

        Raises ScraperInvalid, SourceUnavailable, or Overloaded if too many runs wait or this one has waited too long.
        """
        if self._stored is not None and self._secrets.lacks(scraper):
            await self._stored.find(scraper)
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

    async def _wait(self, scraper: Scraper, seat: SlotLease | None) -> Environment | None:
        if seat is None:
            return await self._built(scraper)
        async with seat.released():
            return await self._built(scraper)

    async def _built(self, scraper: Scraper) -> Environment | None:
        try:
            async with asyncio.timeout(self._environments.patience_seconds):
                return await self._environments.ready(scraper)
        except TimeoutError:
            raise Overloaded(
                f"the packages of {scraper.ref} are not installed yet: others are built before them", retry_after=10
            ) from None


log = get_log("worker")
_LOOK_SECONDS = 1.0
_TOLD = 300
"""Maximum states in a heartbeat."""
_WORDS = 300


class EnvironmentPrebuilder:
    """Polls the catalogue every second and builds environments of default versions ahead; those of older versions are
    built when they are called."""

    def __init__(self, catalogue: Catalogue, environments: Environments) -> None:
        self._catalogue = catalogue
        self._environments = environments
        self._known: list[Scraper] = []
        self._background = Background()

    async def start(self) -> None:
        """May be called twice."""
        self._background.start(self._work, name="environment-prebuilder")

    async def stop(self) -> None:
        """May be called twice."""
        await self._background.stop()

    def look(self) -> None:
        """Check now, because something has changed."""
        listed = [each.scraper for each in self._catalogue.listings() if each.scraper and each.scraper.requirements]
        current = list(self._current({scraper.ref.id for scraper in listed}))
        chosen = {scraper.ref for scraper in current}
        older = [scraper for scraper in reversed(listed) if scraper.ref not in chosen]
        self._known = [*current, *older][:_TOLD]
        for scraper in current:
            self._environments.want(scraper)

    def states(self) -> dict[str, EnvironmentState]:
        """Environment states of scrapers with requirements, default versions first, at most 300."""
        return {str(scraper.ref): _short(self._environments.state(scraper)) for scraper in self._known}

    def _current(self, ids: Iterable[str]) -> Iterable[Scraper]:
        for scraper_id in sorted(ids):
            try:
                scraper = self._catalogue.resolve(scraper_id)
            except ScrapeyardError:  # only prereleases, or the newest is invalid: built when it is called
                continue
            if scraper.requirements:
                yield scraper

    async def _work(self) -> None:
        while True:
            try:
                self.look()
            except Exception as error:  # calls still work without this; each builds what it needs
                log.error("worker.foresight_broken", error=repr(error), exc_info=error)
            await asyncio.sleep(_LOOK_SECONDS)


def _short(state: EnvironmentState) -> EnvironmentState:
    if state.status is not EnvironmentStatus.FAILED:
        return state
    return replace(state, problem=state.problem[:_WORDS])
