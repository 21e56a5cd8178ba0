"""Time limits of many fetches at once.

`asyncio.timeout` sets a timer for each and takes it back again, though nearly every fetch ends long before its limit.
Here those whose end is far are only looked through now and then; each gets a timer of its own shortly before its end,
so that it is as exact.
"""

import asyncio
from types import TracebackType

_EVERY_SECONDS = 0.5


class Deadlines:
    """For the tasks of one event loop."""

    def __init__(self, every_seconds: float = _EVERY_SECONDS) -> None:
        """`every_seconds`: how often those that are far from their end are looked through."""
        self._every = every_seconds
        self._far: set[Limit] = set()
        self._looking = False

    def within(self, seconds: float | None) -> "Limit":
        """A context that raises TimeoutError, as asyncio.timeout does, when it lasts longer. None: it may last."""
        return Limit(self, seconds)

    def watch(self, limit: "Limit", seconds: float) -> None:
        """From now on."""
        loop = asyncio.get_running_loop()
        limit.ends = loop.time() + seconds
        if seconds <= self._every:
            limit.timer = loop.call_at(limit.ends, limit.end)
            return
        self._far.add(limit)
        if not self._looking:
            self._looking = True
            loop.call_later(self._every, self._look)

    def leave(self, limit: "Limit") -> None:
        """No longer."""
        self._far.discard(limit)
        if limit.timer is not None:
            limit.timer.cancel()

    def _look(self) -> None:
        """Those that end before the next look get timers of their own."""
        loop = asyncio.get_running_loop()
        next_look = loop.time() + self._every
        for limit in [limit for limit in self._far if limit.ends <= next_look]:
            self._far.remove(limit)
            limit.timer = loop.call_at(limit.ends, limit.end)
        self._looking = bool(self._far)
        if self._looking:
            loop.call_at(next_look, self._look)


class Limit:
    """One task's, entered once."""

    __slots__ = ("_before", "_deadlines", "_is_over", "_seconds", "_task", "ends", "timer")

    def __init__(self, deadlines: Deadlines, seconds: float | None) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._task: asyncio.Task[object] | None = None
        self._is_over = False
        self.ends = 0.0
        self.timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        if self._seconds is None:
            return
        self._task = asyncio.current_task()
        if self._task is None:
            raise RuntimeError("a time limit holds for a task, and there is none")
        self._before = self._task.cancelling()
        self._deadlines.watch(self, self._seconds)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.leave(self)
        # Who cancels the task beside us is heard: then the count stays above what it was.
        if self._is_over and self._task and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def end(self) -> None:
        """The time is over."""
        self._is_over = True
        if self._task is not None:
            self._task.cancel()
