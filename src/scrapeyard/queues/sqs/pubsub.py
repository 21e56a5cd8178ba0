"""Small messages on SQS: inboxes for each process that listens, and one for each gateway's replies."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

from scrapeyard.background import Background
from scrapeyard.errors import QueueUnavailable
from scrapeyard.queues.listeners import Listener, Listeners
from scrapeyard.queues.sqs.calls import (
    BATCH,
    LONGEST_POLL_SECONDS,
    QueueGone,
    SqsCalls,
    SqsPlace,
    body_of,
    message_of,
)
from scrapeyard.redis.outage import pauses
from scrapeyard.telemetry.events import Log

KEEP_SECONDS = 60
"""The least that SQS keeps messages: what is sent to a dead process is soon gone."""
DIRECTORY_SECONDS = 2.0
"""How long the list of those who listen is believed."""
TOUCH_SECONDS = 120.0
"""How often a process says that its inbox is in use."""
STALE_SECONDS = 900.0
"""An inbox that its process has not touched for so long is deleted by another."""
REPLIES = "replies:"
"""Only one process listens on such a channel, so the channel has an inbox of its own."""
_STOP_SECONDS = 2.0
_SEEN = "seen"


class SqsSubscriber:
    """Reads the inboxes of this process. Others find them by listing the queues.

    A process has one inbox for all channels with a plain name, and one for those of each family, such as `events:…`, so
    that nothing is sent to a process that listens to nothing of the family. A message sent within two seconds after a
    process began to listen may not reach it.
    """

    def __init__(self, prefix: str, calls: SqsCalls, patience: float, log: Log) -> None:
        self._prefix = f"{prefix}-inbox-"
        self._calls = calls
        self._patience = patience
        self._log = log
        self._me = uuid4().hex
        self._listeners = Listeners()
        self._background = Background()
        self._known: dict[str, tuple[float, list[str]]] = {}
        self._ready: dict[SqsPlace, asyncio.Event] = {}
        self._stopped = True

    def start(self) -> None:
        """Listening is allowed from now on."""
        self._stopped = False

    async def stop(self) -> None:
        """End every iteration and delete the inboxes."""
        self._stopped = True
        self._listeners.close()
        for ready in self._ready.values():
            ready.set()
        places, self._ready = list(self._ready), {}
        await self._background.stop()
        self._me = uuid4().hex  # SQS does not create a queue of the same name within a minute
        until = asyncio.get_running_loop().time() + min(self._patience, _STOP_SECONDS)
        for place in places:
            with suppress(QueueUnavailable):
                await self._calls.delete(place.name, until)

    async def send(self, channel: str, message: bytes, until: float) -> None:
        """To everyone who listens, or to the one whose replies these are. Raises QueueUnavailable."""
        given = {
            "MessageBody": body_of(message),
            "MessageAttributes": {"channel": {"DataType": "String", "StringValue": channel}},
        }
        names = await self._directory(channel, until)
        for outcome in await asyncio.gather(*(self._put(name, until, given) for name in names), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _put(self, name: str, until: float, given: dict[str, Any]) -> None:
        with suppress(QueueGone):
            await self._calls.at(name, "send_message", until, **given)

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Enters when the inbox exists, however long SQS is away."""
        listener = Listener(channel, self._log)
        self._listeners.add(channel, listener)
        try:
            if self._stopped:
                listener.close()
            else:
                await self._open(channel)
            yield listener
        finally:
            listener.close()
            self._listeners.remove(channel, listener)

    async def _open(self, channel: str) -> None:
        place = SqsPlace(self._own(channel), KEEP_SECONDS)
        if place not in self._ready:
            self._ready[place] = asyncio.Event()
            self._background.spawn(self._read(place), name="sqs-inbox")
            if "upkeep" not in self._background:
                self._background.spawn(self._stay(), name="sqs-inboxes", key="upkeep")
        await self._ready[place].wait()

    def _own(self, channel: str) -> str:
        if channel.startswith(REPLIES):
            return f"{self._prefix}replies-{hashlib.sha256(channel.encode()).hexdigest()[:32]}"
        return f"{self._family(channel)}{self._me}"

    def _family(self, channel: str) -> str:
        word, is_family, _ = channel.partition(":")
        plain = word.encode().hex() if not word.isalnum() or not word.isascii() else word
        return f"{self._prefix}{plain[:24]}-" if is_family else f"{self._prefix}all-"

    async def _read(self, place: SqsPlace) -> None:
        tries = pauses()
        while not self._stopped:
            try:
                await self._touch(place)
                self._ready[place].set()
                while True:
                    await self._receive(place)
                    tries = pauses()
            except QueueUnavailable:
                await asyncio.sleep(next(tries))

    async def _receive(self, place: SqsPlace) -> None:
        until = asyncio.get_running_loop().time() + LONGEST_POLL_SECONDS + self._patience
        answer = await self._calls.on(
            place,
            "receive_message",
            until,
            MaxNumberOfMessages=BATCH,
            WaitTimeSeconds=LONGEST_POLL_SECONDS,
            MessageAttributeNames=["channel"],
        )
        messages = answer.get("Messages", [])
        for raw in messages:
            channel = raw.get("MessageAttributes", {}).get("channel", {}).get("StringValue", "")
            self._listeners.give(channel, message_of(raw["Body"]))
        entries = [{"Id": str(n), "ReceiptHandle": raw["ReceiptHandle"]} for n, raw in enumerate(messages)]
        if entries:
            await self._calls.on(place, "delete_message_batch", until, Entries=entries)

    async def _directory(self, channel: str, until: float) -> list[str]:
        """The inboxes of all processes that listen; our own, if we have one, at any rate."""
        if channel.startswith(REPLIES):
            return [self._own(channel)]
        now, family = asyncio.get_running_loop().time(), self._family(channel)
        believed_until, names = self._known.get(family, (0.0, []))
        if now >= believed_until:
            names = await self._calls.names(family, until)
            self._known[family] = (now + DIRECTORY_SECONDS, names)
        own = self._own(channel)
        is_ready = any(place.name == own for place in self._ready)
        return [*(name for name in names if name != own), *([own] if is_ready else [])]

    async def _stay(self) -> None:
        """Keep the inboxes of this process, and delete those of processes that died."""
        cleaned = float("-inf")
        while True:
            await asyncio.sleep(TOUCH_SECONDS)
            with suppress(QueueUnavailable):
                for place in list(self._ready):
                    await self._touch(place)
                if asyncio.get_running_loop().time() > cleaned + STALE_SECONDS:
                    cleaned = asyncio.get_running_loop().time()
                    await self.clean()

    async def _touch(self, place: SqsPlace) -> None:
        await self._calls.on(place, "tag_queue", self._until(), Tags=_tags())

    async def clean(self) -> None:
        """Delete the inboxes that no process has touched for a while. Raises QueueUnavailable."""
        for name in await self._calls.names(self._prefix, self._until()):
            with suppress(QueueGone):
                seen = (await self._calls.at(name, "list_queue_tags", self._until())).get("Tags", {}).get(_SEEN, "")
                if not seen.isdigit():
                    await self._calls.at(name, "tag_queue", self._until(), Tags=_tags())
                elif int(seen) < time.time() - STALE_SECONDS:
                    await self._calls.delete(name, self._until())

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self._patience


def _tags() -> dict[str, str]:
    """Say that an inbox is in use now."""
    return {_SEEN: str(int(time.time()))}
