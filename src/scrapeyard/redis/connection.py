"""Getting at a Redis server: connections by URL, and what is said in the log when it is away."""

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.exceptions import RedisError

from scrapeyard.errors import SettingsInvalid
from scrapeyard.telemetry.events import Log

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0
_OF_A_POOL = ("max_connections", "timeout")


class Dialer:
    """Makes connections to one URL. Raises SettingsInvalid, without the URL's password, when it cannot be used."""

    def __init__(self, url: str) -> None:
        try:
            options: dict[str, Any] = dict(parse_url(url))
            self._class: type[AbstractConnection] = options.pop("connection_class", Connection)
            for name in _OF_A_POOL:
                options.pop(name, None)
            self._options = options | {"protocol": 2, "socket_timeout": None, "driver_info": None}
            self()
        except (ValueError, TypeError, RedisError):
            # "from None" and no word of the URL: the error quotes parts of it, the password among them
            raise SettingsInvalid(
                "redis_url: write redis://user:password@host:port/db (rediss:// for TLS, unix:// for a socket) and "
                "percent-encode special characters in the password"
            ) from None

    def __call__(self) -> AbstractConnection:
        """A connection that is not yet open."""
        return self._class(**self._options)


class Outage:
    """Tells the log once when the first of the links is lost, and once when all of them are back."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lost: set[object] = set()
        self._since = 0.0
        self._someone_back = asyncio.Event()

    def down(self, link: object, error: BaseException, retry_seconds: float) -> None:
        """A link was lost, or could not be made."""
        if not self._lost:
            self._since = time.monotonic()
            self._log.warning("queue.away", error=str(error) or type(error).__name__, retry_seconds=retry_seconds)
        self._lost.add(link)

    def up(self, link: object) -> None:
        """A link was made; the others try at once instead of waiting for their time."""
        self._someone_back.set()
        self._someone_back = asyncio.Event()
        if link in self._lost:
            self._lost.remove(link)
            if not self._lost:
                self._log.info("queue.back", away_seconds=round(time.monotonic() - self._since, 2))

    def forget(self, link: object) -> None:
        """Nobody wants this link any more."""
        self._lost.discard(link)

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until another link was made."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._someone_back.wait()


def pauses() -> Iterator[float]:
    """Seconds between tries: 0.05 doubling to 2, each cut by up to half so that many clients do not come at once."""
    longest = FIRST_PAUSE_SECONDS
    while True:
        yield round(longest * random.uniform(0.5, 1.0), 3)  # noqa: S311 - spreads load, hides nothing
        longest = min(longest * 2, LONGEST_PAUSE_SECONDS)
