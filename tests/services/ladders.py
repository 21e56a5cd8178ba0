"""`builtin/extract` with everything around it but the web: real patterns, a real store, a scripted model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from scrapeyard.builtin.extraction.book import PatternBook
from scrapeyard.builtin.reading.thread import ThreadExtractor
from scrapeyard.builtin.services import Services
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.cache.disk import DiskPages
from scrapeyard.engines.ledger import Ledger, OwnLedgers
from scrapeyard.engines.models.engine import Models
from scrapeyard.engines.models.port import ModelFailed
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.model import BudgetLimits, FetchPolicy
from scrapeyard.settings import AiSettings, BudgetSettings, Settings
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.builtins import make_ladder
from scrapeyard.worker.attempts.drift import DriftWatch


class LadderStand:
    """Calls the built-in as an attempt does."""

    def __init__(self, store: SqlStore, book: PatternBook, run: Any, models: Models, drift: DriftWatch) -> None:
        self.store = store
        self.book = book
        self.models = models
        self.drift = drift
        self._run = run
        self.caller = Caller(ledger=Ledger())

    def budget(self, limits: BudgetLimits) -> None:
        """From now on."""
        self.caller = Caller(policy=FetchPolicy(budget=limits), ledger=self.caller.ledger)

    async def extract(self, client: str = "", **given: Any) -> dict[str, Any]:
        """The result. Raises what the built-in raises."""
        services = Services(
            fetch=_no_web, ask=lambda question: self.models.ask(question, self.caller), room=self._room, client=client
        )
        found: dict[str, Any] = await self._run(services, given)
        return found

    def _room(self, provider: str, model: str) -> int:
        try:
            return self.models.room(provider, model)
        except ModelFailed:
            return 0


async def _no_web(_request: FetchRequest) -> FetchResponse:
    raise AssertionError("nothing is fetched here")


@asynccontextmanager
async def open_ladder(folder: Path, url: str = "", **settings: Any) -> AsyncIterator[LadderStand]:
    """With the model at `url`; empty: without one."""
    provider = {"name": "main", "url": url, "model": "m1", "input_price": 1.0, "output_price": 4.0}
    ai = AiSettings(providers=(provider,) if url else (), **settings)
    store = SqlStore(f"sqlite:///{folder}/ladder.db", temporary=True)
    pages = DiskPages(folder / "pages", limit_bytes=2**26, max_page_bytes=2**20)
    await store.start()
    await pages.start()
    models = Models(ai, Budgets(BudgetSettings(), OwnLedgers()), pages)
    drift = DriftWatch(store.drift)
    book, run = make_ladder(ThreadExtractor(), Settings(ai=ai), store.patterns, drift)
    try:
        yield LadderStand(store, book, run, models, drift)
    finally:
        await book.stop()
        await models.stop()
        await pages.stop()
        await store.stop()
