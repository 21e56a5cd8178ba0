"""Reports each outage of a server once when it begins and once when it ends, and spreads the tries between."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0


def pauses() -> Iterator[float]:
    """Seconds between tries: 0.05 doubling to 2, each cut by up to half so that many clients do not come at once."""
    longest = FIRST_PAUSE_SECONDS
    while True:
        yield round(longest * random.uniform(0.5, 1.0), 3)  # noqa: S311 - spreads load, hides nothing
        longest = min(longest * 2, LONGEST_PAUSE_SECONDS)


class Outage:
    """Outages of one or more links. One begins when the first link is lost and ends when all of them are back.

    `away` gets the error and the seconds until the next try. `back` gets the seconds that the outage lasted. Each logs
    its own event with its own fields. With `ends_on_stop` an outage also ends, without a report, when its last lost
    link is stopped; otherwise it goes on when the link starts again.
    """

    def __init__(
        self, away: Callable[[str, float], object], back: Callable[[float], object], *, ends_on_stop: bool = False
    ) -> None:
        self._away = away
        self._back = back
        self._ends_on_stop = ends_on_stop
        self._lost: set[object] = set()
        self._since: float | None = None
        self._someone_back = asyncio.Event()

    def down(self, link: object, reason: str, retry_seconds: float) -> None:
        """A link was lost, or could not be made."""
        self._lost.add(link)
        if self._since is None:
            self._since = time.monotonic()
            self._away(reason, retry_seconds)

    def up(self, link: object) -> None:
        """A link was made. The other links try at once instead of waiting for their time."""
        self._someone_back.set()
        self._someone_back = asyncio.Event()
        self._lost.discard(link)
        if self._since is not None and not self._lost:
            since, self._since = self._since, None
            self._back(round(time.monotonic() - since, 2))

    def forget(self, link: object) -> None:
        """A link was stopped."""
        self._lost.discard(link)
        if self._ends_on_stop and not self._lost:
            self._since = None

    async def pause(self, seconds: float) -> None:
        """Wait for this long, or until another link was made."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._someone_back.wait()
