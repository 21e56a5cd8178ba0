"""A cluster of four workers and a site that takes fifty requests a second, seen from the outermost door."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import httpx
import pytest

from tests.leaks import PATIENCE, until
from tests.programs import Cluster

BODY = b"<!doctype html><title>A page</title><p>Hello.</p>"
PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)
LIMITED, FREE = "127.0.0.1", "127.0.0.2"
BACKLOG = 2400


class Counted(asyncio.Protocol):
    """Answers every request and notes when it came."""

    def __init__(self, arrivals: list[float]) -> None:
        self._arrivals = arrivals
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        self._arrivals += [time.monotonic()] * len(heads)
        assert isinstance(self._transport, asyncio.Transport)
        self._transport.write(PAGE * len(heads))


class Web:
    """Two sites, in a thread of their own."""

    def __init__(self) -> None:
        self.arrivals: dict[str, list[float]] = {LIMITED: [], FREE: []}
        self.urls: dict[str, str] = {}
        self._pages = count()

    def page(self, host: str) -> str:
        """A page that nobody asked for yet."""
        return f"{self.urls[host]}/{next(self._pages)}"

    def seen(self, host: str, seconds: float) -> float:
        """Requests a second that a site sees from now on, for so long."""
        began, before = time.monotonic(), len(self.arrivals[host])
        until(lambda: time.monotonic() - began >= seconds, "time passes")
        return (len(self.arrivals[host]) - before) / (time.monotonic() - began)

    async def serve(self, up: threading.Event, done: threading.Event) -> None:
        loop, servers = asyncio.get_running_loop(), []
        for host, arrivals in self.arrivals.items():
            server = await loop.create_server(lambda arrivals=arrivals: Counted(arrivals), host, 0)
            self.urls[host] = f"http://{host}:{server.sockets[0].getsockname()[1]}"
            servers.append(server)
        up.set()
        await asyncio.to_thread(done.wait)
        for server in servers:
            server.close()


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
def scraping_freely(url: str, web: Web) -> Iterator[list[float]]:
    """One call after another for the other site; yields how long each took."""
    took: list[float] = []
    stop = threading.Event()

    def keep_calling() -> None:
        with httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as client:
            while not stop.is_set():
                began = time.monotonic()
                answer = client.post("/api/scrape", json={"url": web.page(FREE), "wait": 20})
                assert answer.status_code == 200, answer.text
                took.append(time.monotonic() - began)

    thread = threading.Thread(target=keep_calling)
    thread.start()
    try:
        yield took
    finally:
        stop.set()
        thread.join(PATIENCE)


@pytest.mark.chaos
@pytest.mark.skipif(not os.environ.get("CHAOS_LONG"), reason="runs with CHAOS_LONG=1")
@pytest.mark.timeout(240)
def test_a_cluster_keeps_to_a_rate_without_holding_slots() -> None:
    with serving() as web, Cluster(gateways=1, workers=4) as cluster, cluster.client() as client:
        put = client.put(f"/api/sites/{LIMITED}", json={"rate": 50})
        assert put.status_code == 200, put.text
        for _ in range(BACKLOG // 200):
            urls = [web.page(LIMITED) for _ in range(200)]
            answer = client.post("/api/scrape", json={"urls": urls, "wait": 0})
            assert answer.status_code == 202, answer.text
        site = f"/api/sites/{LIMITED}"
        until(lambda: client.get(site).json()["state"]["waiting"] > 500, "many wait for their turn")

        with scraping_freely(cluster.urls[0], web) as took:
            assert web.seen(LIMITED, 6) == pytest.approx(50, rel=0.05)
            workers = client.get("/api/workers").json()["workers"]
            assert len(workers) == 4
            assert sum(worker["busy"] for worker in workers) <= 8, "of 16 slots, while hundreds wait"
            assert client.get(site).json()["state"]["waiting"] > 500
        assert len(took) > 30
        assert sorted(took)[len(took) // 2] < 0.5

        client.put(site, json={"rate": 100})
        until(lambda: client.get(site).json()["state"]["rate"] == 100, "the new limit is in force")
        assert web.seen(LIMITED, 3) == pytest.approx(100, rel=0.1)
        client.put(site, json={"rate": 0})
        until(lambda: _unfinished(client) == 0, "all have ended")
        failed = client.get("/api/scrape", params={"status": "failed", "limit": 200}).json()["runs"]
        assert [(run["exit_reason"], run["error"]) for run in failed] == []
        assert len(web.arrivals[LIMITED]) == BACKLOG


def _unfinished(client: httpx.Client) -> int:
    query = {"status": ["queued", "running"], "limit": 200}
    return len(client.get("/api/scrape", params=query).json()["runs"])
