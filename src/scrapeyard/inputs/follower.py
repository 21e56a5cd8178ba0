"""The task that follows links: links on a job's pages become items of the same job, depth by depth."""

import asyncio
import secrets
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import aclosing
from itertools import count
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from scrapeyard.background import Background
from scrapeyard.blobs.port import Blobs
from scrapeyard.engines.http.decompress import Corrupt, OverLimit, decompress
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.url import MAX_URL
from scrapeyard.engines.port import HttpEngine
from scrapeyard.errors import FetchFailed, NotFound, ScrapeyardError
from scrapeyard.inputs.fetched import caller_of
from scrapeyard.inputs.formats.rows import ListRefused, ListUnreadable
from scrapeyard.inputs.links import MAX_SEEN, PageLinks, target_of
from scrapeyard.inputs.mapper import Shaper
from scrapeyard.inputs.sitemaps import Sitemaps
from scrapeyard.inputs.source import FOLLOWED, READ_IN, FollowSource, Progress, SitemapSource, as_table, source_of
from scrapeyard.model import Scraper
from scrapeyard.model.job import Item, ItemStatus, Job, NewItem
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.port import Catalogue
from scrapeyard.store.ports.jobs import ITEM_BLOCK, ItemFilter, JobFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

MAX_RESULT = 64 * 1024**2
_GZIP = b"\x1f\x8b"


def unpacked_result(data: bytes) -> bytes:
    """A stored result, decompressed if it is gzip; empty if that fails."""
    if not data.startswith(_GZIP):
        return data
    try:
        return decompress(data, ("gzip",), MAX_RESULT)
    except (Corrupt, OverLimit, zlib.error):
        return b""


def raw_bytes(result: Raw | None) -> bytes:
    """A result stored in its row; empty if there is none."""
    return b"" if result is None else bytes(result)


def _url_of(item: Item) -> str:
    """The URL in an item's input; empty if it has none."""
    try:
        return _INPUT(item.input).url[:MAX_URL]
    except msgspec.MsgspecError:
        return ""


class _Input(Struct, frozen=True):
    url: str = ""


_INPUT = msgspec.json.Decoder(_Input).decode

log = get_log("intake")
BLOCKS = "links"
"""Name of the source under which blocks are added."""
PAGES = 100
"""Pages whose links are added at once."""
SLICE_SECONDS = 0.3
"""Maximum time for one job in one round."""
JOBS = 200
SITEMAP_SECONDS = 120.0
"""Maximum time for the sitemaps of one job; the pages beyond it are found by links, or not at all."""
_GAPS = 5
"""Maximum sentences about sitemaps that were not read whole."""
_FINAL = (ItemStatus.SUCCESS, ItemStatus.ERROR)


class _NoMoreItems(Exception):
    """The job was cancelled meanwhile. Its progress is not noted, so that it reads the same links when resumed."""


class Following:
    """A MaintenanceTask. `engine` reads sitemaps; `clock` gives Unix seconds."""

    name = "following"
    waits_after_outage = False

    def __init__(
        self,
        *,
        store: Store,
        blobs: Blobs,
        engine: HttpEngine,
        catalogue: Catalogue,
        checker: InputChecker,
        sites: Sites,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._engine = engine
        self._catalogue = catalogue
        self._checker = checker
        self._sites = sites
        self._clock = clock
        self._ahead: dict[str, set[int]] = {}
        """By job: items beyond the stored progress whose links were already read. May be lost without harm."""
        self._links: dict[str, tuple[Scraper, PageLinks]] = {}
        self._adding = asyncio.Lock()
        """Sitemaps and links are read at the same time: what one adds, the other must count before it adds."""
        self._sitemaps = Background()
        self._read_sitemaps: dict[str, tuple[int, tuple[str, ...]]] = {}
        """By job: how many URLs its sitemaps gave, and what of them was not read."""

    async def start(self) -> None:
        """Nothing to do: the first round starts reading."""

    async def stop(self) -> None:
        """Abort the reading of sitemaps; the next leader reads them again. May be called twice."""
        await self._sitemaps.stop()

    async def idle(self) -> None:
        """Wait until no sitemap is being read here."""
        await self._sitemaps.idle()

    async def run_once(self) -> None:
        """Run one round: every job that follows links gets its share of time."""
        jobs = await self._followed()
        self._ahead = {job.id: self._ahead.get(job.id, set()) for job in jobs}
        self._links = {job.id: self._links[job.id] for job in jobs if job.id in self._links}
        self._read_sitemaps = {job.id: self._read_sitemaps[job.id] for job in jobs if job.id in self._read_sitemaps}
        for job in jobs:
            try:
                await self._follow(job)
            except ListRefused as error:
                await self._fail(job, error)
            except _NoMoreItems:
                self._links.pop(job.id, None)
            except ScrapeyardError as error:
                log.warning("intake.not_followed", job=job.id, error=error.message)

    async def _fail(self, job: Job, refused: ListRefused) -> None:
        log.warning("intake.failed", job=job.id, error=refused.message)
        told = Raw(msgspec.json.encode({"count": refused.details["count"], "first": refused.details["rows"]}))
        await self._store.events.add(job.id, JobEventKind.ROWS_REFUSED, told, self._clock())
        await self._store.jobs.end_reading(job.id, 0, refused.message, self._clock())

    async def _followed(self) -> list[Job]:
        page = await self._store.jobs.page(JobFilter(statuses=READ_IN, reading=True), None, JOBS)
        return [job for job in page.jobs if job.reading and job.source.get("kind") == FOLLOWED]

    async def _follow(self, job: Job) -> None:
        source = source_of(job)
        if not isinstance(source, FollowSource):
            return
        is_new = job.id not in self._links
        links = await self._links_of(job, source)
        progress: Progress | None = source.progress or await self._start(job, source, links)
        if is_new and progress is not None and progress.depth >= source.depth:
            progress = replace(progress, at=progress.first, beyond=0)  # the links counted before are not known here
        until = time.monotonic() + SLICE_SECONDS
        last = progress
        while progress is not None and time.monotonic() < until:
            step = await self._step(job, source, links, progress)
            if step == progress:
                break
            last, progress = progress, step
            if step is not None and step.depth == last.depth and step.at < min(step.end, last.at + ITEM_BLOCK):
                break  # what ended meanwhile is read in the next round, with more of its kind
        if progress is None:
            await self._end(job, source, last or Progress(), links)
        elif progress != source.progress:
            await self._note(job, source, progress)

    async def _links_of(self, job: Job, source: FollowSource) -> PageLinks:
        scraper = await self._catalogue.obtain(job.pinned, job.digest)
        known = self._links.get(job.id)
        if known is None or known[0] != scraper:
            links = PageLinks(source, Shaper(scraper, self._checker, source.shape), self._sites)
            known = self._links[job.id] = scraper, links
        return known[1]

    async def _end(self, job: Job, source: FollowSource, last: Progress, links: PageLinks) -> None:
        gaps = list(last.sitemap_gaps)
        now = await self._store.jobs.get(job.id) or job
        if last.failed:
            pages = "page" if last.failed == 1 else "pages"
            gaps.append(f"{last.failed} {pages} failed, and the links there could not be followed")
        if now.counts.total >= source.limit:
            has_sitemap = last.sitemap is not None and not last.sitemap_gaps
            is_exact = last.at_limit and not now.counts.error and not links.is_full
            gaps += _beyond_limit(source.limit, last.beyond, is_exact=is_exact and (has_sitemap or not source.sitemap))
        elif links.is_full:
            gaps.append(f"there are more than {MAX_SEEN:,} links beyond the depth; no more were counted")
        told = {**({"gaps": gaps} if gaps else {}), **_found(source, last)}
        if told:
            await self._store.jobs.set_source(job.id, {**as_table(replace(source, progress=last)), **told})
        await self._store.jobs.end_reading(job.id, 0, "", self._clock())

    async def _start(self, job: Job, source: FollowSource, links: PageLinks) -> Progress:
        await self._add(job, links.starts(), limit=source.limit)
        progress = Progress(end=await self._total(job))
        await self._note(job, source, progress)
        return progress

    async def _step(self, job: Job, source: FollowSource, links: PageLinks, progress: Progress) -> Progress | None:
        """Read some links, or go one level deeper. The same progress if nothing is to do now; None if complete."""
        is_last = progress.depth >= source.depth
        if is_last and not source.count_beyond:
            return None
        if not progress.at_limit and await self._total(job) >= source.limit:
            return await self._at_limit(job, source, links, progress)
        if source.sitemap and progress.sitemap is None and not is_last:
            progress = self._with_sitemaps(job, source, links, progress)
        if progress.at >= progress.end:
            return None if is_last else await self._deeper(job, source, progress)
        ended = await self._ended(job, progress)
        ahead = self._ahead[job.id]
        fresh = [item for item in ended if item.status is ItemStatus.SUCCESS and item.seq not in ahead]
        beyond = progress.beyond
        for first in range(0, len(fresh), PAGES):
            beyond += await self._read(job, source, links, fresh[first : first + PAGES], progress.depth)
        known = {item.seq for item in ended}
        at = next(seq for seq in count(progress.at) if seq not in known)
        self._ahead[job.id] = {seq for seq in known if seq > at}
        failed = 0 if is_last else sum(item.status is ItemStatus.ERROR for item in ended if item.seq < at)
        return replace(progress, at=at, failed=progress.failed + failed, beyond=beyond)

    async def _at_limit(self, job: Job, source: FollowSource, links: PageLinks, progress: Progress) -> Progress | None:
        """From here links are only counted, those of all pages from the first one; None if nobody asked for that."""
        if not source.count_beyond:
            return None
        if progress.sitemap is None and (job.id in self._sitemaps or job.id in self._read_sitemaps):
            progress = self._with_sitemaps(job, source, links, progress)
            if progress.sitemap is None:
                return progress
        links.forget()
        self._ahead[job.id] = set()
        total = await self._total(job)
        return replace(progress, depth=source.depth, first=0, at=0, end=total, beyond=0, at_limit=True)

    async def _deeper(self, job: Job, source: FollowSource, progress: Progress) -> Progress | None:
        """Store the new depth before reading any of it: the end of a depth cannot be determined later."""
        if source.sitemap and progress.sitemap is None:
            return progress
        total = await self._total(job)
        if total <= progress.end:
            return None
        deeper = replace(progress, depth=progress.depth + 1, first=progress.end, at=progress.end, end=total)
        await self._note(job, source, deeper)
        self._ahead[job.id] = set()
        return deeper

    async def _ended(self, job: Job, progress: Progress) -> list[Item]:
        """The next items of this depth that have ended, without their data."""
        where = ItemFilter(first=progress.at, statuses=_FINAL)
        async with aclosing(self._store.items.stream(job.id, where, data=False)) as blocks:
            async for block in blocks:
                return [item for item in block if item.seq < progress.end]
        return []

    async def _read(self, job: Job, source: FollowSource, links: PageLinks, pages: Sequence[Item], depth: int) -> int:
        """Add the links of some pages, which are `depth` links from a start. Of the deepest pages, only count those
        that lead to other pages than the job's. Returns how many there are, or did not fit into the job."""
        where = ItemFilter(keys=tuple(page.key for page in pages))
        found: dict[str, str] = {}
        for item in (await self._store.items.page(job.id, where, None, len(pages))).items:
            links.gather(_url_of(item), await self._result(item), found)
        named = links.listed(found, depth + 1)
        if depth < source.depth:
            await self._add(job, named.items, limit=source.limit)
        is_counted = depth >= source.depth or await self._total(job) >= source.limit
        beyond = await self._unknown(job, links.uncounted(named.items)) if is_counted else 0
        links.remember(named)
        return beyond

    async def _unknown(self, job: Job, items: Sequence[NewItem]) -> int:
        """How many of these the job does not have."""
        known = 0
        for first in range(0, len(items), ITEM_BLOCK):
            keys = tuple(item.key for item in items[first : first + ITEM_BLOCK])
            known += len((await self._store.items.page(job.id, ItemFilter(keys=keys), None, ITEM_BLOCK)).items)
        return len(items) - known

    async def _result(self, item: Item) -> bytes:
        if item.partial:
            return b""
        if not item.result_key:
            return raw_bytes(item.result)
        try:
            return unpacked_result(await self._blobs.get(item.result_key))
        except NotFound:
            return b""

    async def _add(self, job: Job, items: Sequence[NewItem], limit: int) -> int:
        """Add items, never more than `limit` in all; those whose key exists are skipped. Returns how many were new.
        Raises _NoMoreItems.

        A block number is never reused: a page's links may differ when they are read again.
        """
        async with self._adding:
            room, added = limit - await self._total(job), 0
            while items and room > 0:
                size = min(room, ITEM_BLOCK)
                block, items = items[:size], items[size:]
                new = await self._store.items.add(job.id, block, secrets.randbits(62), self._clock(), source=BLOCKS)
                if new is None:
                    raise _NoMoreItems
                room, added = room - new, added + new
            return added

    def _with_sitemaps(self, job: Job, source: FollowSource, links: PageLinks, progress: Progress) -> Progress:
        """The progress, with what the sitemaps gave once they are read; reading them starts here."""
        read = self._read_sitemaps.pop(job.id, None)
        if read is not None:
            return replace(progress, sitemap=read[0], sitemap_gaps=read[1])
        if job.id not in self._sitemaps:
            self._sitemaps.spawn(self._take_sitemaps(job, source, links), name=f"sitemaps-{job.id}", key=job.id)
        return progress

    async def _take_sitemaps(self, job: Job, source: FollowSource, links: PageLinks) -> None:
        added, gaps = 0, list[str]()
        homes = dict.fromkeys(target.at("/").url for target in map(target_of, source.start) if target is not None)
        try:
            async with asyncio.timeout(SITEMAP_SECONDS):
                for home in homes:
                    more, unread = await self._take_sitemap(job, source, links, home)
                    added, gaps = added + more, [*gaps, *unread]
        except TimeoutError:
            gaps.append(f"the sitemap was not read whole in {SITEMAP_SECONDS:.0f} s")
        except _NoMoreItems:
            return
        except ScrapeyardError as error:
            log.warning("intake.not_followed", job=job.id, error=error.message)
            return  # the next round tries again
        self._read_sitemaps[job.id] = added, tuple(gaps[:_GAPS])

    async def _take_sitemap(self, job: Job, source: FollowSource, links: PageLinks, home: str) -> tuple[int, list[str]]:
        """Add the URLs that the sitemaps of a host name; how many of them the job has, whether links name them too or
        not. A host without any is no fault."""
        caller = caller_of(job)
        sitemaps = Sitemaps(self._engine, SitemapSource(url=home), caller)
        taken = 0
        try:
            async with aclosing(sitemaps.rows()) as pieces:
                async for piece in pieces:
                    named = links.listed({str(url): home for _, url in piece.rows}, depth=1)
                    await self._add(job, named.items, limit=source.limit)
                    is_full = await self._total(job) >= source.limit
                    left = await self._unknown(job, named.items) if is_full else 0
                    taken += len(named.items) - left
                    if left:
                        return taken, [*sitemaps.gaps, "the sitemap has more pages than the limit leaves room for"]
        except (FetchFailed, ListUnreadable):
            return 0, []
        return taken, sitemaps.gaps

    async def _total(self, job: Job) -> int:
        now = await self._store.jobs.get(job.id)
        return now.counts.total if now is not None else 0

    async def _note(self, job: Job, source: FollowSource, progress: Progress) -> None:
        await self._store.jobs.set_source(job.id, as_table(replace(source, progress=progress)))


def _beyond_limit(limit: int, count: int, *, is_exact: bool) -> list[str]:
    """What is told of the links of a job that has as many pages as it may; nothing if there is none."""
    if not count:
        return [] if is_exact else [f"the limit of {limit} pages was reached, and links beyond it were not followed"]
    links = f"{count:,} link beyond it was" if count == 1 else f"{count:,} links beyond it were"
    return [f"the limit of {limit} pages was reached, and {'' if is_exact else 'at least '}{links} not followed"]


def _found(source: FollowSource, last: Progress) -> dict[str, Any]:
    """What the job's row says of where its pages were found, if that was asked for."""
    told = {
        **({"sitemap_urls": last.sitemap or 0} if source.sitemap else {}),
        **({"beyond_limit" if last.at_limit else "beyond_depth": last.beyond} if source.count_beyond else {}),
    }
    return {"found": told} if told else {}
