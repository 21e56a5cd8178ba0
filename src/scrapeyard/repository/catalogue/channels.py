"""Channels: names such as `stable` that point to a version, in a file or moved by an operator."""

import asyncio
from collections.abc import Callable, Mapping

from scrapeyard.errors import QueueUnavailable, ScrapeyardError
from scrapeyard.model import Refresh
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.repository.port import Catalogue
from scrapeyard.store.ports.runs import ChannelMove, ChannelStore
from scrapeyard.telemetry.events import get_log

log = get_log("repository")
EVERY_SECONDS = 10.0
"""Between looks in the store, for moves whose signal was lost."""
Moves = Mapping[str, Mapping[str, str]]


class ChannelOverrides:
    """Brings the store's moves into the catalogue: at the start, on a signal, and every EVERY_SECONDS.

    While the store is away the last known moves stay in force; a process that starts then serves without any.
    """

    def __init__(
        self, store: ChannelStore, queue: Queue, catalogue: Catalogue, sender: str, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._queue = queue
        self._catalogue = catalogue
        self._sender = sender
        self._clock = clock
        self._moved: Moves = {}
        self._one_at_a_time = asyncio.Lock()
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._away = False

    def of(self, scraper_id: str) -> Mapping[str, str]:
        """The channels of one scraper that operators moved, as last known here."""
        return self._moved.get(scraper_id, {})

    async def start(self) -> None:
        """A first look, then keep looking. May be called twice."""
        if self._task is None:
            await self._poll()
            self._task = asyncio.create_task(self._poll_forever(), name="moved-channels")

    async def stop(self) -> None:
        """Look no more. May be called twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def look_soon(self) -> None:
        """Somebody else moved a channel."""
        self._asked.set()

    async def move(self, scraper_id: str, channel: str, version: str) -> ChannelMove | None:
        """Point a channel to a version; in force here on return. None when it points there already."""
        async with self._one_at_a_time:
            move = await self._store.move_channel(scraper_id, channel, version, self._clock())
            self._adopt(_with(self._moved, scraper_id, channel, version))
        await self._report(scraper_id)
        return move

    async def take_back(self, scraper_id: str, channel: str) -> ChannelMove | None:
        """Let the source decide again; in force here on return. None when the channel was not moved."""
        async with self._one_at_a_time:
            move = await self._store.clear_channel(scraper_id, channel, self._clock())
            self._adopt(_with(self._moved, scraper_id, channel, ""))
        await self._report(scraper_id)
        return move

    async def _poll_forever(self) -> None:
        while True:
            try:
                async with asyncio.timeout(EVERY_SECONDS):
                    await self._asked.wait()
            except TimeoutError:
                pass
            self._asked.clear()
            await self._poll()

    async def _poll(self) -> None:
        try:
            async with self._one_at_a_time:
                self._adopt(await self._store.channels())
        except ScrapeyardError as error:
            if not self._away:
                log.warning("repository.moves_unknown", error=error.message)
            self._away = True
        else:
            self._away = False

    def _adopt(self, moved: Moves) -> None:
        if moved == self._moved:
            return
        taken_back = {scraper_id: dict.fromkeys(known, "") for scraper_id, known in self._moved.items()}
        everyone = {*taken_back, *moved}
        self._catalogue.move_channels({name: {**taken_back.get(name, {}), **moved.get(name, {})} for name in everyone})
        self._moved = moved

    async def _report(self, scraper_id: str) -> None:
        """The other processes. One that does not hear it looks by itself within EVERY_SECONDS."""
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
