"""Several processes, one site: together they keep to its rate, and an edit of it counts at once."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.engines.politeness.policies import SitePolicies
from scrapeyard.engines.politeness.redis import RedisGate
from scrapeyard.queues.redis.queue import RedisQueue
from scrapeyard.settings import SiteSettings
from scrapeyard.store.ports.overrides import SiteRules
from scrapeyard.store.sql import SqlStore
from tests.leaks import PATIENCE, killed_after

PAGE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: text/plain\r\n\r\nhi"
PROCESSES = 3
DEMAND = 300
FREE_DEMAND = 30
SLOW, FAST = 5, 200
"""Requests a second."""
SLACK = 3
"""Requests that may come too early: those of the burst, and what a clock's grain makes of two."""
LIMITED, FREE = "127.0.0.1", "127.0.0.2"


class Counted(asyncio.Protocol):
    """Answers every request and counts it."""

    def __init__(self, arrived: Callable[[int], None]) -> None:
        self._arrived = arrived

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        self._arrived(len(heads))
        assert isinstance(self._transport, asyncio.Transport)
        self._transport.write(PAGE * len(heads))


class Yard:
    """Two sites, and an operator's view of the rules."""

    def __init__(self, redis_url: str, folder: Path) -> None:
        self.redis_url = redis_url
        self.database = f"sqlite:///{folder}/yard.db"
        self.store = SqlStore(self.database)
        self.queue = RedisQueue(redis_url, patience_seconds=PATIENCE)
        self.policies = SitePolicies(SiteSettings(), self.store.sites, self.queue)
        self.gate = RedisGate(redis_url, patience_seconds=PATIENCE)
        self.arrivals: Counter[str] = Counter()
        self.urls: dict[str, str] = {}

    async def serve(self, stack: AsyncExitStack) -> None:
        loop = asyncio.get_running_loop()
        for host in (LIMITED, FREE):
            server = await loop.create_server(partial(Counted, partial(self._arrived, host)), host, 0)
            stack.callback(server.close)
            self.urls[host] = f"http://{host}:{server.sockets[0].getsockname()[1]}/"
        for part in (self.store, self.queue, self.policies, self.gate):
            await part.start()
            stack.push_async_callback(part.stop)

    def _arrived(self, host: str, count: int) -> None:
        self.arrivals[host] += count

    async def reach(self, count: int, host: str = LIMITED) -> None:
        """Wait until so many requests have come in all."""
        async with asyncio.timeout(PATIENCE):
            while self.arrivals[host] < count:
                await asyncio.sleep(0.01)

    async def waiting(self) -> int:
        """Turns that wait for the limited site."""
        return (await self.gate.states([LIMITED]))[LIMITED].waiting

    async def crowd(self, count: int) -> None:
        """Wait until so many turns do."""
        async with asyncio.timeout(PATIENCE):
            while await self.waiting() < count:
                await asyncio.sleep(0.01)

    async def limit(self, **rules: Any) -> None:
        await self.policies.put(SiteRules(site=LIMITED, **rules))


@pytest.fixture
async def yard(redis_url: str, tmp_path: Path) -> AsyncIterator[Yard]:
    async with AsyncExitStack() as stack:
        yard = Yard(redis_url, tmp_path)
        await yard.serve(stack)
        yield yard


class Fetchers:
    """Processes that fetch, until the stack is closed."""

    def __init__(self, yard: Yard, demand: float, stack: ExitStack) -> None:
        wanted: dict[str, Any] = {"redis": yard.redis_url, "database": yard.database}
        wanted |= {"limited": yard.urls[LIMITED], "demand": demand / PROCESSES}
        wanted |= {"free": yard.urls[FREE], "free_demand": FREE_DEMAND / PROCESSES}
        command = [sys.executable, "-m", "tests.integration.polite_fetcher", json.dumps(wanted)]
        pipe, root = subprocess.PIPE, Path(__file__).parents[3]
        self.processes = [
            stack.enter_context(killed_after(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root)))
            for _ in range(PROCESSES)
        ]

    async def begin(self) -> None:
        for process in self.processes:
            assert process.stdout is not None
            assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
        self.began = asyncio.get_running_loop().time()
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()

    async def end(self) -> Counter[str]:
        """How all their fetches went."""
        ends: Counter[str] = Counter()
        for process in self.processes:
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
async def fetching(yard: Yard, demand: float = DEMAND) -> AsyncIterator[Fetchers]:
    with ExitStack() as stack:
        fetchers = Fetchers(yard, demand, stack)
        await fetchers.begin()
        yield fetchers


async def test_all_processes_together_keep_to_the_rate_and_an_edit_counts_within_a_second(yard: Yard) -> None:
    """A busy machine makes requests late, so that fewer come in a time: more never may."""
    now = asyncio.get_running_loop().time
    await yard.limit(rate=SLOW)
    async with fetching(yard) as fetchers:
        began = fetchers.began
        await yard.reach(25)
        assert yard.arrivals[LIMITED] <= SLACK + SLOW * (now() - began), "each process by itself would send as many"
        await yard.crowd(250)
        await yard.reach(yard.arrivals[FREE] + 30, FREE)
        assert await yard.waiting() > 200, "the other site ran on while these waited"

        edited, before = now(), yard.arrivals[LIMITED]
        await yard.limit(rate=FAST)
        await yard.reach(before + 250)
        assert now() - edited < 40, "at the old rate it would take 50 s, at the new one 1.25 s"
        assert yard.arrivals[LIMITED] <= SLACK + SLOW * (edited - began) + FAST * (now() - edited)
        ends = await fetchers.end()
    assert set(ends) <= {"limited", "free", *(end for end in ends if "fetch_rate_limited" in end)}, ends


@pytest.mark.chaos
@pytest.mark.skipif(not os.environ.get("CHAOS_LONG"), reason="runs with CHAOS_LONG=1")
async def test_a_killed_process_holds_nothing_for_long(yard: Yard) -> None:
    await yard.limit(concurrency=2)
    async with fetching(yard, demand=40) as fetchers:
        await yard.reach(20)
        fetchers.kill(2)
        await yard.reach(yard.arrivals[LIMITED] + 30)
        await fetchers.end()
