"""The queue on Amazon SQS: a standard queue for each lane and priority, and inboxes for small messages."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from time import perf_counter
from typing import Any

from scrapeyard.aws import aws_service
from scrapeyard.errors import BadRequest, QueueUnavailable, SettingsInvalid
from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.messages import LANE, LaneTurns, check_lanes, encode_delivery
from scrapeyard.queues.port import Capabilities
from scrapeyard.queues.sqs.calls import BATCH, MAX_BODY_BYTES, MAX_MESSAGE_BYTES, QueueGone, SqsCalls, SqsPlace, body_of
from scrapeyard.queues.sqs.pubsub import SqsSubscriber
from scrapeyard.queues.sqs.take import SqsTakers
from scrapeyard.redis.outage import Outage
from scrapeyard.telemetry.events import get_log

HIDE_SECONDS = 5
"""A message that was received and not deleted comes again after this time."""
KEEP_SECONDS = 14 * 86_400
"""The most that SQS keeps messages."""
DEPTH_SECONDS = 1.0
_INITIALS = {priority: priority[0] for priority in Priority}
_PRIORITIES = {initial: priority for priority, initial in _INITIALS.items()}
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{0,12}")
_DOT = "D"
"""Names of queues have no dots, and lanes no capitals."""
_COUNTED = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")


def sqs_options(url: str, ca_file: str = "") -> dict[str, Any]:
    """What botocore's `create_client` takes. Raises SettingsInvalid, without the secret.

    sqs://REGION is Amazon's own; sqs+http://KEY:SECRET@HOST:PORT/REGION (or sqs+https) a server that speaks as it.
    """
    try:
        options, rest = aws_service(url, "sqs")
    except ValueError:
        raise SettingsInvalid(_HOW) from None
    if rest:
        raise SettingsInvalid(_HOW)
    if ca_file:
        options["verify"] = _readable(ca_file)
    return options


def _readable(ca_file: str) -> str:
    try:
        ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise SettingsInvalid(f"queue.ca_file: {ca_file} cannot be read as PEM") from None
    return ca_file


_HOW = (
    "queue.url: write sqs://REGION, such as sqs://eu-west-1, or sqs+https://KEY:SECRET@HOST:PORT/REGION for a server "
    "that speaks as SQS; percent-encode special characters in the secret"
)


class SqsQueue:
    """Deliveries and messages between processes.

    `patience_seconds` is how long a method tries before it raises QueueUnavailable. SQS delivers at least once and in
    no order; a message is deleted when it is handed out, and one that comes again is marked as redelivered.
    """

    def __init__(
        self, url: str, *, prefix: str = "scrapeyard", ca_file: str = "", patience_seconds: float = 3.0
    ) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise SettingsInvalid(f"queue prefix {prefix[:80]!r}: for SQS use up to 13 letters, digits, underscores")
        self._prefix = prefix
        self._patience = patience_seconds
        self._log = get_log("queue")
        outage = Outage(
            away=lambda error, seconds: self._log.warning("queue.away", error=error, retry_seconds=seconds),
            back=lambda seconds: self._log.info("queue.back", away_seconds=seconds),
            ends_on_stop=True,
        )
        self._calls = SqsCalls(sqs_options(url, ca_file), outage)
        self._ear = SqsSubscriber(prefix, self._calls, patience_seconds, self._log)
        self._takers = SqsTakers(self._calls, self._bury, patience_seconds)
        self._dead = SqsPlace(f"{prefix}-dead", KEEP_SECONDS)
        self._depth: dict[tuple[str, Priority], int] = {}
        self._read_at = float("-inf")
        self._turns = LaneTurns()

    @property
    def capabilities(self) -> Capabilities:
        """No order, estimates only, nobody can look at what waits, and no publish/subscribe."""
        return Capabilities(
            max_message_bytes=MAX_MESSAGE_BYTES,
            keeps_order=False,
            counts_exactly=False,
            tells_oldest=False,
            hears_at_once=False,
        )

    async def start(self) -> None:
        """SQS is asked when there is something to ask."""
        await self._calls.start()
        self._ear.start()
        self._takers.start()

    async def stop(self) -> None:
        """Deletes the inboxes of this process."""
        await self._takers.stop()
        await self._ear.stop()
        await self._calls.stop()

    async def publish(self, deliveries: Sequence[Delivery]) -> int:
        """Ten in a request, the most urgent first. The number returned is an estimate."""
        until = self._until()
        messages = [(self._place(each.lane, each.priority), self._encode(each)) for each in deliveries]
        for priority in Priority:
            lanes = dict.fromkeys(each.lane for each in deliveries if each.priority == priority)
            for place in (self._place(lane, priority) for lane in lanes):
                for bodies in _batches([body for each, body in messages if each == place]):
                    await self._send(place, bodies, until)
        for delivery in deliveries:
            self._count_own(delivery, 1)
        with suppress(QueueUnavailable):
            await self._look()
        lanes = {delivery.lane: None for delivery in deliveries}
        return max((self._in_lane(lane) for lane in lanes), default=0)

    async def take(
        self, lanes: Sequence[str], count: int, priorities: Sequence[Priority], timeout: float
    ) -> list[Delivery]:
        """Lanes of equal priority take turns at being asked first."""
        places = [self._place(lane, priority) for lane, priority in self._turns.order(lanes, priorities)]
        if not places or count <= 0:
            return []
        found = await self._takers.take(places, count, timeout)
        for delivery in found:
            self._count_own(delivery, -1)
        return found

    async def depth(self) -> dict[tuple[str, Priority], int]:
        """What SQS estimated within the last second, and what this process published and took since."""
        await self._look()
        return {line: count for line, count in self._depth.items() if count}

    async def oldest(self, lane: str, priority: Priority) -> float | None:  # noqa: ARG002 - SQS shows nothing
        """Always None: SQS does not let anybody look at what waits."""
        check_lanes((lane,))
        return None

    async def send(self, channel: str, message: bytes) -> None:
        """Returns when it lies in every inbox."""
        self._check_size(message)
        await self._ear.send(channel, message, self._until())

    def listen(self, channel: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Entering waits until the inbox exists, however long SQS is away. Start the queue first."""
        return self._ear.listen(channel)

    async def ping(self) -> float:
        """Sends a message to a queue of its own, which nobody reads and SQS empties within a minute."""
        began = perf_counter()
        probe = SqsPlace(f"{self._prefix}-probe", keep_seconds=60)
        await self._calls.on(probe, "send_message", self._until(), MessageBody="probe")
        return (perf_counter() - began) * 1000

    async def _send(self, place: SqsPlace, bodies: Sequence[str], until: float) -> None:
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
        answer = await self._calls.on(place, "send_message_batch", until, Entries=entries)
        if failed := answer.get("Failed"):
            raise QueueUnavailable(f"the queue refused: {str(failed[0].get('Message'))[:200]}")

    async def _bury(self, place: SqsPlace, raw: dict[str, Any], why: str) -> None:
        """A message of somebody else must not come back, and nobody must miss it."""
        until = self._until()
        reason = {
            "error": {"DataType": "String", "StringValue": why.encode("ascii", "replace").decode() or "?"},
            "queue": {"DataType": "String", "StringValue": place.name},
        }
        await self._calls.on(self._dead, "send_message", until, MessageBody=raw["Body"], MessageAttributes=reason)
        await self._calls.on(place, "delete_message", until, ReceiptHandle=raw["ReceiptHandle"])
        self._log.warning("queue.dead_letter", channel=place.name, error=why, dead_letters=f"queue {self._dead.name}")

    async def _look(self) -> None:
        """Ask SQS for the depth of every lane, at most once in a second."""
        now = asyncio.get_running_loop().time()
        if now < self._read_at + DEPTH_SECONDS:
            return
        await self._takers.settled()
        until = self._until()
        names = [name for name in await self._calls.names(f"{self._prefix}-", until) if self._line(name)]
        counts = await asyncio.gather(*(self._one_count(name, until) for name in names))
        self._depth = {line: count for name, count in zip(names, counts, strict=True) if (line := self._line(name))}
        self._read_at = now

    async def _one_count(self, name: str, until: float) -> int:
        try:
            answer = await self._calls.at(name, "get_queue_attributes", until, AttributeNames=list(_COUNTED))
        except QueueGone:
            return 0
        return sum(int(answer["Attributes"].get(attribute, 0)) for attribute in _COUNTED)

    def _count_own(self, delivery: Delivery, change: int) -> None:
        line = (delivery.lane, delivery.priority)
        self._depth[line] = max(0, self._depth.get(line, 0) + change)

    def _in_lane(self, lane: str) -> int:
        return sum(count for (name, _), count in self._depth.items() if name == lane)

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self._patience

    def _encode(self, delivery: Delivery) -> str:
        return body_of(self._check_size(encode_delivery(delivery)))

    def _check_size(self, message: bytes) -> bytes:
        if len(message) > MAX_MESSAGE_BYTES:
            raise BadRequest(f"a message of {len(message)} bytes is over the queue's limit of {MAX_MESSAGE_BYTES}")
        return message

    def _place(self, lane: str, priority: Priority) -> SqsPlace:
        name = f"{self._prefix}-{_INITIALS[priority]}-{lane.replace('.', _DOT)}"
        return SqsPlace(name, KEEP_SECONDS, HIDE_SECONDS)

    def _line(self, name: str) -> tuple[str, Priority] | None:
        """The lane and priority of a queue; None for other queues of ours."""
        initial, _, lane = name.removeprefix(f"{self._prefix}-").partition("-")
        lane = lane.replace(_DOT, ".")
        return (lane, _PRIORITIES[initial]) if initial in _PRIORITIES and LANE.fullmatch(lane) else None


def _batches(bodies: Sequence[str]) -> Iterator[list[str]]:
    """As many as one request may hold."""
    batch: list[str] = []
    size = 0
    for body in bodies:
        length = len(body.encode())
        if batch and (len(batch) >= BATCH or size + length > MAX_BODY_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(body)
        size += length
    if batch:
        yield batch
