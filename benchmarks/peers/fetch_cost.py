"""What one fetch costs: wreq alone, the innermost stage and the whole engine in turns, in one process.

Processor time and calls say more than pages a second where the cores are shared: other programs slow all three alike.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

import uvloop
from wreq import Client

from benchmarks.peers.crawl import Errand, errand, numbered
from benchmarks.peers.engine_crawl import opened
from benchmarks.quantiles import median
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.settings import HttpSettings

_ROUNDS = 7
_COUNTED = 200
"""Fetches whose calls are counted."""

One = Callable[[int], Awaitable[object]]


async def main(work: Errand) -> None:
    """Print microseconds and calls for each, by name."""
    alone, client, caller = Client(no_proxy=True), WreqEngine(HttpSettings(allow_private=True)), Caller()

    async def bare(number: int) -> None:
        response = await alone.get(numbered(work.url, number))
        await response.bytes()

    async with opened() as engine:
        ways: dict[str, One] = {
            "bare": bare,
            "client": lambda number: client.fetch(FetchRequest(url=numbered(work.url, number)), caller),
            "engine": lambda number: engine.fetch(FetchRequest(url=numbered(work.url, number)), caller),
        }
        taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
        for _ in range(_ROUNDS + 1):
            for name, one in ways.items():
                taken[name].append(await _timed(one, work.pages // _ROUNDS, work.concurrency))
        told: dict[str, float] = {"pages": work.pages}
        for name, one in ways.items():
            process, loop, wall = (median(column) for column in zip(*taken[name][1:], strict=True))
            told |= {f"{name}_us": process, f"{name}_loop_us": loop, f"{name}_wall_us": wall}
            told[f"{name}_calls"] = await _calls(one)
        await client.stop()
    sys.stdout.write(json.dumps(told) + "\n")


async def _timed(one: One, pages: int, concurrency: int) -> tuple[float, float, float]:
    """Microseconds for each page: of the processor in all threads, in the event loop's, and by the clock."""
    numbers = iter(range(pages))

    async def go() -> None:
        for number in numbers:
            await one(number)

    began = time.process_time(), time.thread_time(), time.perf_counter()
    await asyncio.gather(*(go() for _ in range(concurrency)))
    ended = time.process_time(), time.thread_time(), time.perf_counter()
    process, loop, wall = ((end - start) / pages * 1e6 for start, end in zip(began, ended, strict=True))
    return process, loop, wall


async def _calls(one: One) -> float:
    """Calls of functions in Python for each page, one after another."""
    calls = 0

    def count(_frame: object, event: str, _given: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        for number in range(_COUNTED):
            await one(number)
    finally:
        sys.setprofile(None)
    return calls / _COUNTED


if __name__ == "__main__":
    uvloop.run(main(errand()))
