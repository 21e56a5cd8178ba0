"""The queue on NATS JetStream: a stream with a subject for each lane and priority, and core NATS for small messages."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from time import perf_counter
from typing import Any
from uuid import uuid4

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import APIError, NotFoundError

from scrapeyard.errors import BadRequest, QueueUnavailable, QueueUncertain, SettingsInvalid
from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.messages import (
    LANE,
    LaneTurns,
    Unreadable,
    check_lanes,
    check_size,
    decode_delivery,
    encode_delivery,
)
from scrapeyard.queues.nats.link import NatsLink, NatsLost, NatsServers
from scrapeyard.queues.nats.pubsub import NatsSubscriber
from scrapeyard.queues.nats.take import NatsList, NatsTakers
from scrapeyard.queues.port import MAX_MESSAGE_BYTES, Capabilities
from scrapeyard.redis.outage import Outage
from scrapeyard.telemetry.events import get_log

BATCH = 500
BATCH_BYTES = 4 * 1024 * 1024
USUAL_PAYLOAD = 1024 * 1024
"""What a server takes unless its file says otherwise (`max_payload`)."""
HEADER_BYTES = 512
"""Room for our headers: they count as payload."""
ACK_WAIT_SECONDS = 5.0
"""A message that no process confirmed by then comes again: it went to a take that was called off at that moment."""
DEAD_LETTERS = 10_000
DEAD_DAYS = 14
_FRESH_SECONDS = 0.05
"""A busy publisher asks for the depth of a lane no more often than this."""
_ORDER = list(Priority)
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class NatsQueue:
    """Deliveries and messages between processes.

    `patience_seconds` is how long a method tries before it raises QueueUnavailable. A delivery is acknowledged when it
    is handed out: the lease is in the store. One whose acknowledgement was lost comes again, marked as redelivered.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "scrapeyard",
        replicas: int = 1,
        ca_file: str = "",
        patience_seconds: float = 2.0,
    ) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise SettingsInvalid(f"queue prefix {prefix[:80]!r}: use up to 64 letters, digits, dashes, underscores")
        self._prefix = prefix
        self._replicas = replicas
        self._patience = patience_seconds
        self._log = get_log("queue")
        outage = Outage(
            away=lambda error, seconds: self._log.warning("queue.away", error=error, retry_seconds=seconds),
            back=lambda seconds: self._log.info("queue.back", away_seconds=seconds),
            ends_on_stop=True,
        )
        self._link = NatsLink(NatsServers(url, ca_file), outage, self._greet)
        self._ear = NatsSubscriber(prefix, self._link, self._log)
        self._takers = NatsTakers(self._link, self._ensure, self._bury, patience_seconds)
        self._consumers: set[str] = set()
        self._known: dict[str, int] = {}
        self._fresh_until: dict[str, float] = {}
        self._turns = LaneTurns()

    @property
    def capabilities(self) -> Capabilities:
        """The size of messages is the server's."""
        payload = (self._link.max_payload or USUAL_PAYLOAD) - HEADER_BYTES
        return Capabilities(max_message_bytes=min(MAX_MESSAGE_BYTES, payload))

    async def start(self) -> None:
        """Begins to connect and waits for it, but no longer than the patience."""
        self._ear.start()
        self._takers.start()
        self._link.start()
        with suppress(NatsLost):
            await self._link.ready(self._until())

    async def stop(self) -> None:
        """Takes that are under way return nothing; what came for them goes back."""
        await self._takers.stop()
        self._ear.stop()
        await self._link.stop()

    async def publish(self, deliveries: Sequence[Delivery]) -> int:
        """All are sent at once, and confirmed one by one. The number returned may be 50 ms old, but counts what this
        process published since."""
        ordered = sorted(deliveries, key=lambda delivery: _ORDER.index(delivery.priority))
        messages = [(self._list(each.lane, each.priority).subject, self._encode(each)) for each in ordered]
        until = self._until()
        for some in _batches(messages):
            await self._send_until(until, {f"{uuid4()}": message for message in some})
        lanes = sorted({delivery.lane for delivery in deliveries})
        for lane in lanes:
            self._known[lane] = self._known.get(lane, 0) + sum(delivery.lane == lane for delivery in deliveries)
        if any(self._fresh_until.get(lane, 0.0) <= perf_counter() for lane in lanes):
            await self._look()
        return max((self._known.get(lane, 0) for lane in lanes), default=0)

    async def take(
        self, lanes: Sequence[str], count: int, priorities: Sequence[Priority], timeout: float
    ) -> list[Delivery]:
        """Lanes of equal priority take turns at being asked first. A take that had to wait returns one delivery."""
        lists = [self._list(lane, priority) for lane, priority in self._turns.order(lanes, priorities)]
        if not lists or count <= 0:
            return []
        return await self._takers.take(lists, count, timeout)

    async def depth(self) -> dict[tuple[str, Priority], int]:
        """Counts deliveries on their way to a taker of another process, too."""
        await self._takers.settled()
        counts = await self._counts()
        for lane in {lane for lane, _ in counts}:
            self._known[lane] = sum(count for (name, _), count in counts.items() if name == lane)
        return counts

    async def oldest(self, lane: str, priority: Priority) -> float | None:
        """The `queued_at` of the first in the subject that can be read."""
        check_lanes((lane,))
        await self._takers.settled()
        subject, sequence = self._list(lane, priority).subject, 1
        while True:
            found = await self._ask_json(f"STREAM.MSG.GET.{self._prefix}", {"seq": sequence, "next_by_subj": subject})
            if found is None:
                return None
            stored = msgspec.convert(found["message"], _Stored)
            with suppress(Unreadable):
                return decode_delivery(stored.data).queued_at
            sequence = stored.seq + 1

    async def send(self, channel: str, message: bytes) -> None:
        """Returns when the server has it."""
        self._check_size(message)
        until = self._until()
        try:
            client = await self._link.ready(until)
            await client.publish(self._ear.subject(channel), message)
            await self._link.echo(client, until)
        except (NatsLost, NatsError, OSError) as error:
            raise QueueUnavailable(f"the queue does not answer: {error}") from None

    def listen(self, channel: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Entering waits until the server has confirmed, however long it is away. Start the queue first."""
        return self._ear.listen(channel)

    async def ping(self) -> float:
        """Writes a little to the stream: a server whose disk is full answers, but takes nothing."""
        began = perf_counter()
        await self._send_until(self._until(), {f"{uuid4()}": (f"{self._prefix}.probe", b"")})
        return (perf_counter() - began) * 1000

    async def _send_until(self, until: float, messages: dict[str, tuple[str, bytes]]) -> None:
        """The server drops a message that comes again under the same id, so what is not confirmed is sent again."""
        loop = asyncio.get_running_loop()
        left, kind = dict(messages), QueueUnavailable
        while True:
            try:
                client = await self._link.ready(until)
                kind = QueueUncertain
                asking = [self._put(client, name, subject, data, until) for name, (subject, data) in left.items()]
                for name, answer in zip(list(left), await asyncio.gather(*asking, return_exceptions=True), strict=True):
                    if isinstance(answer, BaseException):
                        raise answer
                    del left[name]
            except NatsLost as error:
                if loop.time() >= until:
                    raise kind(f"the queue does not answer: {error}") from None
                await asyncio.sleep(0.01)
            else:
                return

    async def _put(self, client: Client, name: str, subject: str, data: bytes, until: float) -> None:
        rollup = {"Nats_Rollup": "sub"} if subject.endswith(".probe") else {}
        answer = await self._link.ask(client, subject, data, until, Nats_Msg_Id=name, **rollup)
        error = msgspec.json.decode(answer.data).get("error")
        if error is not None:
            raise QueueUnavailable(f"the queue refused: {str(error.get('description'))[:200]}")

    async def _counts(self) -> dict[tuple[str, Priority], int]:
        found: dict[tuple[str, Priority], int] = {}
        offset = 0
        while True:
            page = await self._ask_json(
                f"STREAM.INFO.{self._prefix}", {"subjects_filter": f"{self._prefix}.l.>", "offset": offset}
            )
            subjects = ((page or {}).get("state") or {}).get("subjects") or {}
            for subject, count in subjects.items():
                *_, lane, priority = subject.split(".")
                lane = lane.replace("=", ".")
                if LANE.fullmatch(lane) and priority in _ORDER:
                    found[lane, Priority(priority)] = count
            offset += len(subjects)
            if not subjects or offset >= (page or {}).get("total", 0):
                return found

    async def _look(self) -> None:
        """Read the depth of every lane, at most once in 50 ms."""
        counts = await self._counts()
        self._known = {}
        for (lane, _), count in counts.items():
            self._known[lane] = self._known.get(lane, 0) + count
        fresh = perf_counter() + _FRESH_SECONDS
        self._fresh_until = dict.fromkeys(self._known, fresh)

    async def _ask_json(self, api: str, question: object) -> dict[str, Any] | None:
        """The answer of JetStream's API; None when there is no such thing."""
        loop, until = asyncio.get_running_loop(), self._until()
        while True:
            try:
                client = await self._link.ready(until)
                answer = await self._link.ask(client, f"$JS.API.{api}", msgspec.json.encode(question), until)
                break
            except NatsLost as error:
                if loop.time() >= until:
                    raise QueueUnavailable(f"the queue does not answer: {error}") from None
                await asyncio.sleep(0.01)
        found: dict[str, Any] = msgspec.json.decode(answer.data)
        refusal = found.get("error")
        if refusal is None:
            return found
        if refusal.get("code") == 404:
            return None
        raise QueueUnavailable(f"the queue refused: {str(refusal.get('description'))[:200]}")

    async def _greet(self, client: Client) -> None:
        """Prepare a new connection: the streams, the subscriptions of everyone who listens."""
        self._consumers.clear()
        jetstream = client.jetstream(timeout=5)
        for config in self._streams():
            try:
                await jetstream.stream_info(str(config.name))
            except NotFoundError:
                await jetstream.add_stream(config)
        await self._ear.greet(client)

    def _streams(self) -> Iterator[StreamConfig]:
        """An operator may have created them with other options: what is there stays as it is."""
        yield StreamConfig(
            name=self._prefix,
            subjects=[f"{self._prefix}.l.*.*", f"{self._prefix}.probe"],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.FILE,
            num_replicas=self._replicas,
            allow_rollup_hdrs=True,
        )
        yield StreamConfig(
            name=f"{self._prefix}-dead",
            subjects=[f"{self._prefix}.dead"],
            retention=RetentionPolicy.LIMITS,
            storage=StorageType.FILE,
            num_replicas=self._replicas,
            max_msgs=DEAD_LETTERS,
            max_age=DEAD_DAYS * 86_400,
            discard=DiscardPolicy.OLD,
        )

    async def _ensure(self, client: Client, lists: Sequence[NatsList]) -> None:
        """One consumer for each list, shared by all takers."""
        for one in lists:
            if one.consumer in self._consumers:
                continue
            config = ConsumerConfig(
                durable_name=one.consumer,
                filter_subject=one.subject,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=ACK_WAIT_SECONDS,
                max_ack_pending=-1,
                max_waiting=100_000,
            )
            try:
                adding = client.jetstream(timeout=5).add_consumer(self._prefix, config)
                await self._link.during(adding, asyncio.get_running_loop().time() + 5)
            except APIError as error:
                self._log.warning("queue.refused", error=str(error)[:200])
                raise NatsLost(str(error)) from None
            self._consumers.add(one.consumer)

    async def _bury(self, client: Client, msg: Msg, why: str) -> None:
        """A message of somebody else must not come back, and nobody must miss it."""
        until = self._until()
        dead = f"{self._prefix}.dead"
        await self._link.ask(client, dead, msg.data, until, Scrapeyard_Subject=msg.subject, Scrapeyard_Error=_line(why))
        await self._link.ask(client, msg.reply, b"+TERM", until)
        self._log.warning(
            "queue.dead_letter", channel=msg.subject, error=why, dead_letters=f"stream {self._prefix}-dead"
        )

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self._patience

    def _encode(self, delivery: Delivery) -> bytes:
        return self._check_size(encode_delivery(delivery))

    def _check_size(self, message: bytes) -> bytes:
        most = self.capabilities.max_message_bytes
        if len(check_size(message)) > most:
            words = f"a message of {len(message)} bytes is over the queue's limit of {most}"
            raise BadRequest(f"{words}; raise max_payload of the NATS server")
        return message

    def _list(self, lane: str, priority: Priority) -> NatsList:
        """Lanes have no `=`, and the words of a subject no dot."""
        name = lane.replace(".", "=")
        consumer = f"{name}-{priority}"
        return NatsList(
            subject=f"{self._prefix}.l.{name}.{priority}",
            consumer=consumer,
            pull=f"$JS.API.CONSUMER.MSG.NEXT.{self._prefix}.{consumer}",
        )


def _line(words: str) -> str:
    """As a header may hold it."""
    return words.encode("ascii", "replace").decode().replace("\r", " ").replace("\n", " ")


class _Stored(msgspec.Struct):
    """A message as JetStream's API shows it."""

    seq: int
    data: bytes = b""


def _batches(messages: Sequence[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    """Cut so that neither side must hold more than some megabytes of unconfirmed bytes."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    for message in messages:
        batch.append(message)
        size += len(message[1])
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
