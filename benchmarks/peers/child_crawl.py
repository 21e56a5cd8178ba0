"""Scrapeyard from inside: one script in one sandboxed child, whose every `ctx.fetch` goes through the worker."""

import tempfile
import time
from pathlib import Path

import uvloop

from benchmarks.peers.crawl import Clock, Errand, errand
from scrapeyard.cli.runs.local import open_yard
from scrapeyard.settings import HttpSettings, LimitSettings, LogSettings, Settings
from scrapeyard.telemetry.events import configure

SCRIPT = """
import asyncio


async def run(ctx, url: str, pages: int, concurrency: int) -> int:
    numbers, done = iter(range(pages)), 0

    async def one():
        nonlocal done
        for number in numbers:
            page = await ctx.fetch(f"{url}?n={number}")
            done += page.status == 200

    await asyncio.gather(*(one() for _ in range(concurrency)))
    return done
"""
MANIFEST = """
id = "bench/crawl"
version = "1.0.0"
[limits]
wall_seconds = 300
cpu_seconds = 300
fetches = 1000000
"""


async def main(work: Errand) -> None:
    """One run; the time is the run's own. Also the microseconds of processor time of a page: in the worker, in its
    event loop, and in the child."""
    configure(LogSettings(level="error"))
    settings = Settings(http=HttpSettings(allow_private=True), limits=LimitSettings(fetches=1_000_000))
    with tempfile.TemporaryDirectory(prefix="scrapeyard-bench-") as folder:
        Path(folder, "scraper.py").write_text(SCRIPT, "utf-8")
        Path(folder, "scraper.toml").write_text(MANIFEST, "utf-8")
        Path(folder).chmod(0o755)
        async with open_yard(settings) as yard:
            scraper = yard.load(Path(folder))
            given = {"url": work.url, "pages": work.pages, "concurrency": work.concurrency}
            await yard.engine()
            clock, began, in_loop = Clock(), time.process_time(), time.thread_time()
            _, outcome = await yard.run(scraper, given)
            if outcome.error is not None:
                raise SystemExit(outcome.error.message)
            costs = {
                "us": (time.process_time() - began) / work.pages * 1e6,
                "loop_us": (time.thread_time() - in_loop) / work.pages * 1e6,
                "child_us": outcome.usage.cpu_ms / work.pages * 1e3,
            }
            clock.tell(int(await yard.result(outcome)), seconds=outcome.usage.wall_ms / 1000, **costs)


if __name__ == "__main__":
    uvloop.run(main(errand()))
