"""Subscriptions to channels, and signals: small messages to every process, decoded here and passed on by their kind."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from scrapeyard.background import Background
from scrapeyard.errors import ScrapeyardError
from scrapeyard.model import Signal
from scrapeyard.queues.messages import SIGNALS, decode_signal
from scrapeyard.queues.port import Queue
from scrapeyard.telemetry.events import Log, get_log

S = TypeVar("S", bound=Signal)
PAUSE_SECONDS = 0.5
log = get_log("queue")


class Subscription:
    """Listens on a channel until it is stopped, and again PAUSE_SECONDS after the broker failed.

    A message that is sent meanwhile is missed, so subscribers look in the store now and then.
    """

    def __init__(
        self,
        queue: Queue,
        channel: str,
        receive: Callable[[bytes], Awaitable[None] | None],
        *,
        name: str,
        wait_seconds: float = 0.0,
        log: Log | None = None,
        on_listening: Callable[[], None] = lambda: None,
        on_away: Callable[[ScrapeyardError], None] = lambda _: None,
    ) -> None:
        """What `receive` returns is awaited before the next message is read. A message that it cannot decode is
        dropped; `log` reports that, None where another listener on the channel does. An internal error in it is logged,
        and listening continues. `start` waits up to `wait_seconds` for the broker. `on_listening` is called each time
        listening begins."""
        self._queue = queue
        self._channel = channel
        self._receive = receive
        self._name = name
        self._wait_seconds = wait_seconds
        self._log = log
        self._on_listening = on_listening
        self._on_away = on_away
        self._listening = asyncio.Event()
        self._background = Background()

    @property
    def started(self) -> bool:
        """Whether it was started and not stopped."""
        return self._background.started

    async def start(self) -> None:
        """Listen in the background. May be called twice."""
        self._listening.clear()
        if self._background.start(self._listen_forever, name=self._name) and self._wait_seconds:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._wait_seconds):
                    await self._listening.wait()

    async def stop(self) -> None:
        """Stop listening. May be called twice."""
        await self._background.stop()

    async def _listen_forever(self) -> None:
        while True:
            try:
                async with self._queue.listen(self._channel) as messages:
                    self._listening.set()
                    self._on_listening()
                    async for message in messages:
                        await self._pass_on(message)
            except ScrapeyardError as error:
                self._on_away(error)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _pass_on(self, message: bytes) -> None:
        try:
            done = self._receive(message)
            if done is not None:
                await done
        except msgspec.MsgspecError as error:
            if self._log is not None:
                self._log.warning("queue.dropped_message", channel=self._channel, error=str(error))
        except ScrapeyardError:
            raise
        except Exception as error:
            log.error("queue.message_failed", channel=self._channel, error=repr(error), exc_info=error)


class Signals(Subscription):
    """A subscription to the channel of signals, for several subscribers."""

    def __init__(self, queue: Queue, name: str, **options: Any) -> None:
        """`options` are those of `Subscription`."""
        super().__init__(queue, SIGNALS, self._dispatch, name=name, **options)
        self._callbacks: dict[type, list[Callable[[Any], Awaitable[None] | None]]] = {}

    def subscribe(self, kind: type[S], callback: Callable[[S], Awaitable[None] | None]) -> None:
        """Pass signals of this kind to `callback`. What it returns is awaited before the next signal is read.
        An internal error in it is logged, and listening continues."""
        self._callbacks.setdefault(kind, []).append(callback)

    async def _dispatch(self, message: bytes) -> None:
        signal = decode_signal(message)
        for callback in self._callbacks.get(type(signal), ()):
            try:
                done = callback(signal)
                if done is not None:
                    await done
            except ScrapeyardError:
                raise
            except Exception as error:
                log.error("queue.signal_failed", kind=type(signal).__name__, error=repr(error), exc_info=error)
