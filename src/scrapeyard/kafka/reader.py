"""A consumer and the thread that polls it; what comes is handed to the event loop in batches."""

import asyncio
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from scrapeyard.kafka.address import KafkaAddress
from scrapeyard.kafka.link import ended, tell

T = TypeVar("T")
BATCH = 500
POLL_SECONDS = 0.02
"""How long a call may have to wait for the poll."""
AHEAD = 8
"""Batches that may wait for the event loop: a loop that is busy must not have a whole topic read into memory."""


class KafkaReader:
    """Begins with `start` and is closed by `stop`; it cannot be started again."""

    def __init__(
        self,
        address: KafkaAddress,
        receive: Callable[[list[Message]], None],
        note: Callable[[KafkaError], None],
        own: Mapping[str, Any],
    ) -> None:
        """`receive` is called in the loop's thread, `note` in the reader's. Raises SettingsInvalid."""
        self._receive = receive
        self._stopping = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(AHEAD)
        self._calls: queue.SimpleQueue[tuple[Callable[[Consumer], Any], asyncio.Future[Any]]] = queue.SimpleQueue()
        properties = {
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "queued.min.messages": BATCH,
            "queued.max.messages.kbytes": 8192,
            "fetch.queue.backoff.ms": 20,  # by default a full queue is looked at again after a second
            "topic.metadata.refresh.interval.ms": 30_000,
            "error_cb": note,
            **own,
        }
        try:
            self._consumer = Consumer(address.client(properties))
        except KafkaException as error:
            raise address.refused(error) from None
        self._thread = threading.Thread(target=self._poll, name="kafka-reader", daemon=True)

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    async def stop(self) -> None:
        """Returns when the consumer is closed."""
        self._stopping.set()
        await ended(self._thread)

    def call(self, call: Callable[[Consumer], T]) -> "asyncio.Future[T | None]":
        """Do it in the reader's thread, in order: a consumer serves one caller at a time, and one that polls keeps
        others out. None if it failed, or the reader was stopped first."""
        future: asyncio.Future[T | None] = self._loop.create_future()
        self._calls.put((call, future))
        if self._stopping.is_set():
            future.set_result(None)
        return future

    def _poll(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._room.acquire(timeout=POLL_SECONDS):
                    self._read()
                self._work()
            self._work()
        finally:
            self._consumer.close()

    def _read(self) -> None:
        first = self._consumer.poll(POLL_SECONDS)
        if first is None:
            self._room.release()
        else:
            tell(self._loop, self._hand_over, [first, *self._consumer.consume(BATCH, 0)])

    def _hand_over(self, messages: list[Message]) -> None:
        """In the loop's thread."""
        self._room.release()
        self._receive(messages)

    def _work(self) -> None:
        while True:
            try:
                call, future = self._calls.get_nowait()
            except queue.Empty:
                return
            answer = None
            with suppress(KafkaException, RuntimeError):
                answer = call(self._consumer)
            tell(self._loop, _set, future, answer)


def _set(future: "asyncio.Future[Any]", answer: object) -> None:
    if not future.done():
        future.set_result(answer)
