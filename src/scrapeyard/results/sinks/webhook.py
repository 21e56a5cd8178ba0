"""Batches to a receiver over HTTP, signed as webhooks are: at least once, with a stable batch id."""

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from scrapeyard import __version__
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.politeness.verdicts import wait_asked_by
from scrapeyard.engines.port import Caller, FetchRequest, HttpEngine
from scrapeyard.errors import FetchFailed, SinkUnavailable
from scrapeyard.model import FetchPolicy
from scrapeyard.model.instants import instant
from scrapeyard.model.webhook import SIGNATURE, sign
from scrapeyard.results.sinks.port import RefusedRecord, Repeats, SinkBatch
from scrapeyard.settings import SinkTarget, hide_password

EVENT: Final = "sink.batch"
PING: Final = "sink.ping"
MAX_ANSWER: Final = 64 * 1024
_TOO_LARGE: Final = 413
_POLICY: Final = FetchPolicy(robots="ignore", escalate=False, cache="off", proxy="none")


class ReceiverAnswer(NamedTuple):
    """What the receiver said."""

    status: int
    wait: float = 0.0
    """Seconds that it asks for."""


class SignedPost(NamedTuple):
    """A message to a receiver."""

    url: str
    secret: str
    event: str
    delivery: str
    """Its id, which stays the same when it comes again."""
    body: bytes

    def request(self, now: float, timeout_seconds: float) -> FetchRequest:
        """Signed at this time. Redirects are not followed."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"Scrapeyard-Sinks/{__version__}",
            "Scrapeyard-Event": self.event,
            "Scrapeyard-Delivery": self.delivery,
            SIGNATURE: sign(self.secret, self.body, now),
        }
        return FetchRequest(
            url=self.url,
            method="POST",
            headers=headers,
            body=self.body,
            timeout_seconds=timeout_seconds,
            follow_redirects=False,
            max_bytes=MAX_ANSWER,
            engine="http",
        )


async def send(engine: HttpEngine, request: FetchRequest) -> ReceiverAnswer:
    """Raises FetchFailed if no answer came. One that was too long or garbled still has a status, which decides: what
    was taken must not come again."""
    try:
        answer = await engine.fetch(request, Caller(policy=_POLICY))
    except FetchFailed as failure:
        if failure.site_status is not None:
            return ReceiverAnswer(failure.site_status)
        raise
    return ReceiverAnswer(answer.status, wait_asked_by(answer))


class WebhookSink:
    """A ResultSink. A batch is taken when the receiver answers 2xx; redirects are not followed. `engine` reaches the
    receiver, also at a private address: the operator wrote it."""

    repeats: Repeats = "same_id"

    def __init__(
        self,
        target: SinkTarget,
        engine: WreqEngine,
        *,
        secret: str,
        timeout_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = target.name
        self._url = target.url.get_secret_value()
        self._engine = engine
        self._secret = secret
        self._timeout = timeout_seconds
        self._clock = clock

    async def start(self) -> None:
        """Start the engine, which connects when it is first used. May be called twice."""
        await self._engine.start()

    async def stop(self) -> None:
        """Close connections. May be called twice."""
        await self._engine.stop()

    async def check(self) -> str:
        """Send `sink.ping`, signed. Raises SinkUnavailable unless the receiver answers 2xx."""
        now = self._clock()
        body = {"id": f"ping-{self.name}", "event": PING, "created_at": instant(now), "sink": self.name}
        answer = await self._post(PING, f"ping-{self.name}", msgspec.json.encode(body))
        if not 200 <= answer.status < 300:
            raise SinkUnavailable(f"the receiver answered {answer.status} to {PING}")
        return f"receiver {hide_password(self._url)}"

    async def deliver(self, batch: SinkBatch) -> Sequence[RefusedRecord]:
        """Send it once. A receiver that answers 413 to a batch of one record refuses that record."""
        body = msgspec.json.encode(
            {
                "id": batch.id,
                "event": EVENT,
                "sink": self.name,
                "job_id": batch.job_id,
                "number": batch.number,
                "records": [Raw(record.to_json()) for record in batch.records],
            }
        )
        answer = await self._post(EVENT, batch.id, body)
        if 200 <= answer.status < 300:
            return ()
        if answer.status == _TOO_LARGE and len(batch.records) == 1:
            return (RefusedRecord(item_key=batch.records[0].item_key, why="the receiver answered 413: too large"),)
        remedy = "; lower batch_records or batch_mb of the sink" if answer.status == _TOO_LARGE else ""
        moved = "; redirects are not followed" if 300 <= answer.status < 400 else ""
        raise SinkUnavailable(f"the receiver answered {answer.status}{remedy}{moved}", retry_after=answer.wait)

    async def _post(self, event: str, delivery: str, body: bytes) -> ReceiverAnswer:
        """Raises SinkUnavailable if no answer came."""
        post = SignedPost(self._url, self._secret, event, delivery, body)
        try:
            return await send(self._engine, post.request(self._clock(), self._timeout))
        except FetchFailed as failure:
            raise SinkUnavailable(failure.message[:500]) from None
