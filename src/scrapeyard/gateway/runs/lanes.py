"""Which lanes a run may wait in."""

import asyncio
import time

from scrapeyard.errors import BadRequest
from scrapeyard.model import Scraper
from scrapeyard.store.ports.runs import WorkerStore

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
        """The lane a call asks for, or the scraper's own. Raises BadRequest when no worker has taken it lately."""
        lane = asked or scraper.lane
        if lane == DEFAULT or lane in self._known:
            return lane
        await self._look()
        if lane not in self._known:
            raise BadRequest(f"no worker takes lane {lane}; GET /api/workers shows which lanes are taken")
        return lane

    async def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        workers = await self._store.workers(time.time() - self._remember)
        self._known = frozenset(lane for worker in workers for lane in worker.lanes)
