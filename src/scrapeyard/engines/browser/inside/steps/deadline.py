"""A deadline that holds, whatever the work does."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Its result. Raises TimeoutError when time is up, and leaves the work alone: the driver may take a cancel without
    ending, while it waits for a page that never answers. Cancelling leaves it alone as well."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(forget)
    try:
        await asyncio.wait((task,), timeout=seconds)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()


def forget(task: "asyncio.Future[T]") -> None:
    """Nobody may be left to hear of its failure."""
    if not task.cancelled():
        task.exception()
