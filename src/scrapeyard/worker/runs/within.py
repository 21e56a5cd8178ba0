"""A time limit that costs nothing where nothing is waited for: setting a clock takes longer than many a built-in."""

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


async def within(seconds: float, work: Awaitable[T]) -> T:
    """What `work` comes to. Raises TimeoutError when it is not done so long after it first waits for something."""
    steps = work.__await__()
    try:
        first = next(steps)
    except StopIteration as end:
        done: T = end.value
        return done
    async with asyncio.timeout(seconds):
        return await _Begun(steps, first)


class _Begun(Generic[T]):
    """The rest of something that waits for `first`."""

    def __init__(self, steps: Generator[Any, Any, T], first: Any) -> None:
        self._steps = steps
        self._first = first

    def __await__(self) -> Generator[Any, Any, T]:
        step = self._first
        try:
            while True:
                try:
                    given = yield step
                except BaseException as error:  # noqa: BLE001 - whatever it is, the work must hear it
                    step = self._steps.throw(error)
                else:
                    step = self._steps.send(given)
        except StopIteration as end:
            done: T = end.value
            return done
