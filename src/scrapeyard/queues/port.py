"""The queue: transport only. The store is the truth, so a lost, late or doubled delivery is harmless."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

from scrapeyard.model import Delivery, Priority

MAX_MESSAGE_BYTES = 16 * 1024 * 1024


class Capabilities(Struct, frozen=True, kw_only=True):
    """Where brokers differ. Callers and the contract suite read it; nobody asks which broker it is."""

    max_message_bytes: int = MAX_MESSAGE_BYTES
    """The largest delivery or message that it carries; a larger one is refused."""
    is_shared: bool = True
    """Whether several processes can meet in it."""
    keeps_order: bool = True
    """Whether the deliveries of a lane and priority leave in the order they came, takers are served in turn, and the
    messages of a channel come in the order they were sent."""
    counts_exactly: bool = True
    """Whether `depth` and the number that `publish` returns are exact. If not, they are estimates some seconds old."""
    tells_oldest: bool = True
    """Whether `oldest` tells the age of what waits. If not, it returns None, and callers must not conclude from it that
    nothing waits."""
    hears_at_once: bool = True
    """Whether a listener hears all that is sent from the moment it entered. If not, other processes may need some
    seconds to learn of a process that begins to listen."""


class Queue(Protocol):
    """Moves deliveries to workers and small messages between processes.

    Every method but `take` and `listen` raises QueueUnavailable when the broker has not answered within the adapter's
    patience. Messages are bounded: an adapter refuses to send, and drops with a logged event on receipt, what is larger
    than `capabilities.max_message_bytes` or does not decode.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What this broker can do. The size of messages may be known only once it is connected."""

    async def start(self) -> None:
        """Connect. Returns even if the broker is away; it is tried again in the background."""

    async def stop(self) -> None:
        """Close every connection and end every listener. May be called twice."""

    async def publish(self, deliveries: Sequence[Delivery]) -> int:
        """Hand over deliveries, in order, each to the tail of its (lane, priority).

        Returns how many deliveries now wait in the fullest of the lanes touched, all priorities together.
        """

    async def take(
        self, lanes: Sequence[str], count: int, priorities: Sequence[Priority], timeout: float
    ) -> list[Delivery]:
        """Wait up to `timeout` seconds for work; at most `count` deliveries, the first priority named first.

        An empty list means nothing came, or the broker is away (the adapter has logged it and backed off). A delivery
        returned here is gone from the queue: the caller must run it, or `publish` it again.
        """

    async def depth(self) -> dict[tuple[str, Priority], int]:
        """How many deliveries wait, by lane and priority. Lanes with none may be missing."""

    async def oldest(self, lane: str, priority: Priority) -> float | None:
        """When the oldest waiting delivery was queued (Unix seconds, the `queued_at` of that delivery).

        None means nothing waits: a run that is still queued in the store and was published some seconds ago is not in
        the queue any more, and the dispatcher must publish it again.
        """

    async def send(self, channel: str, message: bytes) -> None:
        """Give a message to everyone who listens on `channel` now. Nobody listening is not an error."""

    def listen(self, channel: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Hear what is sent on `channel` from the moment the context is entered until it is left.

        Survives a restart of the broker; messages sent meanwhile are lost, so callers check the store now and then.
        """

    async def ping(self) -> float:
        """Round trip of a small write to the broker, in milliseconds."""
