"""Writes the audit in small batches: a change before its answer leaves, a refusal a moment later.

A flood of refusals must neither fill the database nor hide in it: the first of its kind is written at once, and equal
ones of the next minute become one row with their count.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from scrapeyard.background import Background
from scrapeyard.errors import ScrapeyardError
from scrapeyard.model.audit import AuditEntry
from scrapeyard.store.ports.audit import AuditStore
from scrapeyard.telemetry.events import get_log

log = get_log("audit")
WINDOW_SECONDS: Final = 60.0
"""Equal refusals within this time are one row."""
MAX_KINDS: Final = 1000
"""Kinds of refusals that are told apart at once; further ones are counted together."""
MAX_PENDING: Final = 10_000
"""Entries that wait while the database is away; further refusals are dropped and counted."""
PATIENCE_SECONDS: Final = 5.0
_BATCH: Final = 200
_PAUSE: Final = 0.05
_RETRY: Final = 1.0
_Kind = tuple[str, str, str, str, int, str]


class AuditLog:
    """The audit of one gateway. For one event loop."""

    def __init__(self, audit: AuditStore, clock: Callable[[], float] = time.time) -> None:
        self._audit = audit
        self._clock = clock
        self._pending: list[AuditEntry] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._repeats: dict[_Kind, AuditEntry] = {}
        self._dropped = 0
        self._away = False
        self._something = asyncio.Event()
        self._hurry = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._background = Background()

    async def start(self) -> None:
        """Write in the background. May be called twice."""
        self._background.start(self._keep_writing, name="audit")

    async def stop(self) -> None:
        """Write what is left, if the store answers. May be called twice."""
        if await self._background.stop():
            self._close_windows(everything=True)
            await self._flush()
            if self._pending:
                log.error("audit.unwritten", count=len(self._pending))

    async def write(self, entry: AuditEntry) -> None:
        """Wait until the entry is written. If the database does not answer in time, the entry waits for it."""
        self._add(entry)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(written)
        self._hurry.set()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await written
        except TimeoutError:
            log.warning("audit.late", action=entry.action, resource=entry.resource)

    def refuse(self, entry: AuditEntry) -> None:
        """Add a refusal. Never waits."""
        kind = (entry.client, entry.key_id, entry.address, entry.action, entry.status, entry.code)
        if kind not in self._repeats and len(self._repeats) >= MAX_KINDS:
            entry = replace(entry, client="", key_id="", address="", action="", resource="", request_id="")
            kind = ("", "", "", "", entry.status, entry.code)
        held = self._repeats.get(kind)
        if held is not None:
            self._repeats[kind] = replace(held, count=held.count + 1)
        elif len(self._pending) < MAX_PENDING:
            self._repeats[kind] = replace(entry, count=0)
            self._add(entry)
        else:
            self._dropped += 1

    def _add(self, entry: AuditEntry) -> None:
        self._pending.append(entry)
        self._something.set()

    async def _keep_writing(self) -> None:
        while True:
            await self._until_work()
            self._something.clear()
            self._hurry.clear()
            self._close_windows()
            await asyncio.shield(self._flush())  # a stop must not leave open whether a batch was written
            if self._pending:  # the database is away
                await asyncio.sleep(_RETRY)
                self._something.set()

    async def _until_work(self) -> None:
        """Something to write, or a window that may have ended; then a moment more unless somebody waits."""
        try:
            async with asyncio.timeout(WINDOW_SECONDS / 4 if self._repeats else None):
                await self._something.wait()
            async with asyncio.timeout(_PAUSE):
                await self._hurry.wait()
        except TimeoutError:
            return

    def _close_windows(self, *, everything: bool = False) -> None:
        """Write the counts of windows that have ended."""
        before = self._clock() - WINDOW_SECONDS
        for kind, entry in list(self._repeats.items()):
            if everything or entry.at <= before:
                del self._repeats[kind]
                if entry.count:
                    self._pending.append(entry)

    async def _flush(self) -> None:
        """Write what waits. One at a time: two would write the same batch twice."""
        async with self._flushing:
            await self._write_pending()

    async def _write_pending(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            while self._pending:
                batch = self._pending[:_BATCH]
                await self._audit.append(batch)
                del self._pending[: len(batch)]
        except ScrapeyardError as error:
            self._waiting = waiting + self._waiting
            if not self._away:
                log.warning("audit.away", error=error.message)
            self._away = True
            return
        for written in waiting:
            if not written.done():
                written.set_result(None)
        self._came_back()

    def _came_back(self) -> None:
        if self._away:
            log.info("audit.back", dropped=self._dropped)
        self._away, self._dropped = False, 0
