"""Signals: small messages that every process hears. They are decoded here and passed on by their kind."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from scrapeyard.errors import ScrapeyardError
from scrapeyard.model import Signal
from scrapeyard.queues.listeners import PAUSE_SECONDS
from scrapeyard.queues.messages import SIGNALS, decode_signal
from scrapeyard.queues.port import Queue
from scrapeyard.telemetry.events import Log, get_log

S = TypeVar("S", bound=Signal)
log = get_log("queue")


class Signals:
    """Listens until it is stopped, and again PAUSE_SECONDS after the broker failed.

    A signal that is sent meanwhile is missed, so subscribers look in the store now and then.
    """

    def __init__(
        self,
        queue: Queue,
        name: str,
        *,
        wait_seconds: float = 0.0,
        log: Log | None = None,
        on_listening: Callable[[], None] = lambda: None,
        on_away: Callable[[ScrapeyardError], None] = lambda _: None,
    ) -> None:
        """`start` waits up to `wait_seconds` for the broker. `log` reports messages that cannot be decoded; None where
        another listener on the channel does. `on_listening` is called each time listening begins."""
        self._queue = queue
        self._name = name
        self._wait_seconds = wait_seconds
        self._log = log
        self._on_listening = on_listening
        self._on_away = on_away
        self._callbacks: dict[type, list[Callable[[Any], Awaitable[None] | None]]] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def started(self) -> bool:
        """Whether it was started and not stopped."""
        return self._task is not None

    def subscribe(self, kind: type[S], callback: Callable[[S], Awaitable[None] | None]) -> None:
        """Pass signals of this kind to `callback`. What it returns is awaited before the next signal is read.
        An internal error in it is logged, and listening continues."""
        self._callbacks.setdefault(kind, []).append(callback)

    async def start(self) -> None:
        """Listen in the background. May be called twice."""
        if self._task is not None:
            return
        listening = asyncio.Event()
        self._task = asyncio.create_task(self._listen_forever(listening), name=self._name)
        if self._wait_seconds:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._wait_seconds):
                    await listening.wait()

    async def stop(self) -> None:
        """Stop listening. May be called twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _listen_forever(self, listening: asyncio.Event) -> None:
        while True:
            try:
                async with self._queue.listen(SIGNALS) as messages:
                    listening.set()
                    self._on_listening()
                    async for message in messages:
                        await self._receive(message)
            except ScrapeyardError as error:
                self._on_away(error)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _receive(self, message: bytes) -> None:
        try:
            signal = decode_signal(message)
        except msgspec.MsgspecError as error:
            if self._log is not None:
                self._log.warning("queue.dropped_message", channel=SIGNALS, error=str(error))
            return
        for callback in self._callbacks.get(type(signal), ()):
            try:
                done = callback(signal)
                if done is not None:
                    await done
            except ScrapeyardError:
                raise
            except Exception as error:
                log.error("queue.signal_failed", kind=type(signal).__name__, error=repr(error), exc_info=error)
