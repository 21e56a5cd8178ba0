"""The child's end of the wire: requests that are sent together."""

import asyncio
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from scrapeyard_sdk import wire
from scrapeyard_sdk.channel import Channel, WorkerGone

MB = 1024 * 1024
REQUESTS = 40


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The child's and the worker's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


class Worker:
    """Reads as a worker does, and answers each request once all have come."""

    def __init__(self, sock: socket.socket, requests: int) -> None:
        self._sock = sock
        self._requests = requests
        self.reads = 0
        self.sizes: list[int] = []
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "Worker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _serve(self) -> None:
        decoder, heads = wire.Decoder[dict[str, Any]](wire.parse_head), list[dict[str, Any]]()
        while len(heads) < self._requests:
            self.reads += 1
            for head, raw in decoder.feed(self._sock.recv(MB)):
                heads.append(head)
                self.sizes.append(len(raw))
        self._sock.sendall(b"".join(wire.encode({"t": "page", "n": head["n"]}) for head in heads))


async def ask_all(channel: Channel, bodies: list[bytes]) -> list[int]:
    """All requests at once; the numbers of their answers."""
    channel.attach(asyncio.get_running_loop())
    found = await asyncio.gather(*(channel.request({"t": "fetch"}, body) for body in bodies))
    return [head["n"] for head, _ in found]


def test_small_requests_go_together(ends: tuple[socket.socket, socket.socket]) -> None:
    with Worker(ends[1], REQUESTS) as worker:
        assert asyncio.run(ask_all(Channel(ends[0]), [b"x"] * REQUESTS)) == list(range(1, REQUESTS + 1))
    assert worker.reads == 1


def test_large_requests_do_not_wait_for_others(ends: tuple[socket.socket, socket.socket]) -> None:
    """Together they would fill the memory of the run."""
    body = b"x" * MB
    bodies = [body, b"small"] * (REQUESTS // 2)
    tracemalloc.start()
    try:
        with Worker(ends[1], REQUESTS) as worker:
            assert asyncio.run(ask_all(Channel(ends[0]), bodies)) == list(range(1, REQUESTS + 1))
        assert tracemalloc.get_traced_memory()[1] < REQUESTS / 2 * MB
    finally:
        tracemalloc.stop()
    assert worker.sizes == [MB, 5] * (REQUESTS // 2)


def test_requests_hear_that_the_worker_is_gone(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[1].close()
    with pytest.raises(WorkerGone):
        asyncio.run(ask_all(Channel(ends[0]), [b"x", b"x" * MB]))


def test_a_wire_takes_memory_as_it_is_needed(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    channel = Channel(ours)
    for size, room in ((10, 4 * 1024), (100_000, 256 * 1024), (10, 256 * 1024)):
        theirs.sendall(wire.encode({"t": "run"}, b"x" * size))
        assert channel.receive() == ({"t": "run"}, b"x" * size)
        assert len(channel._space) == room
