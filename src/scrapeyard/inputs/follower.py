"""The duty that follows links: what the pages of a job lead to becomes items of the same job, depth by depth.

Pages of one depth are read in any order; those of the next one when the last of them has ended, so that a page's depth
is the least number of links to it, whatever was slow. Items are numbered as they are found, so a depth is a range of
numbers, and how far it was read is one number in the job's row (`Progress`). That is all the state there is: after a
crash some pages are read again, and their links are known by their keys.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Protocol

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.blobs.port import Blobs
from scrapeyard.engines.politeness.site import Sites
from scrapeyard.errors import NotFound, ScrapeyardError
from scrapeyard.inputs.formats.rows import ListRefused
from scrapeyard.inputs.links import Links, raw_bytes, unpacked_result
from scrapeyard.inputs.mapper import Shaper
from scrapeyard.inputs.source import FOLLOWED, READ_IN, FollowSource, Progress, as_table, source_of
from scrapeyard.model.job import Item, ItemStatus, Job, NewItem
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.port import Catalogue
from scrapeyard.store.ports.jobs import ITEM_BLOCK, ItemFilter, ItemStore, JobFilter, JobStore
from scrapeyard.telemetry.events import get_log

log = get_log("intake")
BLOCKS = "links"
"""The source of the blocks that are added."""
PAGES = 50
"""Pages whose results are in memory at once."""
SLICE_SECONDS = 0.3
"""For one job in one round."""
JOBS = 200
_FINAL = frozenset({ItemStatus.SUCCESS, ItemStatus.ERROR})


class FollowStore(JobStore, ItemStore, Protocol):
    """What following needs of the store."""


class Following:
    """A Duty. `clock` gives Unix seconds."""

    name = "following"
    waits_after_outage = False

    def __init__(
        self,
        *,
        store: FollowStore,
        blobs: Blobs,
        catalogue: Catalogue,
        checker: InputChecker,
        sites: Sites,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._catalogue = catalogue
        self._checker = checker
        self._sites = sites
        self._clock = clock
        self._ahead: dict[str, set[int]] = {}
        """By job: items beyond its progress whose links were read; lost without harm."""

    async def work(self) -> None:
        """One round: every job that follows has its slice of time."""
        jobs = await self._followed()
        self._ahead = {job.id: self._ahead.get(job.id, set()) for job in jobs}
        for job in jobs:
            try:
                await self._follow(job)
            except ListRefused as error:
                await self._fail(job, error)
            except ScrapeyardError as error:
                log.warning("intake.not_followed", job=job.id, error=error.message)

    async def _fail(self, job: Job, refused: ListRefused) -> None:
        log.warning("intake.failed", job=job.id, error=refused.message)
        told = Raw(msgspec.json.encode({"count": refused.details["count"], "first": refused.details["rows"]}))
        await self._store.add_event(job.id, "rows_refused", told, self._clock())
        await self._store.end_reading(job.id, 0, refused.message, self._clock())

    async def _followed(self) -> list[Job]:
        page = await self._store.jobs(JobFilter(statuses=READ_IN, reading=True), None, JOBS)
        return [job for job in page.jobs if job.reading and job.source.get("kind") == FOLLOWED]

    async def _follow(self, job: Job) -> None:
        source = source_of(job)
        if not isinstance(source, FollowSource):
            return
        scraper = await self._catalogue.obtain(job.pinned)
        links = Links(source, Shaper(scraper, self._checker, source.shape), self._sites)
        progress: Progress | None = source.progress or await self._start(job, source, links)
        until = time.monotonic() + SLICE_SECONDS
        while progress is not None and time.monotonic() < until:
            step = await self._step(job, source, links, progress)
            if step == progress:
                break
            progress = step
        if progress is None:
            await self._store.end_reading(job.id, 0, "", self._clock())
        elif progress != source.progress:
            await self._note(job, source, progress)

    async def _start(self, job: Job, source: FollowSource, links: Links) -> Progress:
        await self._add(job, links.starts(), limit=source.limit)
        progress = Progress(end=await self._total(job))
        await self._note(job, source, progress)
        return progress

    async def _step(self, job: Job, source: FollowSource, links: Links, progress: Progress) -> Progress | None:
        """Read some pages' links, or go one deeper. The same progress: nothing is to be done now; None: ever."""
        if progress.depth >= source.depth or await self._total(job) >= source.limit:
            return None
        if progress.at >= progress.end:
            return await self._deeper(job, source, progress)
        window = await self._window(job, progress)
        ahead = self._ahead[job.id]
        fresh = [item for item in window if item.status is ItemStatus.SUCCESS and item.seq not in ahead]
        for first in range(0, len(fresh), PAGES):
            await self._read(job, source, links, fresh[first : first + PAGES])
        at = next((item.seq for item in window if item.status not in _FINAL), progress.at + len(window))
        self._ahead[job.id] = {item.seq for item in window if item.status in _FINAL and item.seq > at}
        return replace(progress, at=at)

    async def _deeper(self, job: Job, source: FollowSource, progress: Progress) -> Progress | None:
        """Written down before anything of it is read: where a depth ends cannot be told later."""
        total = await self._total(job)
        if total <= progress.end:
            return None
        deeper = Progress(depth=progress.depth + 1, at=progress.end, end=total)
        await self._note(job, source, deeper)
        self._ahead[job.id] = set()
        return deeper

    async def _window(self, job: Job, progress: Progress) -> list[Item]:
        """The next items of this depth, without their data."""
        async with aclosing(self._store.stream_items(job.id, ItemFilter(first=progress.at), data=False)) as blocks:
            async for block in blocks:
                return [item for item in block if item.seq < progress.end]
        return []

    async def _read(self, job: Job, source: FollowSource, links: Links, pages: Sequence[Item]) -> None:
        where = ItemFilter(keys=tuple(page.key for page in pages))
        found = await self._store.items(job.id, where, None, len(pages))
        results = [await self._result(item) for item in found.items]
        await self._add(job, links.follow(results), limit=source.limit)

    async def _result(self, item: Item) -> bytes:
        if not item.result_key:
            return raw_bytes(item.result)
        try:
            return unpacked_result(await self._blobs.get(item.result_key))
        except NotFound:
            return b""

    async def _add(self, job: Job, items: Sequence[NewItem], limit: int) -> None:
        """Never more than `limit` in all; whatever is there already is left out by its key.

        The number of a block is never used twice: a page's links may differ when they are read again.
        """
        room = limit - await self._total(job)
        while items and room > 0:
            size = min(room, ITEM_BLOCK)
            block, items = items[:size], items[size:]
            new = await self._store.add_items(job.id, block, secrets.randbits(62), self._clock(), source=BLOCKS)
            if new is None:
                return
            room -= new

    async def _total(self, job: Job) -> int:
        now = await self._store.job(job.id)
        return now.counts.total if now is not None else 0

    async def _note(self, job: Job, source: FollowSource, progress: Progress) -> None:
        await self._store.set_source(job.id, as_table(replace(source, progress=progress)))
