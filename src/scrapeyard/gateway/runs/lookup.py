"""Finding a run, though its row may be a moment behind."""

import asyncio

from scrapeyard.errors import NotFound
from scrapeyard.gateway.runs.waiting import Waiters
from scrapeyard.model import Run
from scrapeyard.store.ports.runs import RunStore
from scrapeyard.store.recorder import Recorder

BEHIND_SECONDS = 1.0
LOOK_SECONDS = 0.02


class Lookup:
    """Reads runs so that a caller finds what this gateway has already told it, for up to BEHIND_SECONDS after."""

    def __init__(self, store: RunStore, recorder: Recorder, waiters: Waiters) -> None:
        self._store = store
        self._recorder = recorder
        self._waiters = waiters

    async def get(self, run_id: str) -> Run:
        """The whole run. Raises NotFound."""
        run = await self._store.get(run_id)
        if run is None and self._recorder.pending:
            await self._recorder.flush()
            run = await self._store.get(run_id)
        if (run is None or not run.status.is_final) and self._waiters.ended_lately(run_id):
            run = await self._ended(run_id, run)
        if run is None:
            raise NotFound(f"no run {run_id}")
        return run

    async def _ended(self, run_id: str, run: Run | None) -> Run | None:
        for _ in range(int(BEHIND_SECONDS / LOOK_SECONDS)):
            if run is not None and run.status.is_final:
                break
            await asyncio.sleep(LOOK_SECONDS)
            run = await self._store.get(run_id)
        return run
