"""What a run logs and does, published while it goes on, for whoever watches it."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec.structs import asdict

from scrapeyard.errors import BadRequest, Unavailable
from scrapeyard.model import Delivery, FetchTrace, LogLine, RunProgress, RunWait
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.telemetry.events import get_log

log = get_log("worker")
NOTE_SECONDS = 1.0
"""Minimum seconds between two writes of a run's progress."""
NoteProgress = Callable[[RunProgress | None, RunWait | None], Awaitable[bool]]
LIVE_AFTER = 0.1
"""Shorter runs publish no live events: nobody could have subscribed in time."""
_TOGETHER_SECONDS = 0.02
"""Events that come so soon after one another are published together: a run may fetch thousands of pages a second."""
_FETCHES_TOGETHER = 10
"""Fetches that are told together, of those beyond the first that the run keeps: nobody reads 500 a second."""
TOLD_SECONDS = 1.0
"""Shorter waits for a site's turn are not told."""
REPLAY_LINES = 1000
"""Log lines in one message of a replay."""


class LiveEvents:
    """Publishes a run's events to subscribers a little later, without slowing the run. Bounded: a burst loses what came
    first of it, and a subscriber sees how it ended."""

    def __init__(self, queue: Queue, delivery: Delivery, note: NoteProgress | None = None) -> None:
        """`note` writes how far the run is, at most every NOTE_SECONDS."""
        self._queue = queue
        self._run_id = delivery.run_id
        self._attempt = delivery.attempt
        self._lines: list[LogLine] = []
        self._is_replay_asked = False
        self._waiting = self._none()
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(LIVE_AFTER, self._begin)
        self._wake = asyncio.Event()
        self._note = note
        self._progress: RunProgress | None = None
        self._wait: RunWait | None = None
        self._is_unnoted = False
        self._noted_at = -NOTE_SECONDS

    def add_line(self, line: LogLine) -> None:
        """Queue an event, and keep the line for those who come later."""
        self._lines.append(line)
        self.add({"type": "log", "id": messages.line_id(self._attempt, len(self._lines)), **asdict(line)})

    def replay(self) -> None:
        """Publish every line so far again, soon. Whoever has some of them knows them by their ids."""
        self._is_replay_asked = True
        self._wake.set()

    def add_progress(self, progress: RunProgress) -> None:
        """Queue an event, and write it down soon. The end of the run writes the last one."""
        self._progress, self._is_unnoted = progress, True
        self.add({"type": "progress", **asdict(progress)})

    def add_wait(self, wait: RunWait, seconds: float) -> None:
        """Queue an event, and write it down soon, unless the same wait is written already."""
        if self._wait is None or abs(wait.until - self._wait.until) > TOLD_SECONDS or wait.site != self._wait.site:
            self._wait, self._is_unnoted = wait, True
        told = {"reason": wait.reason, "site": wait.site, "seconds": round(seconds, 1), "message": wait.message}
        self.add({"type": "waiting", **told})

    def end_wait(self) -> None:
        """The run goes on; that is written down soon, unless the wait would be over by then."""
        if self._wait is not None:
            self._is_unnoted = self._is_unnoted or self._wait.until > time.time()
            self._wait = None
            self._wake.set()

    def add(self, message: dict[str, Any]) -> None:
        """Queue an event; drops the oldest if too many are queued."""
        self._put(message)

    @property
    def has_room(self) -> bool:
        """Whether one more fetch is told. Of a run that fetches thousands of pages a second, not all are."""
        return len(self._waiting) < _FETCHES_TOGETHER

    def add_fetch(self, trace: FetchTrace) -> None:
        """Queue an event. It becomes a message when it is published, which most runs are too short for."""
        self._put(trace)

    def _put(self, message: dict[str, Any] | FetchTrace) -> None:
        self._waiting.append(message)
        if not self._wake.is_set():
            self._wake.set()

    @staticmethod
    def _none() -> deque[dict[str, Any] | FetchTrace]:
        return deque(maxlen=1000)

    async def stop(self) -> None:
        """Publish what is queued, if the run was long enough, and stop."""
        self._timer.cancel()
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait((self._task,))
        for message in self._waiting:
            await self._publish(message)
        await self._publish_lines()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._work())

    async def _work(self) -> None:
        await self._publish({"type": "status", "status": "running"})
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(NOTE_SECONDS if self._is_unnoted and self._note else None):
                    await self._wake.wait()
            await asyncio.sleep(_TOGETHER_SECONDS)
            self._wake.clear()
            waiting, self._waiting = self._waiting, self._none()
            for message in waiting:
                await self._publish(message)
            await self._publish_lines()
            await self._write_progress()

    async def _publish_lines(self) -> None:
        if not self._is_replay_asked:
            return
        self._is_replay_asked = False
        total = len(self._lines)
        for at in range(0, max(1, total), REPLAY_LINES):
            first, end = messages.line_id(self._attempt, at + 1), min(total, at + REPLAY_LINES)
            await self._publish({"type": "logs", "first": first, "lines": self._lines[at:end], "more": end < total})

    async def _write_progress(self) -> None:
        """Tried again a second later if the database is away, or does not know yet that the run began."""
        now = time.monotonic()
        if not self._is_unnoted or self._note is None or now - self._noted_at < NOTE_SECONDS:
            return
        self._is_unnoted, self._noted_at = False, now
        written = False
        with contextlib.suppress(Unavailable):
            written = await self._note(self._progress, self._wait)
        self._is_unnoted = self._is_unnoted or not written

    async def _publish(self, message: dict[str, Any] | FetchTrace) -> None:
        """Best effort: if the queue is away the event is lost, and `/logs` has it later."""
        if isinstance(message, FetchTrace):
            message = {"type": "fetch", **asdict(message)}
        try:
            await self._queue.send(messages.events(self._run_id), msgspec.json.encode(message))
        except (Unavailable, BadRequest) as error:
            log.debug("worker.event_lost", run=self._run_id, error=error.message)
