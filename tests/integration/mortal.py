"""Parts that can be killed: whatever they ask of the world goes through doors, and a dead part's doors lead nowhere.

What kill -9 leaves is what the world was told before. So a killed part is not stopped: from one call on, each of its
calls raises CancelledError instead of reaching anything, wherever the part stands.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.store import Store
from tests.leaks import PATIENCE

Answer = TypeVar("Answer")


class Life:
    """Of one part. It ends when it is told to, or at a call that was chosen before."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self._left: int | None = None
        self._done = False

    def doom(self, calls: int, *, done: bool) -> None:
        """Let so many calls through, then die: before the next, or with `done` when only its answer is lost."""
        self._left, self._done = calls, done

    def spare(self) -> None:
        """Nothing is chosen any more."""
        self._left = None

    def begin_again(self) -> None:
        """Another process in the place of the dead one."""
        self.spare()
        self.over.clear()

    async def ask(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Let one call through. Raises CancelledError when the part is dead, or dies meanwhile."""
        self._check()
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                await self._die(call)
        answer = await call()
        self._check()
        return answer

    async def _die(self, call: Callable[[], Awaitable[Any]]) -> None:
        if self._done:
            await call()
        self.over.set()
        raise asyncio.CancelledError

    def _check(self) -> None:
        if self.over.is_set():
            raise asyncio.CancelledError


class Door:
    """All that a part sees of a store, a queue or a place for blobs. Stands in for any of them."""

    def __init__(self, life: Life, target: Any) -> None:
        self.life = life
        self._target = target

    def lead_to(self, target: Any) -> None:
        """Another one from now on."""
        self._target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if inspect.iscoroutinefunction(found):
            return partial(self._ask, found)
        if inspect.isasyncgenfunction(found):
            return partial(self._stream, found)
        return found

    async def _ask(self, found: Callable[..., Awaitable[Any]], *given: Any, **named: Any) -> Any:
        return await self.life.ask(lambda: found(*given, **named))

    async def _stream(self, found: Callable[..., AsyncIterator[Any]], *given: Any, **named: Any) -> AsyncIterator[Any]:
        async with aclosing(found(*given, **named)) as blocks:  # type: ignore[type-var]
            while (block := await self.life.ask(lambda: anext(blocks, None))) is not None:
                yield block


class StoreDoor(Door):
    """A store: a door for each of its nouns."""

    def __init__(self, life: Life, store: Store | None) -> None:
        super().__init__(life, store)
        self._nouns = {noun: Door(life, None) for noun in Store.__annotations__}
        vars(self).update(self._nouns)
        self.lead_to(store)

    def lead_to(self, target: Any) -> None:
        """Another one from now on."""
        super().lead_to(target)
        for noun, door in self._nouns.items():
            door.lead_to(getattr(target, noun, None))


class Hatch(Door):
    """The queue as a worker sees it: it asks all the time, and is handed something when somebody lets it."""

    def __init__(self, life: Life, queue: Queue) -> None:
        super().__init__(life, queue)
        self.asking = asyncio.Event()
        self._asked: asyncio.Future[list[Delivery]] | None = None

    async def take(self, lanes: Any, count: int, priorities: Any, timeout: float) -> list[Delivery]:
        """Waits until `hand_over`, however long that is."""
        self._asked = asyncio.get_running_loop().create_future()
        self.asking.set()
        return await self._asked

    async def hand_over(self) -> Delivery | None:
        """What waits first; None: nothing does."""
        await self.asking.wait()
        found: list[Delivery] = await self._target.take(["default"], 1, list(Priority), 0)
        if found and self._asked is not None:
            self.asking.clear()
            self._asked.set_result(found)
        return found[0] if found else None


async def outlived(life: Life, work: Coroutine[Any, Any, Answer]) -> Answer | None:
    """What it brings; None: the part died of it. Whatever of it waits for what is dead is broken off."""
    task = asyncio.create_task(work)
    over = asyncio.create_task(life.over.wait())
    await asyncio.wait((task, over), return_when=asyncio.FIRST_COMPLETED)
    over.cancel()
    died = life.over.is_set()
    if died:
        task.cancel()
    await asyncio.gather(task, over, return_exceptions=True)
    return None if died else task.result()


async def first_of(*events: asyncio.Event) -> None:
    """Wait until one of them is set. Raises AssertionError when that takes far too long."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(waits, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        assert done, f"nothing happened for {PATIENCE:g} s"
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
