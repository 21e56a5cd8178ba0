"""Several processes, one site: together they keep to its rate, and an edit of it counts at once."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.engines.sites.policies import SitePolicies
from scrapeyard.engines.sites.redis_gate import RedisGate
from scrapeyard.queues.redis import RedisQueue
from scrapeyard.settings import SiteSettings
from scrapeyard.store.port import SiteRules
from scrapeyard.store.sql import SqlStore
from tests.leaks import PATIENCE

PAGE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: text/plain\r\n\r\nhi"
PROCESSES = 3
DEMAND = 300
FREE_DEMAND = 300
LIMITED, FREE = "127.0.0.1", "127.0.0.2"


class Counted(asyncio.Protocol):
    """Answers every request and notes when it came, and how many were under way."""

    def __init__(self, arrivals: list[float]) -> None:
        self._arrivals = arrivals

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        self._arrivals += [asyncio.get_running_loop().time()] * len(heads)
        assert isinstance(self._transport, asyncio.Transport)
        self._transport.write(PAGE * len(heads))


class Yard:
    """Two sites, and an operator's view of the rules."""

    def __init__(self, redis_url: str, folder: Path) -> None:
        self.redis_url = redis_url
        self.database = f"sqlite:///{folder}/yard.db"
        self.store = SqlStore(self.database)
        self.queue = RedisQueue(redis_url)
        self.policies = SitePolicies(SiteSettings(), self.store, self.queue)
        self.gate = RedisGate(redis_url)
        self.arrivals: dict[str, list[float]] = {LIMITED: [], FREE: []}
        self.urls: dict[str, str] = {}

    async def serve(self, stack: AsyncExitStack) -> None:
        loop = asyncio.get_running_loop()
        for host, arrivals in self.arrivals.items():
            server = await loop.create_server(lambda arrivals=arrivals: Counted(arrivals), host, 0)
            stack.callback(server.close)
            self.urls[host] = f"http://{host}:{server.sockets[0].getsockname()[1]}/"
        for part in (self.store, self.queue, self.policies, self.gate):
            await part.start()
            stack.push_async_callback(part.stop)

    async def seen(self, seconds: float, host: str = LIMITED) -> float:
        """Requests a second that a site sees from now on, for so long."""
        before = len(self.arrivals[host])
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(seconds)
        return (len(self.arrivals[host]) - before) / (asyncio.get_running_loop().time() - began)

    async def limit(self, **rules: Any) -> None:
        await self.policies.put(SiteRules(site=LIMITED, **rules))


@pytest.fixture
async def yard(redis_url: str, tmp_path: Path) -> AsyncIterator[Yard]:
    async with AsyncExitStack() as stack:
        yard = Yard(redis_url, tmp_path)
        await yard.serve(stack)
        yield yard


class Fetchers:
    """Processes that fetch."""

    def __init__(self, yard: Yard, demand: float, free: str) -> None:
        wanted: dict[str, Any] = {"redis": yard.redis_url, "database": yard.database}
        wanted |= {"limited": yard.urls[LIMITED], "demand": demand / PROCESSES}
        wanted |= {"free": free, "free_demand": FREE_DEMAND / PROCESSES}
        command = [sys.executable, "-m", "tests.integration.polite_fetcher", json.dumps(wanted)]
        pipe = subprocess.PIPE
        self.processes = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=Path(__file__).parent.parent.parent)
            for _ in range(PROCESSES)
        ]

    async def begin(self) -> None:
        for process in self.processes:
            assert process.stdout is not None
            assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()

    async def end(self) -> Counter[str]:
        """How all their fetches went."""
        ends: Counter[str] = Counter()
        ending, self.processes = self.processes, []
        for process in ending:
            out, _ = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
            assert process.returncode == 0
            ends.update(json.loads(out.splitlines()[-1]))  # before it stands what was logged
        return ends

    def kill(self, count: int) -> None:
        for process in self.processes[:count]:
            process.kill()
            process.communicate()
        del self.processes[:count]


@asynccontextmanager
async def fetching(yard: Yard, demand: float = DEMAND, free: str = "") -> AsyncIterator[Fetchers]:
    fetchers = Fetchers(yard, demand, free or yard.urls[FREE])
    try:
        await fetchers.begin()
        yield fetchers
    finally:
        fetchers.kill(len(fetchers.processes))


async def test_all_processes_together_keep_to_the_rate_and_an_edit_counts_within_a_second(yard: Yard) -> None:
    await yard.limit(rate=50)
    async with fetching(yard) as fetchers:
        while len(yard.arrivals[LIMITED]) < 20:
            await asyncio.sleep(0.01)
        free_before = len(yard.arrivals[FREE])
        assert await yard.seen(4) == pytest.approx(50, rel=0.05)
        free = (len(yard.arrivals[FREE]) - free_before) / 4
        assert free > 100, "the other site runs on"
        assert (await yard.gate.states([LIMITED]))[LIMITED].waiting > 500

        await yard.limit(rate=100)
        await asyncio.sleep(1)
        assert await yard.seen(2) == pytest.approx(100, rel=0.1)
        ends = await fetchers.end()
    assert set(ends) <= {"limited", "free", *(end for end in ends if "fetch_rate_limited" in end)}, ends


@pytest.mark.chaos
@pytest.mark.skipif(not os.environ.get("CHAOS_LONG"), reason="runs with CHAOS_LONG=1")
async def test_a_killed_process_holds_nothing_for_long(yard: Yard) -> None:
    await yard.limit(concurrency=2)
    async with fetching(yard, demand=40) as fetchers:
        while len(yard.arrivals[LIMITED]) < 20:
            await asyncio.sleep(0.01)
        fetchers.kill(2)
        before = len(yard.arrivals[LIMITED])
        async with asyncio.timeout(PATIENCE):
            while len(yard.arrivals[LIMITED]) < before + 30:
                await asyncio.sleep(0.02)
        await fetchers.end()
