"""Taking from SQS: short polls in the order of priority, then long polls on every list at once."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.background import Background
from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import Delivery
from scrapeyard.queues.messages import Unreadable, decode_delivery
from scrapeyard.queues.sqs.calls import BATCH, LONGEST_POLL_SECONDS, SqsCalls, SqsPlace, message_of
from scrapeyard.redis.outage import pauses

MAX_COUNT = 1000
SPARE_SECONDS = 2.0
"""How long a message that came when nobody waited any more is kept for the next take of this process."""
_GRACE_SECONDS = 5.0
"""For deleting and showing again, which nobody waits for but `stop`. What fails comes again by itself."""


class SqsMessage(Struct, frozen=True):
    """A message that SQS hides from others until it is deleted, or its visibility timeout is over."""

    place: SqsPlace
    handle: str
    delivery: Delivery
    received_at: float


class _Waiter(Struct, eq=False):
    """Someone who waits in `take`."""

    places: frozenset[SqsPlace]
    until: float
    woken: asyncio.Event


class SqsTakers:
    """Runs takes. A message is deleted when it is handed out.

    A request to SQS is never cancelled but by `stop`: what it had received would be hidden from everybody for a while.
    What comes when its taker went away is spare: the next take gets it, or it is shown to other processes again.
    """

    def __init__(
        self, calls: SqsCalls, bury: Callable[[SqsPlace, dict[str, Any], str], Awaitable[None]], patience: float
    ) -> None:
        """`bury` moves a message that is no delivery to the dead letters."""
        self._calls = calls
        self._bury = bury
        self._patience = patience
        self._settling = Background()
        self._polls = Background()
        self._looks: set[asyncio.Task[int]] = set()
        self._spare: dict[SqsPlace, deque[SqsMessage]] = {}
        self._waiters: dict[_Waiter, None] = {}
        self._stopped = True

    @property
    def waiting(self) -> int:
        """How many takes wait for a message."""
        return len(self._waiters)

    def start(self) -> None:
        """Takes are allowed from now on."""
        self._stopped = False

    async def stop(self) -> None:
        """End every take, and show again what nobody took. What a poll has under way comes again later."""
        self._stopped = True
        self._wake()
        for look in self._looks:
            look.cancel()
        await self._polls.stop()
        spare, self._spare = self._spare, {}
        await self._show_again([message for some in spare.values() for message in some])
        await self.settled()

    async def settled(self) -> None:
        """Wait until SQS has heard of everything that was taken here."""
        await self._settling.idle()

    async def take(self, places: Sequence[SqsPlace], count: int, timeout: float) -> list[Delivery]:
        """See the port."""
        until = asyncio.get_running_loop().time() + timeout
        count = min(count, MAX_COUNT)
        found: list[SqsMessage] = []
        try:
            for place in places:
                await self._look(place, count, until, found)
            if not found and not self._stopped:
                await self._wait(places, count, until, found)
        except asyncio.CancelledError:
            for message in found:
                self._keep(message)
            self._wake()
            raise
        if found:
            self._settling.spawn(self._delete(found), name="sqs-delete")
        return [message.delivery for message in found]

    async def _look(self, place: SqsPlace, count: int, until: float, found: list[SqsMessage]) -> None:
        """What the list holds now."""
        while not self._stopped:
            self._grab(place, count, found)
            wanted = min(BATCH, count - len(found))
            if wanted <= 0:
                return
            look = asyncio.create_task(self._receive(place, wanted, 0, until))
            self._looks.add(look)
            look.add_done_callback(self._looks.discard)
            await asyncio.wait((look,))
            came = 0 if look.cancelled() else look.result()
            self._grab(place, count, found)
            if came < wanted:
                return

    async def _wait(self, places: Sequence[SqsPlace], count: int, until: float, found: list[SqsMessage]) -> None:
        loop = asyncio.get_running_loop()
        waiter = _Waiter(frozenset(places), until, asyncio.Event())
        self._waiters[waiter] = None
        try:
            while not self._stopped and not found and (left := until - loop.time()) > 0:
                for place in places:
                    self._grab(place, count, found)
                    if place not in self._polls:
                        self._polls.spawn(self._poll(place), name="sqs-poll", key=place)
                if not found:
                    waiter.woken.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(left):
                            await waiter.woken.wait()
        finally:
            del self._waiters[waiter]

    async def _poll(self, place: SqsPlace) -> None:
        """Long polls for as long as somebody waits."""
        loop, tries = asyncio.get_running_loop(), pauses()
        while waiters := [waiter for waiter in self._waiters if place in waiter.places]:
            left = max(waiter.until for waiter in waiters) - loop.time()
            seconds = min(LONGEST_POLL_SECONDS, max(1, int(left + 0.5)))
            if await self._receive(place, min(BATCH, len(waiters)), seconds, loop.time()) < 0:
                await asyncio.sleep(next(tries))
            else:
                tries = pauses()

    async def _receive(self, place: SqsPlace, count: int, seconds: int, tries_until: float) -> int:
        """How many messages came, which are spare now; less than 0 when SQS is away."""
        loop = asyncio.get_running_loop()
        try:
            answer = await self._calls.on(
                place,
                "receive_message",
                loop.time() + seconds + self._patience,
                tries_until=tries_until,
                MaxNumberOfMessages=count,
                WaitTimeSeconds=seconds,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            )
            messages = answer.get("Messages", [])
            for raw in messages:
                await self._read(place, raw)
        except QueueUnavailable:
            return -1
        self._wake()
        return len(messages)

    async def _read(self, place: SqsPlace, raw: dict[str, Any]) -> None:
        try:
            delivery = decode_delivery(message_of(raw["Body"]))
        except Unreadable as error:
            await self._bury(place, raw, str(error)[:200])
            return
        if raw.get("Attributes", {}).get("ApproximateReceiveCount", "1") != "1":
            delivery = replace(delivery, redelivered=True)
        self._keep(SqsMessage(place, raw["ReceiptHandle"], delivery, asyncio.get_running_loop().time()))

    def _keep(self, message: SqsMessage) -> None:
        self._spare.setdefault(message.place, deque()).append(message)
        if "spare" not in self._polls and not self._stopped:
            self._polls.spawn(self._return_spare(), name="sqs-return-spare", key="spare")

    def _grab(self, place: SqsPlace, count: int, found: list[SqsMessage]) -> None:
        spare = self._spare.get(place, deque())
        while spare and len(found) < count:
            found.append(spare.popleft())

    def _wake(self) -> None:
        for waiter in self._waiters:
            waiter.woken.set()

    async def _return_spare(self) -> None:
        """Runs for as long as something is spare."""
        loop = asyncio.get_running_loop()
        while any(self._spare.values()):
            await asyncio.sleep(SPARE_SECONDS / 4)
            old: list[SqsMessage] = []
            for spare in self._spare.values():
                while spare and spare[0].received_at < loop.time() - SPARE_SECONDS:
                    old.append(spare.popleft())
            await self._show_again(old)

    async def _delete(self, messages: Sequence[SqsMessage]) -> None:
        """One that cannot be deleted comes again, marked as redelivered."""
        await self._batches("delete_message_batch", messages)

    async def _show_again(self, messages: Sequence[SqsMessage]) -> None:
        await self._batches("change_message_visibility_batch", messages, VisibilityTimeout=0)

    async def _batches(self, operation: str, messages: Sequence[SqsMessage], **more: int) -> None:
        until = asyncio.get_running_loop().time() + min(_GRACE_SECONDS, self._patience)
        for place in {message.place for message in messages}:
            handles = [message.handle for message in messages if message.place == place]
            for start in range(0, len(handles), BATCH):
                some = handles[start : start + BATCH]
                entries = [{"Id": str(number), "ReceiptHandle": handle, **more} for number, handle in enumerate(some)]
                with suppress(QueueUnavailable):
                    await self._calls.at(place.name, operation, until, Entries=entries)
