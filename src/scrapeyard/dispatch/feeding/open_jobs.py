"""Whether there is any job to look after. While there is none, one query a second stands for those of all tasks that
look after jobs."""

import asyncio
import time
from typing import Final

from scrapeyard.store.ports.jobs import JobStore

FRESH_SECONDS: Final = 0.9
"""How long an answer counts. Less than a round, so that each round asks anew."""


class OpenJobs:
    """Remembers the last answer of the store for a moment."""

    def __init__(self, jobs: JobStore) -> None:
        self._jobs = jobs
        self._asking = asyncio.Lock()
        self._known = True
        self._until = 0.0

    def look_again(self) -> None:
        """A job may have come: the next `any` asks the store."""
        self._until = 0.0

    async def any(self) -> bool:
        """Whether a job is open, up to FRESH_SECONDS ago. Raises StoreUnavailable."""
        async with self._asking:
            if time.monotonic() >= self._until:
                self._until = time.monotonic() + FRESH_SECONDS
                try:
                    self._known = await self._jobs.any_open()
                except BaseException:
                    self._until = 0.0
                    raise
            return self._known
