"""Keeps work that never waits from holding the event loop: after a millisecond it lets everybody else have a turn."""

import asyncio
import time
from collections import deque

SLICE_SECONDS = 0.001


class Turns:
    """One for all batches of a worker. Of those who ask, one at a time goes on, in the order in which they came."""

    def __init__(self) -> None:
        self._ends = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def breathe(self) -> None:
        """Call it before each small piece of work. Returns at once while the millisecond lasts."""
        if time.perf_counter() < self._ends:
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            loop.call_soon(self._next)
        await turn

    def _next(self) -> None:
        """Once in each round of the loop, so that what the network brought is served in between."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._ends = time.perf_counter() + SLICE_SECONDS
                break
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
