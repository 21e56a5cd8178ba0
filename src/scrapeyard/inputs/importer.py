"""From a job's source to its items in the store, under a lease, in two steps that can be repeated after a crash."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.engines.port import Caller, HttpEngine
from scrapeyard.errors import BadRequest, BlobsUnavailable, FetchFailed, NotFound, ScraperInvalid, StoreUnavailable
from scrapeyard.inputs.fetched import caller_of, keep_file
from scrapeyard.inputs.formats.rows import Piece
from scrapeyard.inputs.lists import MAX_LIST, read_list
from scrapeyard.inputs.mapper import Shaped, Shaper
from scrapeyard.inputs.sitemaps import SitemapBounds, Sitemaps
from scrapeyard.inputs.source import FOLLOWED, READ_IN, Shape, SitemapSource, UrlSource, source_of, spool_of
from scrapeyard.inputs.spool import ListSummary, RowCount, read_spool, write_spool
from scrapeyard.model import FetchPolicy, Scraper, may_help_later
from scrapeyard.model.job import Job, JobStatus, NewItem
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.port import Catalogue
from scrapeyard.store.ports.jobs import ITEM_BLOCK, ItemStore
from scrapeyard.store.ports.operations import LeaderStore
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("intake")
LEASE_SECONDS = 15.0
RENEW_SECONDS = 4.0


class Lease:
    """`held` is False once the lease is lost; check it before writing."""

    def __init__(self, *, held: bool) -> None:
        self.held = held


class Leases:
    """Leases of one process. `holder` names it; `clock` gives Unix seconds.

    A holder that lost its lease, because it stalled or the store was away, may still write one block. That is harmless:
    each block is added once, whoever adds it.
    """

    def __init__(self, leaders: LeaderStore, holder: str, clock: Callable[[], float]) -> None:
        self._leaders = leaders
        self._holder = holder
        self._clock = clock
        self._roles: set[str] = set()

    @asynccontextmanager
    async def hold(self, job_id: str) -> AsyncIterator[Lease]:
        """Acquire the lease; not held if this or another process already reads the job. Raises StoreUnavailable."""
        role = f"reading {job_id}"
        if role in self._roles:
            yield Lease(held=False)
            return
        self._roles.add(role)  # check here first: the store knows this process by one name
        try:
            if await self._lead(role):
                async with self._kept(role) as lease:
                    yield lease
            else:
                yield Lease(held=False)
        finally:
            self._roles.discard(role)

    @asynccontextmanager
    async def _kept(self, role: str) -> AsyncIterator[Lease]:
        lease = Lease(held=True)
        renewing = asyncio.create_task(self._renew(role, lease), name="intake-lease")
        try:
            yield lease
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await self._resign(role)

    async def _lead(self, role: str) -> bool:
        now = self._clock()
        return await self._leaders.claim(role, self._holder, now, now + LEASE_SECONDS)

    async def _renew(self, role: str, lease: Lease) -> None:
        while lease.held:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                lease.held = await self._lead(role)
            except StoreUnavailable:
                continue  # the reader gets the same error and gives up by itself
        log.warning("intake.lease_lost", job=role.removeprefix("reading "))

    async def _resign(self, role: str) -> None:
        try:
            await self._leaders.resign(role, self._holder)
        except StoreUnavailable as error:
            log.warning("intake.lease_kept", job=role.removeprefix("reading "), error=error.message)


EARLY = "early"
"""The source of blocks that were added before the list was read whole."""
_EARLY_SECONDS = 1.0


class EarlyItems:
    """Adds the items of a source to its job while the source is still read, so that they begin at once.

    If it cannot add all of them, the file of the list is added as a whole afterwards, and so it is after a crash: items
    that are there already add nothing.
    """

    def __init__(self, items: ItemStore, job_id: str, lease: Lease, clock: Callable[[], float]) -> None:
        self._items = items
        self._job_id = job_id
        self._lease = lease
        self._clock = clock
        self._is_open = True
        self._held: list[NewItem] = []
        self._added_at = 0.0
        self.took_all = False
        """Whether every item was added, once all are read."""

    async def watch(self, shaped: AsyncIterator[Shaped]) -> AsyncIterator[Shaped]:
        """Pass on what is read, and add its items in blocks: the first at once, later ones when they are full or a
        second has passed."""
        async for some in shaped:
            self._held += some.items
            while len(self._held) >= ITEM_BLOCK or (self._held and self._clock() - self._added_at >= _EARLY_SECONDS):
                await self._add()
            yield some
        while self._held:
            await self._add()
        self.took_all = self._is_open

    async def _add(self) -> None:
        block, self._held = self._held[:ITEM_BLOCK], self._held[ITEM_BLOCK:]
        self._is_open = self._is_open and self._lease.held
        if self._is_open:
            now = self._added_at = self._clock()
            number = secrets.randbits(62)  # after a crash, blocks of another reading may be there
            self._is_open = await self._items.add(self._job_id, block, number, now, source=EARLY) is not None


ATTEMPTS = 3
PAUSE_SECONDS = 5.0
LIST_SECONDS = 600.0
"""How long a job waits for the list that came with it."""
SPOOL_TYPE = "text/plain"
_PIECE = 500
"""Values of a call checked before yielding to other tasks."""


class ItemImporter:
    """Reads sources. `holder` names the process; `pause` waits between attempts; `clock` gives Unix seconds."""

    def __init__(
        self,
        *,
        store: Store,
        blobs: Blobs,
        engine: HttpEngine,
        catalogue: Catalogue,
        checker: InputChecker,
        holder: str,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        bounds: SitemapBounds | None = None,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._engine = engine
        self._catalogue = catalogue
        self._checker = checker
        self._leases = Leases(store.leaders, holder, clock)
        self._clock = clock
        self._pause = pause
        self._bounds = bounds

    async def keep_list(
        self, job_id: str, scraper: Scraper, chunks: AsyncIterator[bytes], shape: Shape, limit: int = MAX_LIST
    ) -> ListSummary:
        """Spool a list that comes with a call, before its job is created. If it raises, nothing is stored:
        ListUnreadable, ListRefused, ScraperInvalid, BlobsUnavailable."""
        return await self._spool(job_id, self._shaped_list(scraper, chunks, shape, limit), _tally(shape))

    async def keep_values(self, job_id: str, scraper: Scraper, values: Sequence[Any], shape: Shape) -> ListSummary:
        """The same for values in the call's body; the line of a bad one is its position, from 1."""
        return await self._spool(job_id, self._shaped_values(scraper, values, shape), _tally(shape))

    async def check_values(self, scraper: Scraper, values: Sequence[Any], shape: Shape) -> None:
        """Raise as `keep_values` would; nothing is stored."""
        tally = _tally(shape)
        async for shaped in self._shaped_values(scraper, values, shape):
            tally.take(shaped)
        tally.end()

    async def fill(self, job: Job) -> bool:
        """Read a job's source to its end. If the source cannot be read, the job fails with the reason in its error; a
        job created paused is cancelled, with the reason in its source as `problem`.

        False if there is nothing to do: another process reads it, it is not being read, or it follows links. Raises
        Unavailable if the store or blobs are away; calling it again continues.
        """
        if not _is_read(job):
            return False
        async with self._leases.hold(job.id) as lease:
            now = await self._store.jobs.get(job.id) if lease.held else None
            if now is None or not _is_read(now):  # the previous lease holder has read it
                return False
            await self._fill(now, lease)
        return True

    async def _fill(self, job: Job, lease: Lease) -> None:
        try:
            summary = await self._read(job, lease) or await self._add(job, lease)
        except (BadRequest, FetchFailed, NotFound, ScraperInvalid) as error:
            await self._fail(job, error)
        else:
            if summary is not None:
                await self._end(job, summary)
        await self._tidy(job)

    async def _read(self, job: Job, lease: Lease) -> ListSummary | None:
        """Spool the source, unless that was already done. None if its items are still to be added."""
        if await self._blobs.size(keys.job_list(spool_of(job))) is not None:
            return None
        source = source_of(job)
        if isinstance(source, UrlSource):
            return await self._again(lambda: self._from_url(job, source, lease))
        if isinstance(source, SitemapSource):
            return await self._again(lambda: self._from_sitemap(job, source, lease))
        if self._clock() - job.created_at < LIST_SECONDS:
            raise BlobsUnavailable("the list that came with the job is not there yet")
        raise NotFound("the list that came with the job is gone; make the job again")

    async def _again(self, read: Callable[[], Awaitable[ListSummary | None]]) -> ListSummary | None:
        for attempt in range(1, ATTEMPTS):
            try:
                return await read()
            except FetchFailed as failure:
                if not may_help_later(failure.reason, failure.site_status):
                    raise
            await self._pause(PAUSE_SECONDS * attempt)
        return await read()

    async def _from_url(self, job: Job, source: UrlSource, lease: Lease) -> ListSummary | None:
        scraper = await self._catalogue.obtain(job.pinned, job.digest)
        summary: ListSummary | None = None

        async def keep(chunks: AsyncIterator[bytes], _: str) -> int:
            nonlocal summary
            shaped = self._shaped_list(scraper, chunks, source.shape, MAX_LIST)
            summary, size = await self._put_early(job, shaped, _tally(source.shape), source.shape, lease)
            return size

        caller = Caller(job_id=job.id, policy=FetchPolicy(robots="ignore", escalate=False))
        await keep_file(self._engine, source.url, caller, keep, MAX_LIST)
        return summary

    async def _from_sitemap(self, job: Job, source: SitemapSource, lease: Lease) -> ListSummary | None:
        scraper = await self._catalogue.obtain(job.pinned, job.digest)
        caller = caller_of(job)
        sitemaps = Sitemaps(self._engine, source, caller, bounds=self._bounds, pause=self._pause)
        tally = RowCount(reject=source.shape.bad_rows == "reject", may_be_empty=True)
        shaped = self._shaped_sitemap(scraper, sitemaps, source.shape, tally)
        return (await self._put_early(job, shaped, tally, source.shape, lease))[0]

    async def _put_early(
        self, job: Job, shaped: AsyncIterator[Shaped], tally: RowCount, shape: Shape, lease: Lease
    ) -> tuple[ListSummary | None, int]:
        """Spool a list, and add its items as they come, unless a bad row further on may refuse all of them. The summary
        (None if items are still to be added) and the size of the file."""
        early = EarlyItems(self._store.items, job.id, lease, self._clock)
        size = await self._put(spool_of(job), shaped if shape.bad_rows == "reject" else early.watch(shaped), tally)
        if not early.took_all:
            return None, size
        return _counted(tally.end(), await self._store.items.added(job.id, EARLY)), size

    async def _spool(self, job_id: str, shaped: AsyncIterator[Shaped], tally: RowCount) -> ListSummary:
        await self._put(job_id, shaped, tally)
        return tally.end()

    async def _put(self, job_id: str, shaped: AsyncIterator[Shaped], tally: RowCount) -> int:
        async with aclosing(write_spool(shaped, tally)) as pieces:
            return await self._blobs.put_stream(keys.job_list(job_id), pieces, SPOOL_TYPE)

    async def _shaped_list(
        self, scraper: Scraper, chunks: AsyncIterator[bytes], shape: Shape, limit: int
    ) -> AsyncIterator[Shaped]:
        with closing(Shaper(scraper, self._checker, shape)) as shaper:
            async for some in read_list(chunks, shape, limit):
                yield shaper.shape(some.piece, text=some.text)

    async def _shaped_values(self, scraper: Scraper, values: Sequence[Any], shape: Shape) -> AsyncIterator[Shaped]:
        with closing(Shaper(scraper, self._checker, shape)) as shaper:
            for at in range(0, len(values), _PIECE):
                yield shaper.shape(Piece(list(enumerate(values[at : at + _PIECE], at + 1)), []))
                await asyncio.sleep(0)

    async def _shaped_sitemap(
        self, scraper: Scraper, sitemaps: Sitemaps, shape: Shape, tally: RowCount
    ) -> AsyncIterator[Shaped]:
        shaper = Shaper(scraper, self._checker, shape)
        async with aclosing(sitemaps.rows()) as pieces:
            async for piece in pieces:
                yield shaper.shape(piece)
        tally.gaps += sitemaps.gaps

    async def _add(self, job: Job, lease: Lease) -> ListSummary | None:
        """Add every block in order. None if the job accepts no more, or the lease was lost."""
        block, added = 0, await self._store.items.added(job.id, EARLY)
        async with aclosing(read_spool(self._blobs.stream(keys.job_list(spool_of(job))))) as found:
            async for some in found:
                if isinstance(some, ListSummary):
                    return _counted(some, added)
                new = await self._store.items.add(job.id, some, block, self._clock()) if lease.held else None
                if new is None:
                    return None
                block, added = block + 1, added + new
        return None

    async def _end(self, job: Job, summary: ListSummary) -> None:
        now = self._clock()
        if summary.bad:
            rows = Raw(msgspec.json.encode({"count": summary.bad, "first": summary.first}))
            await self._store.events.add(job.id, JobEventKind.ROWS_SKIPPED, rows, now)
        if told := _unread(job, summary):
            await self._store.jobs.set_source(job.id, {**job.source, **told})
        await self._store.jobs.end_reading(job.id, summary.bad + summary.doubles, "", now)
        log.info(
            "intake.read", job=job.id, items=summary.rows - summary.doubles, bad=summary.bad, twice=summary.doubles
        )

    async def _tidy(self, job: Job) -> None:
        """Delete the spool file, not needed once the job is read. If that fails, it is deleted with the job. A job that
        was cancelled meanwhile keeps it: resumed, it reads on."""
        now = await self._store.jobs.get(job.id)
        if now is not None and (now.unread or _is_read(now)):
            return
        try:
            await self._blobs.delete_prefix([keys.list_prefix(spool_of(job))])
        except BlobsUnavailable as error:
            log.warning("intake.file_stays", job=job.id, error=error.message)

    async def _fail(self, job: Job, error: BadRequest | FetchFailed | NotFound | ScraperInvalid) -> None:
        log.warning("intake.failed", job=job.id, error=error.message)
        if rows := error.details.get("rows"):
            told = Raw(msgspec.json.encode({"count": error.details.get("count", len(rows)), "first": rows}))
            await self._store.events.add(job.id, JobEventKind.ROWS_REFUSED, told, self._clock())
        if job.status is not JobStatus.CREATING:  # created paused: only CREATING can fail
            await self._store.jobs.set_source(job.id, {**job.source, "problem": error.message})
            await self._store.jobs.cancel(job.id, True, self._clock())
        await self._store.jobs.end_reading(job.id, 0, error.message, self._clock())


def _is_read(job: Job) -> bool:
    """Whether the job's source is still to be read."""
    return job.reading and job.status in READ_IN and job.source.get("kind") != FOLLOWED


def _unread(job: Job, summary: ListSummary) -> dict[str, Any]:
    """What the job's row says of a source that was not read whole. A row of a list is a page to look at; a bad entry of
    a sitemap is no page."""
    is_sitemap = job.source.get("kind") == "sitemap"
    left_out = [summary.left_out] if summary.left_out else []
    gaps = [*summary.gaps, *([] if is_sitemap else left_out)]
    told = {"gaps": gaps, "left_out": left_out if is_sitemap else []}
    return {name: value for name, value in told.items() if value}


def _counted(summary: ListSummary, added: int) -> ListSummary:
    """With the rows that were items already. A source that changed before it was read again may have fewer rows."""
    return msgspec.structs.replace(summary, doubles=max(0, summary.rows - added))


def _tally(shape: Shape) -> RowCount:
    return RowCount(reject=shape.bad_rows == "reject")
