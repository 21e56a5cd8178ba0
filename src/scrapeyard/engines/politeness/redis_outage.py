"""What the log says when the shared gate is away."""

import time

from scrapeyard.redis.connection import Outage
from scrapeyard.telemetry.events import Log


class GateOutage(Outage):
    """As the queue's, in the gate's own words: what is lost is another thing."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self._gate_log = log
        self._away_since: float | None = None

    def down(self, link: object, error: BaseException, retry_seconds: float) -> None:  # noqa: ARG002  as the queue's
        """The gate has one link."""
        if self._away_since is None:
            self._away_since = time.monotonic()
            self._gate_log.warning("sites.away", error=str(error) or type(error).__name__)

    def up(self, link: object) -> None:  # noqa: ARG002  as the queue's
        """All workers share their limits again."""
        if self._away_since is not None:
            self._gate_log.info("sites.back", away_seconds=round(time.monotonic() - self._away_since, 2))
            self._away_since = None
