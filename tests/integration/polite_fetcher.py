"""One process that fetches politely: the real gate, rules, stage and client, and more demand than a site takes.

`python -m tests.integration.polite_fetcher WANTED`, where WANTED is JSON with the keys redis, database, limited, free,
demand and free_demand, says `ready`, begins when a line comes, and ends with its input, telling as JSON how its fetches
went.
"""

import asyncio
import json
import sys
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.politeness.policies import SitePolicies
from scrapeyard.engines.politeness.redis import RedisGate
from scrapeyard.engines.politeness.stage import RateLimited
from scrapeyard.engines.port import FetchRequest
from scrapeyard.errors import FetchFailed
from scrapeyard.queues.redis.queue import RedisQueue
from scrapeyard.settings import HttpSettings, SiteSettings
from scrapeyard.store.sql import SqlStore
from tests.stages import context_of


class Fetcher:
    """Asks for one page so many times a second, whether answers come or not, and for another at most so often."""

    def __init__(self, fetch: RateLimited, wanted: dict[str, Any]) -> None:
        self._fetch = fetch
        self._wanted = wanted
        self._tasks: set[asyncio.Task[None]] = set()
        self.ends: Counter[str] = Counter()

    async def run(self) -> None:
        free = asyncio.create_task(self._keep_asking())
        loop = asyncio.get_running_loop()
        began, asked = loop.time(), 0
        try:
            while True:
                while asked < (loop.time() - began) * self._wanted["demand"]:
                    asked += 1
                    task = asyncio.create_task(self._ask("limited"))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                await asyncio.sleep(0.01)
        finally:
            for each in (free, *self._tasks):
                each.cancel()
            await asyncio.gather(free, *self._tasks, return_exceptions=True)

    async def _keep_asking(self) -> None:
        while True:
            await self._ask("free")
            await asyncio.sleep(1 / self._wanted["free_demand"])

    async def _ask(self, which: str) -> None:
        try:
            await self._fetch(context_of(FetchRequest(url=self._wanted[which])))
            self.ends[which] += 1
        except FetchFailed as failure:
            self.ends[f"{which}: {failure.reason} {failure.message[:80]}"] += 1


async def main() -> None:
    wanted = json.loads(sys.argv[1])
    store, queue = SqlStore(wanted["database"]), RedisQueue(wanted["redis"], patience_seconds=60)
    gate = RedisGate(wanted["redis"], patience_seconds=60)  # a busy machine is no outage
    policies = SitePolicies(SiteSettings(), store.sites, queue)
    engine = WreqEngine(HttpSettings(allow_private=True, profile="none"))
    async with AsyncExitStack() as stack:
        for part in (store, queue, policies, gate, engine):
            await part.start()
            stack.push_async_callback(part.stop)
        fetcher = Fetcher(RateLimited(engine, gate, policies), wanted)
        _say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        work = asyncio.create_task(fetcher.run())
        await asyncio.to_thread(sys.stdin.read)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    _say(json.dumps(fetcher.ends))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
