"""Pages that wait in the worker until a script reads them: counted and bounded, for each run and for the worker.

A script that asks for pages and does not read them must not fill the worker's memory. While much waits for a run, none
of its further fetches begin. What is under way may still arrive, so there is a hard limit besides, which ends the run.

No run waits for another: a run for which nothing waits may always begin a fetch.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from scrapeyard.sandbox.handles.child import Child
from scrapeyard.settings import SandboxSettings

_MB = 1024 * 1024
_AT_ONCE = 16
"""Fetches of one run that are under way at the same time."""


class UnreadPages:
    """Counts for all runs of a worker. Call it from the event loop's thread."""

    def __init__(self, settings: SandboxSettings) -> None:
        self.run_bytes = int(settings.unread_mb * _MB)
        self._settings = settings
        self._gates: set[FetchGate] = set()
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes that wait for all scripts."""
        return self._total

    @property
    def crowded(self) -> bool:
        """Whether runs for which pages wait should begin no fetch: half of what the worker may hold is taken."""
        return self._total > self._settings.unread_worker_mb * _MB / 2

    def gate(self, child: Child, end_run: Callable[[str], None]) -> "FetchGate":
        """A gate for one run; close it at the end. `end_run` is called with the reason if the run must end."""
        gate = FetchGate(self, child, end_run)
        self._gates.add(gate)
        return gate

    def count(self, gate: "FetchGate", more: int) -> None:
        """That many bytes more, or fewer if negative, wait for the run of this gate."""
        was_crowded = self.crowded
        self._total += more
        if more > 0:
            self._check(gate)
        elif was_crowded and not self.crowded:
            for other in self._gates:
                other.let_in()

    def forget(self, gate: "FetchGate") -> None:
        """The run is over."""
        self._gates.discard(gate)

    def _check(self, gate: "FetchGate") -> None:
        one, every = self._settings.unread_max_mb, self._settings.unread_worker_mb
        if gate.unread > one * _MB:
            gate.end_run(
                f"more than {one:g} MB of pages wait until the script reads them; fetch fewer at once, read each page "
                "before the next, or raise sandbox.unread_max_mb"
            )
        elif self._total > every * _MB:
            most = max(self._gates, key=lambda each: each.unread)
            most.end_run(
                f"more than {every:g} MB of pages wait for the scripts of this worker, most of them for this one; "
                "read each page before the next, or raise sandbox.unread_worker_mb"
            )


class FetchGate:
    """Lets a run begin its fetches in order: sixteen at once, fewer while large pages wait for the script.

    Use it as a context manager around each fetch; or `enter`, `wait` where that says no, and `leave` at the end.
    """

    def __init__(self, pages: UnreadPages, child: Child, end_run: Callable[[str], None]) -> None:
        self.end_run = end_run
        self.unread = 0
        """Bytes that wait for this run's script."""
        self._pages = pages
        self._child = child
        self._under_way = 0
        self._expected = 0
        """Size to expect of the next page: that of the last ones."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        child.on_unread = self._on_unread
        self._on_unread()

    async def __aenter__(self) -> None:
        if not self.enter():
            await self.wait()

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def enter(self) -> bool:
        """Whether a fetch may begin now; if not, `wait`."""
        if self._waiting or not self._may_begin():
            return False
        self._under_way += 1
        return True

    async def wait(self) -> None:
        """Until a fetch may begin."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._under_way -= 1
                self.let_in()
            raise

    def leave(self) -> None:
        """A fetch is over."""
        self._under_way -= 1
        if self._waiting:
            self.let_in()

    def note_size(self, page_bytes: int) -> None:
        """A page of this size has arrived."""
        self._expected = max(page_bytes, self._expected * 3 // 4)

    def let_in(self) -> None:
        """Begin the fetches that may begin now; none for a child that is gone."""
        while self._waiting and self._child.open and self._may_begin():
            turn = self._waiting.popleft()
            if not turn.done():
                self._under_way += 1
                turn.set_result(None)

    def close(self) -> None:
        """The run is over; its bytes no longer count. May be called twice."""
        self._child.on_unread = lambda: None
        self._pages.forget(self)
        self._set_unread(0)

    def _may_begin(self) -> bool:
        if self._under_way >= _AT_ONCE:
            return False
        if not self.unread and not self._under_way:
            return True
        if self.unread and self._pages.crowded:
            return False
        if not self._under_way:
            return self.unread <= self._pages.run_bytes
        return self.unread + (self._under_way + 1) * self._expected <= self._pages.run_bytes

    def _on_unread(self) -> None:
        before = self.unread
        self._set_unread(self._child.unread)
        if self.unread < before:
            self.let_in()

    def _set_unread(self, unread: int) -> None:
        more = unread - self.unread
        self.unread = unread
        if more:
            self._pages.count(self, more)
