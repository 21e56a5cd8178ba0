"""A worker of its own lane inside a program of one's own: it takes only what `shop/*` asks for, and drains on SIGTERM.

    REDIS_URL=… DATABASE_URL=… python examples/worker/own_lane.py [PATTERN [SCRAPERS]]

`lanes.patterns` must be the same on every gateway and dispatcher.
"""

import asyncio
import signal
import sys

from scrapeyard.settings import load
from scrapeyard.telemetry.events import configure
from scrapeyard.wiring.platform import Platform


async def work(pattern: str, scrapers: str) -> None:
    """Serve until a signal, then let running work finish for `drain_seconds` and hand the rest back."""
    settings = load(
        {
            "lanes": {"patterns": [pattern]},
            "worker": {"takes": [pattern], "slots": 4, "drain_seconds": 20},
            "repository": {"scrapers": scrapers},
            "http": {"allow_private": True},
        }
    )
    configure(settings.log)
    platform = Platform(settings, ("worker",))
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await platform.start()
    try:
        await stopping.wait()
    finally:
        await platform.stop()


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    asyncio.run(work(given.get(1, "shop/*"), given.get(2, "examples/scrapers")))
