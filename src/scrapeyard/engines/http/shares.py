"""What the fetches of one worker share: how many requests are under way, and the memory that their bodies take."""

import asyncio
from collections import deque

SMALL = 1024 * 1024
"""Bytes of a body that need no share: most pages have less, and `http.concurrency` bounds how many there are."""


class RequestSlots:
    """A number of requests that are under way at once. Others wait in the order of asking.

    As `asyncio.Semaphore`, in a fifth of the time where nobody waits.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Whether there was a free slot; if not, `wait`."""
        if self._free <= 0 or self._waiting:
            return False
        self._free -= 1
        return True

    async def wait(self) -> None:
        """Until there is one."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give()  # it had come, and nobody is there to use it
            raise

    def give(self) -> None:
        """A slot that was taken is free again: the next in line has it."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class BodyMemory:
    """A number of bytes that large bodies share. Those that find no room wait in the order of asking.

    One may always go on, however large it is. Nobody holds a share while it waits for one, so nobody waits for ever.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.used = 0

    async def take(self, size: int) -> None:
        """Wait for room."""
        if not self._waiting and self._fits(size):
            self.used += size
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(size)  # it had come, and nobody is there to use it
            raise
        finally:
            self._wake()

    def give(self, size: int) -> None:
        """What was taken is free again."""
        self.used -= size
        self._wake()

    def _fits(self, size: int) -> bool:
        return not self.used or self.used + size <= self._most

    def _wake(self) -> None:
        while self._waiting and (self._waiting[0][1].done() or self._fits(self._waiting[0][0])):
            size, turn = self._waiting.popleft()
            if not turn.done():
                self.used += size
                turn.set_result(None)


class BodyShare:
    """What one fetch holds of it: nothing until its body grows large, then enough for all that it may become."""

    __slots__ = ("_held", "_memory", "is_waiting")

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self._held = 0
        self.is_waiting = False

    async def need(self, size: int) -> None:
        """Wait for room for so many bytes, once; where something is held already, nothing more is asked for."""
        if size > SMALL and not self._held:
            self.is_waiting = True
            await self._memory.take(size)
            self._held, self.is_waiting = size, False

    def close(self) -> None:
        """Give it back."""
        if self._held:
            self._memory.give(self._held)
            self._held = 0
