"""Calls to Amazon SQS, or to a server that speaks as it: names, bodies, and patience."""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError
from msgspec import Struct

from scrapeyard.errors import QueueUnavailable, QueueUncertain
from scrapeyard.redis.outage import Outage, pauses

LONGEST_POLL_SECONDS = 20
BATCH = 10
"""The most messages that one request of SQS holds."""
MAX_BODY_BYTES = 256 * 1024
MAX_MESSAGE_BYTES = MAX_BODY_BYTES * 3 // 4 - 1024
"""What fits even if it must be written as base64."""
_NOT_IN_BODIES = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BASE64 = "base64:"
_GONE = ("QueueDoesNotExist", "NonExistentQueue")
_BUSY = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "ServiceUnavailable", "InternalError", "InternalFailure")


def body_of(message: bytes) -> str:
    """As text that SQS takes: the message itself where it can be, for people who look into the queue."""
    with suppress(UnicodeDecodeError):
        text = message.decode()
        if text and not text.startswith(_BASE64) and not _NOT_IN_BODIES.search(text):
            return text
    return _BASE64 + base64.b64encode(message).decode()


def message_of(body: str) -> bytes:
    """The reverse of `body_of`; a body of somebody else comes out as it is."""
    if body.startswith(_BASE64):
        with suppress(ValueError):
            return base64.b64decode(body.removeprefix(_BASE64), validate=True)
    return body.encode(errors="replace")


class QueueGone(QueueUnavailable):
    """There is no such queue."""


class SqsPlace(Struct, frozen=True):
    """A queue of SQS, and how long it keeps and hides messages if it must be created."""

    name: str
    keep_seconds: int
    hide_seconds: int = 30


class SqsCalls:
    """One client for the process. A request that fails is tried again until the patience is over."""

    def __init__(self, options: dict[str, Any], outage: Outage) -> None:
        """`options` are those of botocore's `create_client`."""
        self._options = options
        self._outage = outage
        self._stack = AsyncExitStack()
        self._client: Any = None
        self._urls: dict[str, str] = {}

    async def start(self) -> None:
        """Make the client; it connects with the first request."""
        if self._client is not None:
            return
        config = AioConfig(
            connect_timeout=2,
            read_timeout=LONGEST_POLL_SECONDS + 5,
            retries={"total_max_attempts": 1},
            max_pool_connections=200,
            tcp_keepalive=True,
            user_agent="scrapeyard",  # botocore composes its own anew for each request
        )
        making = get_session().create_client("sqs", config=config, **self._options)
        self._client = await self._stack.enter_async_context(making)

    async def stop(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await self._stack.aclose()
            self._outage.forget(self)

    async def ask(self, operation: str, until: float, *, tries_until: float | None = None, **given: Any) -> Any:
        """The answer of one operation, such as `send_message`. It is tried again until `tries_until`, and no try goes
        on after `until`, both in loop time. Raises QueueUnavailable, QueueUncertain when it may have been done, and
        QueueGone if there is no such queue."""
        loop, tries, kind = asyncio.get_running_loop(), pauses(), QueueUnavailable
        last = until if tries_until is None else tries_until
        while True:
            try:
                async with asyncio.timeout_at(until):
                    answer = await self._operation(operation)(**given)
                self._outage.up(self)
                return answer
            except (BotoCoreError, ClientError, OSError, TimeoutError) as error:
                words = _words(error)
                _raise_if_refused(error, words)
                if not isinstance(error, EndpointConnectionError | ConnectTimeoutError):
                    kind = QueueUncertain
                pause = next(tries)
                self._outage.down(self, words, pause)
                if loop.time() < last:
                    await self._outage.pause(min(pause, last - loop.time()))
                if loop.time() >= last:  # a try with no time left could not tell whether it was sent
                    raise kind(f"the queue does not answer: {words}") from None

    async def on(self, place: SqsPlace, operation: str, until: float, **given: Any) -> Any:
        """As `ask`, about a queue that is created if it is missing."""
        while True:
            try:
                return await self.ask(operation, until, QueueUrl=await self._url(place, until, **given), **given)
            except QueueGone:
                self._urls.pop(place.name, None)
                if asyncio.get_running_loop().time() >= until:
                    raise
                await asyncio.sleep(0.05)

    async def at(self, name: str, operation: str, until: float, **given: Any) -> Any:
        """As `ask`, about a queue that somebody else creates. Raises QueueGone."""
        try:
            return await self.ask(operation, until, QueueUrl=await self._found(name, until), **given)
        except QueueGone:
            self._urls.pop(name, None)
            raise

    async def delete(self, name: str, until: float) -> None:
        """A queue that may be gone already. Raises QueueUnavailable."""
        with suppress(QueueGone):
            await self.at(name, "delete_queue", until)
        self._urls.pop(name, None)

    async def names(self, prefix: str, until: float) -> list[str]:
        """Of all queues that begin so."""
        found: list[str] = []
        more: dict[str, Any] = {}
        while True:
            page = await self.ask("list_queues", until, QueueNamePrefix=prefix, MaxResults=1000, **more)
            found += [str(url).rpartition("/")[2] for url in page.get("QueueUrls", ())]
            if not page.get("NextToken"):
                return found
            more = {"NextToken": page["NextToken"]}

    async def _url(self, place: SqsPlace, until: float, tries_until: float | None = None, **_given: Any) -> str:
        """A queue that an operator created with other options is used as it is."""
        with suppress(QueueGone):
            return await self._found(place.name, until, tries_until)
        attributes = {"MessageRetentionPeriod": str(place.keep_seconds), "VisibilityTimeout": str(place.hide_seconds)}
        answer = await self.ask(
            "create_queue", until, tries_until=tries_until, QueueName=place.name, Attributes=attributes
        )
        self._urls[place.name] = str(answer["QueueUrl"])
        return self._urls[place.name]

    async def _found(self, name: str, until: float, tries_until: float | None = None) -> str:
        if name not in self._urls:
            answer = await self.ask("get_queue_url", until, tries_until=tries_until, QueueName=name)
            self._urls[name] = str(answer["QueueUrl"])
        return self._urls[name]

    def _operation(self, name: str) -> Callable[..., Awaitable[Any]]:
        if self._client is None:
            raise QueueUnavailable("the queue was stopped")
        found: Callable[..., Awaitable[Any]] = getattr(self._client, name)
        return found


def _raise_if_refused(error: BaseException, words: str) -> None:
    """For what another try would not change."""
    if not isinstance(error, ClientError):
        return
    code = str(error.response.get("Error", {}).get("Code", ""))
    if any(name in code for name in _GONE):
        raise QueueGone(words) from None
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if status < 500 and not any(name in code for name in _BUSY):
        raise QueueUnavailable(f"the queue refused: {words}") from None


def _words(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:200]
