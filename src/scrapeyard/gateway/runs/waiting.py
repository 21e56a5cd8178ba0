"""Callers that wait for runs to end, in this process and for runs that end in another.

Outcomes come on this gateway's reply channel. A reply can be lost (a broker restarts, a run was accepted by another
gateway), so a sweep also polls the store for runs that callers have waited on for a while.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto

from msgspec import Struct
from starlette.types import Receive

from scrapeyard.background import Background
from scrapeyard.errors import Refusal, ScrapeyardError
from scrapeyard.gateway.runs.documents import settle
from scrapeyard.model import ExitReason, Run
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.queues.signals import Subscription
from scrapeyard.store.ports.runs import RunStore
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")
OWN_SECONDS = 1.0
"""Poll interval for a run whose reply comes to this gateway."""
OTHERS_SECONDS = 0.25
"""Poll interval for a run whose reply goes elsewhere or nowhere."""
WATCH_SECONDS = 0.05
"""A caller that disconnects earlier is noticed only after this time."""
SWEEP_BATCH = 500
LATELY = 4096
"""How many ended runs are remembered by id."""


class Wake(Enum):
    """Why a call no longer waits."""

    ENDED = auto()
    TIMEOUT = auto()
    GONE = auto()
    """The caller disconnected."""
    STOPPING = auto()


class Call:
    """One caller and the runs it waits for."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = {run.id: run for run in runs}
        self._open = {run.id for run in runs if not run.status.is_final}
        self._woken: asyncio.Future[Wake] = asyncio.get_running_loop().create_future()
        if not self._open:
            self.wake(Wake.ENDED)

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs as last known, in the order given."""
        return tuple(self._runs.values())

    @property
    def open(self) -> tuple[Run, ...]:
        """Runs that have not ended."""
        return tuple(run for run in self._runs.values() if run.id in self._open)

    def accepted(self, run_id: str) -> Run:
        """One run as last known."""
        return self._runs[run_id]

    def settle(self, run: Run) -> None:
        """Record that one run has ended."""
        self._runs[run.id] = run
        self._open.discard(run.id)
        if not self._open:
            self.wake(Wake.ENDED)

    def wake(self, why: Wake) -> None:
        """Stop waiting; the first reason counts."""
        if not self._woken.done():
            self._woken.set_result(why)

    async def wait(self, seconds: float, receive: Receive | None = None) -> Wake:
        """Wait until all ended. `receive` is the request's, its body read: it reports when the caller disconnects."""
        if self._woken.done():
            return self._woken.result()
        timer = asyncio.get_running_loop().call_later(seconds, self.wake, Wake.TIMEOUT)
        watch = _LateTask(lambda: self._watch(receive)) if receive is not None else None
        try:
            return await self._woken
        finally:
            timer.cancel()
            if watch is not None:
                watch.cancel()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.wake(Wake.GONE)


class _LateTask:
    """A task that starts a moment later, or never if cancelled first: most calls are answered by then."""

    def __init__(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._begin)

    def cancel(self) -> None:
        """May be called twice."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work())


class _Awaited(Struct):
    calls: list[Call]
    every: float
    next_look: float


class Waiters:
    """All waiting calls of this gateway, at most `max_calls`; more are refused with 429."""

    def __init__(
        self,
        queue: Queue,
        runs: RunStore,
        gateway_id: str,
        max_calls: int = 2000,
        on_end: Callable[[ExitReason], None] = lambda _: None,
    ) -> None:
        self._runs = runs
        self._gateway_id = gateway_id
        self._max_calls = max_calls
        self._on_end = on_end
        self._calls: set[Call] = set()
        self._awaited: dict[str, _Awaited] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._closing = False
        self._background = Background()
        replies = messages.replies(gateway_id)
        self._replies = Subscription(
            queue,
            replies,
            self._receive,
            name="gateway-replies",
            wait_seconds=2.0,
            log=log,
            on_away=lambda error: log.warning("gateway.not_heard", channel=replies, error=error.message),
        )

    @property
    def count(self) -> int:
        """How many calls wait now."""
        return len(self._calls)

    async def start(self) -> None:
        """Subscribe and sweep in the background. Returns once subscribed, or after two seconds without a broker."""
        if self._background.start(self._sweep, name="gateway-sweep"):
            self._closing = False
            await self._replies.start()

    def close(self) -> None:
        """Make every call answer at once with what is known; later calls do not wait either."""
        self._closing = True
        for call in self._calls:
            call.wake(Wake.STOPPING)

    async def stop(self) -> None:
        """Close, and end the background tasks. May be called twice."""
        self.close()
        await self._replies.stop()
        await self._background.stop()

    @contextmanager
    def join(self, runs: Sequence[Run]) -> Iterator[Call]:
        """Wait for these runs while the context lasts. Enter before they are published. Raises Refusal (429)."""
        if len(self._calls) >= self._max_calls:
            raise Refusal("too_many_waiting", 429, f"{self._max_calls} calls wait already", retry_after=1)
        call = Call(runs)
        self._enter(call)
        try:
            yield call
        finally:
            self._leave(call)

    def ended_lately(self, run_id: str) -> bool:
        """Whether a reply reported the end of this run; its row may not show it yet."""
        return run_id in self._ended

    def _enter(self, call: Call) -> None:
        self._calls.add(call)
        now = asyncio.get_running_loop().time()
        for run in call.open:
            every = OWN_SECONDS if run.reply_to == self._gateway_id else OTHERS_SECONDS
            awaited = self._awaited.setdefault(run.id, _Awaited(calls=[], every=every, next_look=now + every))
            awaited.calls.append(call)
        if self._closing:
            call.wake(Wake.STOPPING)

    def _leave(self, call: Call) -> None:
        self._calls.discard(call)
        for run in call.runs:
            awaited = self._awaited.get(run.id)
            if awaited is not None and call in awaited.calls:
                awaited.calls.remove(call)
                if not awaited.calls:
                    del self._awaited[run.id]

    def _receive(self, message: bytes) -> None:
        outcome = messages.decode_outcome(message)
        if outcome.retry_after is not None:
            return
        self._on_end(outcome.exit_reason)
        self._remember(outcome.run_id)
        awaited = self._awaited.pop(outcome.run_id, None)
        for call in awaited.calls if awaited else ():
            call.settle(settle(call.accepted(outcome.run_id), outcome))

    def _remember(self, run_id: str) -> None:
        self._ended[run_id] = None
        if len(self._ended) > LATELY:
            self._ended.popitem(last=False)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(OTHERS_SECONDS)
            try:
                await self._poll(self._due())
            except ScrapeyardError as error:
                log.warning("gateway.sweep_failed", error=error.message)

    def _due(self) -> list[str]:
        now = asyncio.get_running_loop().time()
        due = [run_id for run_id, awaited in self._awaited.items() if awaited.next_look <= now]
        for run_id in due:
            self._awaited[run_id].next_look = now + self._awaited[run_id].every
        return due

    async def _poll(self, run_ids: Sequence[str]) -> None:
        for start in range(0, len(run_ids), SWEEP_BATCH):
            self._settle(await self._runs.finals(run_ids[start : start + SWEEP_BATCH]))

    def _settle(self, runs: Iterable[Run]) -> None:
        for run in runs:
            awaited = self._awaited.pop(run.id, None)
            for call in awaited.calls if awaited else ():
                call.settle(run)
