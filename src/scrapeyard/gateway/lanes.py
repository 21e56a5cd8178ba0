"""Which lanes a caller may name."""

import asyncio
import time

from scrapeyard.errors import BadRequest
from scrapeyard.model import Scraper
from scrapeyard.store.port import WorkerStore

LOOK_SECONDS = 1.0
DEFAULT = "default"


class Lanes:
    """Lanes that a known worker takes. Others are refused: a run there would wait for ever, and names have no end."""

    def __init__(self, store: WorkerStore, remember_seconds: float) -> None:
        self._store = store
        self._remember = remember_seconds
        self._known: frozenset[str] = frozenset()
        self._looked_at = float("-inf")

    async def choose(self, asked: str | None, scraper: Scraper) -> str:
        """The lane for a call. Raises BadRequest when no worker of the last while takes the one asked for."""
        if asked in (None, scraper.lane, DEFAULT):
            return asked or scraper.lane
        if asked not in self._known:
            await self._look()
        if asked not in self._known:
            raise BadRequest(f"no worker takes lane {asked}; GET /api/workers shows which lanes are taken")
        return asked

    async def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        workers = await self._store.workers(time.time() - self._remember)
        self._known = frozenset(lane for worker in workers for lane in worker.lanes)
