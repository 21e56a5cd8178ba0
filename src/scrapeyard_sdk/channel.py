"""The child's end of the wire: blocking sends, and answers by number for scripts that wait or await.

Locks come from `_thread`: a process that has loaded `threading` pays a third of a millisecond more for every fork.
"""

import socket
from _thread import allocate_lock
from typing import TYPE_CHECKING, Any

from scrapeyard_sdk import wire

if TYPE_CHECKING:
    import asyncio

Answer = tuple[dict[str, Any], bytes]


class WorkerGone(BaseException):
    """The worker closed the wire: nobody waits for this run any more. Not an Exception, so that scripts let it pass."""


class Channel:
    """Frames to and from the worker. Sends block; the worker always reads."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._decoder = wire.Decoder(wire.parse_head)
        self._sending = allocate_lock()
        self._receiving = allocate_lock()
        self._answers: dict[int, Answer] = {}
        self._futures: dict[int, asyncio.Future[Answer]] = {}
        self._number = 0

    def send(self, head: dict[str, Any], raw: bytes = b"") -> None:
        """One frame. Raises WorkerGone when nobody reads, ValueError when it cannot be a frame."""
        self.send_frame(wire.encode(head, raw))

    def send_frame(self, data: bytes) -> None:
        """One frame that is encoded already. Raises WorkerGone when nobody reads."""
        try:
            with self._sending:
                self._sock.sendall(data)
        except OSError:
            raise WorkerGone from None

    def receive(self) -> Answer:
        """The next frame, blocking. For the first one, before any script runs."""
        while True:
            frames = self._decoder.feed(self._read())
            if frames:
                return frames[0]

    def ask(self, head: dict[str, Any], raw: bytes = b"") -> int:
        """Send a request; its answer is had by `wait_for` or `answer`."""
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
                    self._answers[int(head.get("n", 0))] = (head, raw)

    def attach(self, loop: "asyncio.AbstractEventLoop") -> None:
        """Deliver answers to futures on this loop from now on."""
        loop.add_reader(self._sock.fileno(), self._on_readable)

    async def request(self, head: dict[str, Any], raw: bytes = b"") -> Answer:
        """Send a request and await its answer. Only after `attach`."""
        import asyncio

        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        number = self.ask(head, raw)
        self._futures[number] = future
        return await future

    def _on_readable(self) -> None:
        for head, raw in self._decoder.feed(self._read()):
            future = self._futures.pop(int(head.get("n", 0)), None)
            if future is not None and not future.done():
                future.set_result((head, raw))

    def _read(self) -> bytes:
        data = self._sock.recv(256 * 1024)
        if not data:
            raise WorkerGone
        return data
