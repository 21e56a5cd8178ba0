"""wreq by itself: what the engine's stages add is measured against it."""

import asyncio
import time

import uvloop
from wreq import Client

from benchmarks.peers.crawl import Clock, Errand, errand, numbered

_LATENCIES = 2000


async def main(work: Errand) -> None:
    """Fetch the page as often as told; then a few one by one, for the latency."""
    client, numbers, done = Client(no_proxy=True), iter(range(work.pages)), 0

    async def one() -> None:
        nonlocal done
        for number in numbers:
            response = await client.get(numbered(work.url, number))
            body = await response.bytes()
            done += len(body) > 0

    clock = Clock()
    await asyncio.gather(*(one() for _ in range(work.concurrency)))
    seconds, taken = time.perf_counter() - clock.began, []
    for number in range(_LATENCIES):
        began = time.perf_counter()
        await (await client.get(numbered(work.url, number))).bytes()
        taken.append(time.perf_counter() - began)
    clock.tell(done, seconds=seconds, p50_ms=sorted(taken)[_LATENCIES // 2] * 1000)


if __name__ == "__main__":
    uvloop.run(main(errand()))
