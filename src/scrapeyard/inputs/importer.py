"""From a job's source to its items in the store, under a lease, in two steps that can be repeated after a crash."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, closing
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.engines.port import Caller, HttpEngine
from scrapeyard.errors import BadRequest, BlobsUnavailable, FetchFailed, NotFound, ScraperInvalid
from scrapeyard.inputs.fetched import caller_of, keep_file
from scrapeyard.inputs.formats.rows import Piece
from scrapeyard.inputs.leases import EARLY, EarlyItems, Lease, Leases
from scrapeyard.inputs.lists import MAX_LIST, read_list
from scrapeyard.inputs.mapper import Shaped, Shaper
from scrapeyard.inputs.sitemaps import SitemapBounds, Sitemaps
from scrapeyard.inputs.source import (
    FOLLOWED,
    READ_IN,
    KafkaSource,
    Shape,
    SitemapSource,
    Span,
    Topics,
    UrlSource,
    source_of,
    spool_of,
)
from scrapeyard.inputs.spool import ListSummary, RowCount, read_spool, write_spool
from scrapeyard.model import FetchPolicy, Scraper, may_help_later
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.port import Catalogue
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("intake")
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
        topics: Topics | None = None,
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
        self._topics = topics

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
                await self._end(await self._settled(job), summary)
        await self._tidy(job)

    async def _settled(self, job: Job) -> Job:
        """The job with its source as it was read. A topic's group is moved on only now that the items are stored."""
        if job.source.get("kind") != "kafka" or (now := await self._store.jobs.get(job.id)) is None:
            return job
        source = source_of(now)
        if isinstance(source, KafkaSource):
            await self._need_topics().commit(source)
        return now

    async def _read(self, job: Job, lease: Lease) -> ListSummary | None:
        """Spool the source, unless that was already done. None if its items are still to be added."""
        if await self._blobs.size(keys.job_list(spool_of(job))) is not None:
            return None
        source = source_of(job)
        if isinstance(source, UrlSource):
            return await self._again(lambda: self._from_url(job, source, lease))
        if isinstance(source, SitemapSource):
            return await self._again(lambda: self._from_sitemap(job, source, lease))
        if isinstance(source, KafkaSource):
            return await self._from_topic(job, source, lease)
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

    def check_topic(self, topic: str) -> None:
        """Raises BadRequest if jobs may not read this topic."""
        self._need_topics().check(topic)

    def _need_topics(self) -> Topics:
        if self._topics is None:
            raise BadRequest("kafka: this server reads no Kafka topics; the operator sets jobs.kafka_url")
        return self._topics

    async def _from_topic(self, job: Job, source: KafkaSource, lease: Lease) -> ListSummary | None:
        topics = self._need_topics()
        topics.check(source.topic)
        if not source.spans:
            source = msgspec.structs.replace(source, spans=tuple(await topics.spans(source)))
            await self._store.jobs.set_source(job.id, {**job.source, "spans": msgspec.to_builtins(source.spans)})

        async def ended(spans: Sequence[Span]) -> None:
            # written before the spool is whole: what the group is moved to is then known after any crash
            if source.idle_seconds:
                read = {"spans": msgspec.to_builtins(spans)}
                await self._store.jobs.set_source(job.id, {**job.source, **read})

        scraper = await self._catalogue.obtain(job.pinned, job.digest)
        tally = RowCount(reject=source.shape.bad_rows == "reject", may_be_empty=True)
        shaped = self._shaped_topic(scraper, topics.read(source, ended), source.shape)
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

    async def _shaped_topic(
        self, scraper: Scraper, chunks: AsyncIterator[bytes], shape: Shape
    ) -> AsyncIterator[Shaped]:
        """As a list, but one that may be empty."""
        async for first in chunks:

            async def all_of_it(chunk: bytes = first) -> AsyncIterator[bytes]:
                yield chunk
                async for more in chunks:
                    yield more

            async for shaped in self._shaped_list(scraper, all_of_it(), shape, MAX_LIST):
                yield shaped

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
    lost = sum(span.get("lost", 0) for span in job.source.get("spans", ()))
    removed = [f"{lost} records of the topic were removed by its retention before they were read"] if lost else []
    gaps = [*summary.gaps, *removed, *([] if is_sitemap else left_out)]
    told = {"gaps": gaps, "left_out": left_out if is_sitemap else []}
    return {name: value for name, value in told.items() if value}


def _counted(summary: ListSummary, added: int) -> ListSummary:
    """With the rows that were items already. A source that changed before it was read again may have fewer rows."""
    return msgspec.structs.replace(summary, doubles=max(0, summary.rows - added))


def _tally(shape: Shape) -> RowCount:
    return RowCount(reject=shape.bad_rows == "reject")
