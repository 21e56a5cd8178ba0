"""Tasks that run in the background of something long-lived, and end with it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from scrapeyard.telemetry.events import get_log

log = get_log("background")


class Background:
    """The background tasks of one owner. One that fails is logged once, as `background.failed`, and not restarted."""

    def __init__(self) -> None:
        self.started = False
        """Whether `start` was called, and `stop` not since."""
        self._tasks: dict[object, asyncio.Task[Any]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: object) -> bool:
        return key in self._tasks

    def start(self, *loops: Callable[[], Coroutine[Any, Any, None]], name: str) -> bool:
        """Run these until `stop`. Does nothing and returns False if it is started already."""
        if self.started:
            return False
        self.started = True
        for loop in loops:
            self.spawn(loop(), name=name)
        return True

    def spawn(self, work: Coroutine[Any, Any, Any], *, name: str, key: object = None) -> None:
        """Run this until it ends, or until `stop`. `key` is in this object meanwhile."""
        task = asyncio.create_task(work, name=name)
        key = task if key is None else key
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._ended(key, task))

    async def idle(self) -> None:
        """Wait until no task runs."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def stop(self) -> bool:
        """Cancel every task and wait for its end. Returns whether `start` was called before. May be called twice."""
        started, self.started = self.started, False
        self.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))
        return started

    def cancel(self) -> None:
        """Cancel every task; `stop` waits for their ends."""
        for task in self._tasks.values():
            task.cancel()

    def _ended(self, key: object, task: asyncio.Task[Any]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background.failed", task=task.get_name(), error=repr(error), exc_info=error)
