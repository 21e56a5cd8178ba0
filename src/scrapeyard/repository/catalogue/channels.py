"""Channels: names such as `stable` that point to a version, in a file or moved by an operator."""

from collections.abc import Callable, Mapping

from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import Refresh
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.repository.port import Catalogue
from scrapeyard.store.ports.followed import FollowedTable
from scrapeyard.store.ports.overrides import ChannelMove, ChannelStore
from scrapeyard.telemetry.events import get_log

log = get_log("repository")
EVERY_SECONDS = 10.0
"""Between polls of the store, for moves whose signal was lost."""
Moves = Mapping[str, Mapping[str, str]]


class ChannelOverrides:
    """Copies channel moves from the store into the catalogue: at the start, on a signal, and every EVERY_SECONDS.

    While the store is away the last known moves stay in force; a process that starts then serves without any.
    """

    def __init__(
        self, channels: ChannelStore, queue: Queue, catalogue: Catalogue, sender: str, clock: Callable[[], float]
    ) -> None:
        self._channels = channels
        self._queue = queue
        self._catalogue = catalogue
        self._sender = sender
        self._clock = clock
        self._moved: Moves = {}
        self._table = FollowedTable[Moves](
            "moved-channels",
            EVERY_SECONDS,
            read=lambda: channels.current(),  # noqa: PLW0108  a store may be put in place later
            adopt=self._adopt,
            on_away=lambda error: log.warning("repository.moves_unknown", error=error.message),
        )

    def of(self, scraper_id: str) -> Mapping[str, str]:
        """The channels of one scraper that operators moved, as last known here."""
        return self._moved.get(scraper_id, {})

    async def start(self) -> None:
        """Poll once, then keep polling. May be called twice."""
        await self._table.start()

    async def stop(self) -> None:
        """Stop polling. May be called twice."""
        await self._table.stop()

    def look_soon(self) -> None:
        """Poll soon: another process moved a channel."""
        self._table.refresh_soon()

    async def move(self, scraper_id: str, channel: str, version: str) -> ChannelMove | None:
        """Point a channel to a version; in force in this process on return. None if it points there already."""
        async with self._table.lock:
            move = await self._channels.move(scraper_id, channel, version, self._clock())
            self._adopt(_with(self._moved, scraper_id, channel, version))
        await self._report(scraper_id)
        return move

    async def take_back(self, scraper_id: str, channel: str) -> ChannelMove | None:
        """Let the source decide again; in force in this process on return. None if the channel was not moved."""
        async with self._table.lock:
            move = await self._channels.clear(scraper_id, channel, self._clock())
            self._adopt(_with(self._moved, scraper_id, channel, ""))
        await self._report(scraper_id)
        return move

    def _adopt(self, moved: Moves) -> None:
        if moved == self._moved:
            return
        taken_back = {scraper_id: dict.fromkeys(known, "") for scraper_id, known in self._moved.items()}
        everyone = {*taken_back, *moved}
        self._catalogue.move_channels({name: {**taken_back.get(name, {}), **moved.get(name, {})} for name in everyone})
        self._moved = moved

    async def _report(self, scraper_id: str) -> None:
        """Notify the other processes. One that misses the signal polls within EVERY_SECONDS."""
        try:
            signal = Refresh(scraper=scraper_id, sender=self._sender)
            await self._queue.send(messages.SIGNALS, messages.encode(signal))
        except QueueUnavailable as error:
            log.warning("repository.move_untold", scraper=scraper_id, error=error.message)


def _with(moved: Moves, scraper_id: str, channel: str, version: str) -> Moves:
    """The same moves with one changed; an empty version takes it out."""
    mine = {name: where for name, where in {**moved.get(scraper_id, {}), channel: version}.items() if where}
    others = {name: known for name, known in moved.items() if name != scraper_id}
    return {**others, scraper_id: mine} if mine else others
