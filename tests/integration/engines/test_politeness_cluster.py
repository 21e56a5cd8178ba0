"""A cluster of four workers and a site that takes twenty requests a second, seen from the outermost door."""

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

import httpx
import pytest

from tests.leaks import PATIENCE, until
from tests.programs import Cluster

BODY = b"<!doctype html><title>A page</title><p>Hello.</p>"
PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)
LIMITED, FREE = "127.0.0.1", "127.0.0.2"
BACKLOG = 1200
SLOW, FAST = 20, 100
"""Requests a second."""
SLACK = 3
"""Requests that may come too early: those of the burst, and what a clock's grain makes of two."""


class Counted(asyncio.Protocol):
    """Answers every request and counts it."""

    def __init__(self, arrived: Callable[[int], None]) -> None:
        self._arrived = arrived
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        self._arrived(len(heads))
        assert isinstance(self._transport, asyncio.Transport)
        self._transport.write(PAGE * len(heads))


class Web:
    """Two sites, in a thread of their own."""

    def __init__(self) -> None:
        self.arrivals: Counter[str] = Counter()
        self.urls: dict[str, str] = {}
        self._pages = count()

    def page(self, host: str) -> str:
        """A page that nobody asked for yet."""
        return f"{self.urls[host]}/{next(self._pages)}"

    def reach(self, count: int) -> None:
        """Wait until the limited site has seen so many requests in all."""
        until(lambda: self.arrivals[LIMITED] >= count, f"{count} requests")

    async def serve(self, up: threading.Event, done: threading.Event) -> None:
        loop, servers = asyncio.get_running_loop(), []
        for host in (LIMITED, FREE):
            server = await loop.create_server(partial(Counted, partial(self._arrived, host)), host, 0)
            self.urls[host] = f"http://{host}:{server.sockets[0].getsockname()[1]}"
            servers.append(server)
        up.set()
        await asyncio.to_thread(done.wait)
        for server in servers:
            server.close()

    def _arrived(self, host: str, count: int) -> None:
        self.arrivals[host] += count


@contextmanager
def serving() -> Iterator[Web]:
    web, up, done = Web(), threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(web.serve(up, done)))
    thread.start()
    try:
        assert up.wait(PATIENCE)
        yield web
    finally:
        done.set()
        thread.join(PATIENCE)


@contextmanager
def scraping_freely(url: str, web: Web) -> Iterator[list[int]]:
    """One call after another for the other site; yields their answers."""
    answers: list[int] = []
    stop = threading.Event()

    def keep_calling() -> None:
        with httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as client:
            while not stop.is_set():
                answers.append(client.post("/api/scrape", json={"url": web.page(FREE), "wait": PATIENCE}).status_code)

    thread = threading.Thread(target=keep_calling)
    thread.start()
    try:
        yield answers
    finally:
        stop.set()
        thread.join(PATIENCE)


@pytest.mark.chaos
@pytest.mark.skipif(not os.environ.get("CHAOS_LONG"), reason="runs with CHAOS_LONG=1")
def test_a_cluster_keeps_to_a_rate_without_holding_slots() -> None:
    with serving() as web, Cluster(gateways=1, workers=4) as cluster, cluster.client() as client:
        put = client.put(f"/api/sites/{LIMITED}", json={"rate": SLOW})
        assert put.status_code == 200, put.text
        began = time.monotonic()
        for _ in range(BACKLOG // 200):
            urls = [web.page(LIMITED) for _ in range(200)]
            answer = client.post("/api/scrape", json={"urls": urls, "wait": 0})
            assert answer.status_code == 202, answer.text
        site = f"/api/sites/{LIMITED}"
        until(lambda: client.get(site).json()["state"]["waiting"] > 500, "many wait for their turn")

        with scraping_freely(cluster.urls[0], web) as answers:
            web.reach(web.arrivals[LIMITED] + 50)
            assert web.arrivals[LIMITED] <= SLACK + SLOW * (time.monotonic() - began)
            until(lambda: len(answers) > 10, "the other site is scraped")
            until(lambda: _busy(client) <= 8, "of 16 slots, while hundreds wait")
            assert client.get(site).json()["state"]["waiting"] > 500
        assert set(answers) == {200}

        edited, before = time.monotonic(), web.arrivals[LIMITED]
        client.put(site, json={"rate": FAST})
        until(lambda: client.get(site).json()["state"]["rate"] == FAST, "the new limit is in force")
        web.reach(before + 300)
        assert web.arrivals[LIMITED] <= SLACK + SLOW * (edited - began) + FAST * (time.monotonic() - edited)
        client.put(site, json={"rate": 0})
        until(lambda: _unfinished(client) == 0, "all have ended")
        failed = client.get("/api/scrape", params={"status": "failed", "limit": 200}).json()["runs"]
        assert [(run["exit_reason"], run["error"]) for run in failed] == []
        assert web.arrivals[LIMITED] == BACKLOG


def _busy(client: httpx.Client) -> int:
    workers = client.get("/api/workers").json()["workers"]
    assert len(workers) == 4
    return sum(worker["busy"] for worker in workers)


def _unfinished(client: httpx.Client) -> int:
    query = {"status": ["queued", "running"], "limit": 200}
    return len(client.get("/api/scrape", params=query).json()["runs"])
