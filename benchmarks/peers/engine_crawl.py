"""Scrapeyard's engine, whole: cache, budget, robots, gate, ways, meter, guard and client, on embedded parts."""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import uvloop
from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.peers.crawl import Clock, Errand, errand, numbered
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import HttpSettings, Settings
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.engine import WebParts, start_engine
from scrapeyard.wiring.pipeline import Engine

_LATENCIES = 2000


@contextlib.asynccontextmanager
async def opened() -> AsyncIterator[Engine]:
    """An engine as `scrapeyard up` has it, allowed to fetch from loopback."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scrapeyard-bench-")))
        settings = Settings(data_dir=folder, http=HttpSettings(allow_private=True))

        async def up(start, stop) -> None:  # type: ignore[no-untyped-def]
            stack.push_async_callback(stop)
            await start()

        store, queue = SqlStore(f"sqlite:///{folder}/bench.db"), MemoryQueue()
        await up(store.start, store.stop)
        await up(queue.start, queue.stop)
        web = WebParts(settings)
        await web.start(up)
        yield await start_engine(settings, web, store, queue, worker_id="bench", up=up)


def read(response: FetchResponse) -> dict[str, object]:
    """The same fields that the others read."""
    page = LexborHTMLParser(response.body)
    return {
        "title": _text(page, "title"),
        "description": _attribute(page, "meta[name=description]", "content"),
        "h1": _text(page, "h1"),
        "canonical": _attribute(page, "link[rel=canonical]", "href"),
        "links": [link.attributes["href"] for link in page.css("a[href]")],
        "items": [
            {
                "name": _text(item, ".name"),
                "price": _text(item, ".price"),
                "stock": _text(item, ".stock"),
                "sku": item.attributes["data-sku"],
            }
            for item in page.css("article.product")
        ],
    }


def _text(page: LexborHTMLParser | LexborNode, selector: str) -> str | None:
    node = page.css_first(selector)
    return node.text() if node is not None else None


def _attribute(page: LexborHTMLParser, selector: str, name: str) -> str | None:
    node = page.css_first(selector)
    return node.attributes.get(name) if node is not None else None


async def main(work: Errand) -> None:
    """Fetch the page as often as told; then a few one by one, for the latency."""
    numbers, done, caller = iter(range(work.pages)), 0, Caller()
    memory: list[float] = []

    async def one(engine: Engine) -> None:
        nonlocal done
        for number in numbers:
            response = await engine.fetch(FetchRequest(url=numbered(work.url, number)), caller)
            if work.extract:
                read(response)
            done += response.status == 200
            if done in (work.pages // 10, work.pages - 1):
                memory.append(_resident_mb())

    async with opened() as engine:
        clock = Clock()
        await asyncio.gather(*(one(engine) for _ in range(work.concurrency)))
        seconds, cpu = time.perf_counter() - clock.began, clock.cpu_seconds()
        latency = await _latency(engine, work.url)
        grown = memory[-1] - memory[0] if len(memory) > 1 else 0.0
        clock.tell(done, seconds=seconds, cpu_seconds=cpu, p50_ms=latency, grown_mb=grown)


async def _latency(engine: Engine, url: str) -> float:
    caller, taken = Caller(), []
    for number in range(_LATENCIES):
        began = time.perf_counter()
        await engine.fetch(FetchRequest(url=numbered(url, number)), caller)
        taken.append(time.perf_counter() - began)
    return sorted(taken)[_LATENCIES // 2] * 1000


def _resident_mb() -> float:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


if __name__ == "__main__":
    uvloop.run(main(errand()))
