"""Channels: names such as `stable` that point to a version, in a file or moved by an operator."""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any

from scrapeyard.errors import QueueUnavailable, ScraperInvalid, ScrapeyardError
from scrapeyard.model import SCRAPER_ID, Refresh
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.repository.manifest.semver import is_version, looks_like_range
from scrapeyard.repository.manifest.values import parse_toml
from scrapeyard.repository.port import Catalogue
from scrapeyard.store.ports.runs import ChannelMove, ChannelStore
from scrapeyard.telemetry.events import get_log

FILE_NAME = "channels.toml"
MAX_BYTES = 1024 * 1024
MAX_SCRAPERS = 10_000
MAX_CHANNELS = 50
"""Of one scraper."""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")

Channels = dict[str, dict[str, str]]
"""By scraper id: channel name → version."""


def is_channel(name: str) -> bool:
    """Whether a channel may have this name: lower-case, and nothing that reads as a range, such as `x`."""
    return _NAME.fullmatch(name) is not None and not looks_like_range(name)


def read_channels(text: bytes, where: str) -> Channels:
    """Read a `channels.toml`: `["shop/product"]`, then `stable = "1.4.1"`. Raises ScraperInvalid naming the place."""
    if len(text) > MAX_BYTES:
        raise ScraperInvalid(f"{where}: larger than {MAX_BYTES // 1024} KB; shorten it")
    try:
        table = parse_toml(text)
    except ValueError as error:
        raise ScraperInvalid(f"{where}: not TOML in UTF-8: {str(error)[:200]}") from None
    return check_channels(table, where)


def check_channels(table: dict[str, Any], where: str) -> Channels:
    """The same table, known to be channels. Raises ScraperInvalid naming the place."""
    if len(table) > MAX_SCRAPERS:
        raise ScraperInvalid(f"{where}: more than {MAX_SCRAPERS} scrapers; remove those without channels")
    return {scraper_id: _of_one(scraper_id, given, where) for scraper_id, given in table.items()}


def _of_one(scraper_id: str, given: Any, where: str) -> dict[str, str]:
    place = f"{where}: {scraper_id[:100]}"
    if SCRAPER_ID.fullmatch(scraper_id) is None:
        raise ScraperInvalid(f'{place}: not a scraper\'s id; write ["site/task"]')
    if not isinstance(given, dict) or len(given) > MAX_CHANNELS:
        raise ScraperInvalid(f'{place}: must be a table of at most {MAX_CHANNELS} channels, e.g. stable = "1.4.1"')
    for name, version in given.items():
        if not is_channel(name):
            raise ScraperInvalid(f"{place}: {name[:100]!r} is not a channel's name; write lower-case letters")
        if not isinstance(version, str) or not is_version(version):
            raise ScraperInvalid(f'{place}: {name}: must be a version such as "1.4.1"')
    return given


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
            await self._look()
            self._task = asyncio.create_task(self._keep_looking(), name="moved-channels")

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
        await self._tell(scraper_id)
        return move

    async def take_back(self, scraper_id: str, channel: str) -> ChannelMove | None:
        """Let the source decide again; in force here on return. None when the channel was not moved."""
        async with self._one_at_a_time:
            move = await self._store.clear_channel(scraper_id, channel, self._clock())
            self._adopt(_with(self._moved, scraper_id, channel, ""))
        await self._tell(scraper_id)
        return move

    async def _keep_looking(self) -> None:
        while True:
            try:
                async with asyncio.timeout(EVERY_SECONDS):
                    await self._asked.wait()
            except TimeoutError:
                pass
            self._asked.clear()
            await self._look()

    async def _look(self) -> None:
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

    async def _tell(self, scraper_id: str) -> None:
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
