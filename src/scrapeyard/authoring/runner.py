"""What the author's tools need to run scrapers. The command line implements it."""

from pathlib import Path
from typing import Any, Protocol

from scrapeyard.engines.port import HttpEngine
from scrapeyard.model import Environment, Outcome, Run, Scraper


class Runner(Protocol):
    """Runs scrapers with the walls and limits of a worker."""

    def load(self, folder: Path) -> Scraper:
        """The scraper in a folder. Raises ScraperInvalid. Blocking."""

    async def install_packages(self, scraper: Scraper) -> Environment | None:
        """Install what it requires; None if that is nothing. Raises ScraperInvalid with the resolver's message, or
        SourceUnavailable."""

    async def load_script(self, scraper: Scraper) -> None:
        """Load the script in its sandbox without running it. Raises ScraperInvalid with the script's error."""

    def check(self, scraper: Scraper, value: dict[str, Any]) -> dict[str, Any]:
        """The input with its URLs spelled plainly. Raises InputInvalid when it does not fit."""

    async def run(
        self, scraper: Scraper, value: dict[str, Any], *, engine: HttpEngine | None = None
    ) -> tuple[Run, Outcome]:
        """One attempt. `engine` fetches for it; None for the runner's own, which reaches the web."""

    async def result(self, outcome: Outcome) -> bytes:
        """The result as JSON; `null` when there is none."""
