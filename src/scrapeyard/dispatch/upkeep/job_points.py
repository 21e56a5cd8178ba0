"""Notes how running jobs stand, every few seconds, for their time series."""

from collections.abc import Callable

from scrapeyard.store.ports.jobs import PointStore

EVERY_SECONDS = 5.0
THIN_SECONDS = 60.0


class JobPoints:
    """Writes points, and removes some of those of long jobs now and then."""

    name = "job_points"
    waits_after_outage = False

    def __init__(self, points: PointStore, clock: Callable[[], float]) -> None:
        self._points = points
        self._clock = clock
        self._next = 0.0
        self._thin_at = 0.0

    async def run_once(self) -> None:
        """One round; does nothing while it is not time."""
        now = self._clock()
        if now < self._next:
            return
        await self._points.sample(now)
        if now >= self._thin_at:
            await self._points.thin(now)
            self._thin_at = now + THIN_SECONDS
        self._next = now + EVERY_SECONDS
