"""The child's end of the wire: blocking sends, and answers by request number for sync and async scripts.

Locks come from `_thread`: with `threading` loaded, every fork takes a third of a millisecond longer.
"""

import socket
from _thread import LockType, allocate_lock
from typing import TYPE_CHECKING, Any

from scrapeyard_sdk import wire

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

Answer = tuple[dict[str, Any], bytes]
_READ = 256 * 1024
"""Maximum bytes read at once, about what a socket holds."""
_FIRST_READ = 4 * 1024
"""Maximum bytes read at once until one read brings as many: each page of memory costs a child as much as a function."""
_LARGE = 32 * 1024
"""Maximum bytes of a request that waits for others. Many large ones would fill the memory of the run."""


class WorkerGone(BaseException):
    """The worker closed the wire: nobody waits for this run any more. Not an Exception, so scripts do not catch it."""


class ItemOver(Exception):
    """The item of this context has ended. Use the context that the script received for the current item."""


class Channel:
    """Frames to and from the worker. Sends block; the worker always reads."""

    def __init__(self, sock: socket.SocketType, before: "Channel | None" = None, item: int = 0) -> None:
        """`before` is the channel of the previous item on the same wire; `item` is 0 if the child serves one run."""
        self._sock = sock
        self._item = item
        self._over = False
        self._decoder: wire.Decoder[dict[str, Any]] = before._decoder if before else wire.Decoder(wire.parse_head)
        self._space: memoryview = before._space if before else memoryview(bytearray(_FIRST_READ))
        """What is read comes here, and each frame is copied out of it once."""
        self._sending: LockType = before._sending if before else allocate_lock()
        self._receiving = allocate_lock()
        self._answers: dict[int, Answer] = {}
        self._futures: dict[int, asyncio.Future[Answer]] = {}
        self._requests: list[bytes] = []
        """Frames of `request` that are sent together, before the event loop looks for answers again."""
        self._number = 0
        self._loop: asyncio.AbstractEventLoop

    def for_item(self, item: int) -> "Channel":
        """A channel on the same wire for the next item. This channel can send no more."""
        self._over = True
        return Channel(self._sock, self, item)

    def send(self, head: dict[str, Any], raw: bytes = b"") -> None:
        """One frame. Raises WorkerGone when nobody reads, ValueError when it cannot be a frame, ItemOver."""
        self.send_frame(wire.encode({**head, "i": self._item} if self._item else head, raw))

    def send_frame(self, data: bytes) -> None:
        """One frame that is encoded already. Raises WorkerGone when nobody reads, ItemOver."""
        try:
            with self._sending:
                self._check_item()
                self._sock.sendall(self._take_requests() + data if self._requests else data)
        except OSError:
            raise WorkerGone from None

    def _check_item(self) -> None:
        if self._over:
            raise ItemOver("this context is of an item that has ended; use the one given for the present item")

    def _take_requests(self) -> bytes:
        requests, self._requests = self._requests, []
        return b"".join(requests)

    def receive(self) -> Answer:
        """The next `run`, blocking. Skips late answers to requests of an earlier item."""
        while True:
            for frame in self._decoder.feed(self._read()):
                if frame[0]["t"] == "run":
                    return frame

    def ask(self, head: dict[str, Any], raw: bytes = b"") -> int:
        """Send a request and return its number, for `wait_for`."""
        with self._sending:
            self._number += 1
            number = self._number
        self.send({**head, "n": number}, raw)
        return number

    def wait_for(self, number: int) -> Answer:
        """The answer to a request, blocking. Several threads may wait."""
        while True:
            with self._receiving:
                if number in self._answers:
                    return self._answers.pop(number)
                for head, raw in self._decoder.feed(self._read()):
                    if head.get("i", 0) == self._item:
                        self._answers[int(head.get("n", 0))] = (head, raw)

    def attach(self, loop: "asyncio.AbstractEventLoop") -> None:
        """Deliver answers to futures on this loop from now on."""
        self._loop = loop
        loop.add_reader(self._sock.fileno(), self._on_readable)

    def request(self, head: dict[str, Any], raw: bytes = b"") -> "Awaitable[Answer]":
        """Send a request; await what is returned for its answer. Only after `attach`."""
        future: asyncio.Future[Answer] = self._loop.create_future()
        with self._sending:
            self._check_item()
            number = self._number = self._number + 1
            head["n"] = number
            if self._item:
                head["i"] = self._item
            if not self._requests:
                self._loop.call_soon(self._send_requests)
            frame = wire.encode(head, raw)
            self._requests.append(frame)
            self._futures[number] = future
        if len(frame) > _LARGE:
            self._send_requests()
        return future

    def _send_requests(self) -> None:
        """All that were made since the last look. If nobody reads, those who wait hear it."""
        try:
            with self._sending:
                if self._requests and not self._over:
                    self._sock.sendall(self._take_requests())
        except OSError:
            for future in self._futures.values():
                if not future.done():
                    future.set_exception(WorkerGone())

    def _on_readable(self) -> None:
        for head, raw in self._decoder.feed(self._read()):
            mine = head.get("i", 0) == self._item
            future = self._futures.pop(int(head.get("n", 0)), None) if mine else None
            if future is not None and not future.done():
                future.set_result((head, raw))

    def _read(self) -> memoryview:
        size = self._sock.recv_into(self._space)
        if not size:
            raise WorkerGone
        data = self._space[:size]
        if size == len(self._space) < _READ:
            self._space = memoryview(bytearray(_READ))
        return data
