"""The task that follows links: links on a job's pages become items of the same job, depth by depth."""

import secrets
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from scrapeyard.blobs.port import Blobs
from scrapeyard.engines.http.decompress import Corrupt, OverLimit, decompress
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.url import MAX_URL, parse_target
from scrapeyard.errors import FetchFailed, NotFound, ScrapeyardError
from scrapeyard.inputs.formats.rows import ListRefused
from scrapeyard.inputs.mapper import Shaper, key_of
from scrapeyard.inputs.patterns import Chooser
from scrapeyard.inputs.source import FOLLOWED, READ_IN, FollowSource, Progress, as_table, source_of
from scrapeyard.model.events import JobEventKind
from scrapeyard.model.job import Item, ItemStatus, Job, NewItem
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.port import Catalogue
from scrapeyard.store.ports.jobs import ITEM_BLOCK, ItemFilter, JobFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

MAX_LINKS = 10_000
"""Maximum links of one page."""
MAX_RESULT = 64 * 1024**2
_GZIP = b"\x1f\x8b"


class PageLinks:
    """Decides which links of one job's pages are followed."""

    def __init__(self, source: FollowSource, shaper: Shaper, sites: Sites) -> None:
        """Raises BadRequest for patterns that cannot be used."""
        self._source = source
        self._shaper = shaper
        self._sites = sites
        self._chooser = Chooser(source.choice)
        self._home = {self._site(url) for url in source.start} - {""}
        page = msgspec.defstruct("Page", [("links", Any, None)], rename={"links": source.links})
        self._page = msgspec.json.Decoder(page).decode
        self._pages = msgspec.json.Decoder(list[page]).decode  # type: ignore[valid-type]  # it is a class

    def starts(self) -> list[NewItem]:
        """The items to start with; unusable URLs are skipped."""
        return list(self._items(dict.fromkeys(self._source.start, ""), depth=0))

    def follow(self, pages: Sequence[tuple[str, bytes]], depth: int) -> list[NewItem]:
        """New items for the links of some pages (URL and result), each once, `depth` links from a start. Raises
        ListRefused for a link that does not fit the scraper's input, if the job rejects bad rows."""
        found: dict[str, str] = {}
        for page, result in pages:
            for url in self._found(result):
                found.setdefault(url, page)
        items: dict[str, NewItem] = {}
        for item in self._items(found, depth=depth):
            items.setdefault(item.key, item)
        return list(items.values())

    def _found(self, result: bytes) -> Iterator[str]:
        try:
            pages = self._pages(result) if result[:1] == b"[" else [self._page(result)]
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return
        left = MAX_LINKS
        for page in pages:
            named = getattr(page, "links", None)
            links = named if isinstance(named, list) else []
            for link in links[:left]:
                url = link.get("url") if isinstance(link, dict) else link
                if isinstance(url, str):
                    yield url
            left -= len(links[:left])

    def _items(self, urls: dict[str, str], *, depth: int) -> Iterator[NewItem]:
        """Items of URLs, each with the page it was found on. Starts are taken whatever the patterns say."""
        for url, referrer in urls.items():
            try:
                target = parse_target(url)
            except FetchFailed:  # mailto:, javascript: and the like, of which every page has some
                continue
            plain = target.url
            if depth and not (self._is_home(target.host) and self._chooser.takes(plain)):
                continue
            item = self._shaper.item_of(plain, key_of(plain.encode()))
            if isinstance(item, NewItem):
                yield replace(item, depth=depth, referrer=referrer)
            elif self._source.shape.bad_rows == "reject":
                raise ListRefused([item], 1)

    def _is_home(self, host: str) -> bool:
        return not self._source.same_site or self._sites.of(host) in self._home

    def _site(self, url: str) -> str:
        try:
            return self._sites.of(parse_target(url).host)
        except FetchFailed:
            return ""


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
PAGES = 50
"""Pages whose results are in memory at once."""
SLICE_SECONDS = 0.3
"""Maximum time for one job in one round."""
JOBS = 200
_FINAL = frozenset({ItemStatus.SUCCESS, ItemStatus.ERROR})


class _NoMoreItems(Exception):
    """The job was cancelled meanwhile. Its progress is not noted, so that it reads the same links when resumed."""


class Following:
    """A MaintenanceTask. `clock` gives Unix seconds."""

    name = "following"
    waits_after_outage = False

    def __init__(
        self,
        *,
        store: Store,
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
        """By job: items beyond the stored progress whose links were already read. May be lost without harm."""

    async def run_once(self) -> None:
        """Run one round: every job that follows links gets its share of time."""
        jobs = await self._followed()
        self._ahead = {job.id: self._ahead.get(job.id, set()) for job in jobs}
        for job in jobs:
            try:
                await self._follow(job)
            except ListRefused as error:
                await self._fail(job, error)
            except _NoMoreItems:
                continue
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
        scraper = await self._catalogue.obtain(job.pinned, job.digest)
        links = PageLinks(source, Shaper(scraper, self._checker, source.shape), self._sites)
        progress: Progress | None = source.progress or await self._start(job, source, links)
        until = time.monotonic() + SLICE_SECONDS
        last = progress
        while progress is not None and time.monotonic() < until:
            step = await self._step(job, source, links, progress)
            if step == progress:
                break
            last, progress = progress, step
        if progress is None:
            await self._end(job, source, last or Progress())
        elif progress != source.progress:
            await self._note(job, source, progress)

    async def _end(self, job: Job, source: FollowSource, last: Progress) -> None:
        gaps = []
        if last.failed:
            pages = "page" if last.failed == 1 else "pages"
            gaps.append(f"{last.failed} {pages} failed, and the links there could not be followed")
        if await self._total(job) >= source.limit:
            gaps.append(f"the limit of {source.limit} pages was reached, and links beyond it were not followed")
        if gaps:
            await self._store.jobs.set_source(job.id, {**as_table(replace(source, progress=last)), "gaps": gaps})
        await self._store.jobs.end_reading(job.id, 0, "", self._clock())

    async def _start(self, job: Job, source: FollowSource, links: PageLinks) -> Progress:
        await self._add(job, links.starts(), limit=source.limit)
        progress = Progress(end=await self._total(job))
        await self._note(job, source, progress)
        return progress

    async def _step(self, job: Job, source: FollowSource, links: PageLinks, progress: Progress) -> Progress | None:
        """Read some links, or go one level deeper. The same progress if nothing is to do now; None if complete."""
        if progress.depth >= source.depth or await self._total(job) >= source.limit:
            return None
        if progress.at >= progress.end:
            return await self._deeper(job, source, progress)
        window = await self._window(job, progress)
        ahead = self._ahead[job.id]
        fresh = [item for item in window if item.status is ItemStatus.SUCCESS and item.seq not in ahead]
        for first in range(0, len(fresh), PAGES):
            await self._read(job, source, links, fresh[first : first + PAGES], progress.depth + 1)
        at = next((item.seq for item in window if item.status not in _FINAL), progress.at + len(window))
        self._ahead[job.id] = {item.seq for item in window if item.status in _FINAL and item.seq > at}
        failed = sum(item.status is ItemStatus.ERROR for item in window if item.seq < at)
        return replace(progress, at=at, failed=progress.failed + failed)

    async def _deeper(self, job: Job, source: FollowSource, progress: Progress) -> Progress | None:
        """Store the new depth before reading any of it: the end of a depth cannot be determined later."""
        total = await self._total(job)
        if total <= progress.end:
            return None
        deeper = replace(progress, depth=progress.depth + 1, at=progress.end, end=total)
        await self._note(job, source, deeper)
        self._ahead[job.id] = set()
        return deeper

    async def _window(self, job: Job, progress: Progress) -> list[Item]:
        """The next items of this depth, without their data."""
        async with aclosing(self._store.items.stream(job.id, ItemFilter(first=progress.at), data=False)) as blocks:
            async for block in blocks:
                return [item for item in block if item.seq < progress.end]
        return []

    async def _read(self, job: Job, source: FollowSource, links: PageLinks, pages: Sequence[Item], depth: int) -> None:
        where = ItemFilter(keys=tuple(page.key for page in pages))
        found = await self._store.items.page(job.id, where, None, len(pages))
        results = [(_url_of(item), await self._result(item)) for item in found.items]
        await self._add(job, links.follow(results, depth), limit=source.limit)

    async def _result(self, item: Item) -> bytes:
        if item.partial:
            return b""
        if not item.result_key:
            return raw_bytes(item.result)
        try:
            return unpacked_result(await self._blobs.get(item.result_key))
        except NotFound:
            return b""

    async def _add(self, job: Job, items: Sequence[NewItem], limit: int) -> None:
        """Add items, never more than `limit` in all; those whose key exists are skipped. Raises _NoMoreItems.

        A block number is never reused: a page's links may differ when they are read again.
        """
        room = limit - await self._total(job)
        while items and room > 0:
            size = min(room, ITEM_BLOCK)
            block, items = items[:size], items[size:]
            new = await self._store.items.add(job.id, block, secrets.randbits(62), self._clock(), source=BLOCKS)
            if new is None:
                raise _NoMoreItems
            room -= new

    async def _total(self, job: Job) -> int:
        now = await self._store.jobs.get(job.id)
        return now.counts.total if now is not None else 0

    async def _note(self, job: Job, source: FollowSource, progress: Progress) -> None:
        await self._store.jobs.set_source(job.id, as_table(replace(source, progress=progress)))
