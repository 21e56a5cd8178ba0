"""A whole job without a server: the real store, dispatcher, worker and walls in this process, its files in a temporary
folder that is gone at the end, or in one that stays."""

import asyncio
import contextlib
import functools
import itertools
import os
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
from pydantic import BaseModel, SecretStr, ValidationError

from scrapeyard.blobs.port import Blobs
from scrapeyard.cli.runs.local_state import LocalState, user_state
from scrapeyard.cli.runs.waiting import JobWait, LastFailure, Patience
from scrapeyard.dispatch.feeding.halting import BY_BREAKER as PAUSED_BY_BREAKER
from scrapeyard.errors import BadRequest
from scrapeyard.gateway.jobs.calls import ChangeCall, JobCall, JobOptions
from scrapeyard.gateway.jobs.create import Upload
from scrapeyard.gateway.jobs.service import JobService
from scrapeyard.inputs.lists import MAX_LIST
from scrapeyard.inputs.spool import ListSummary
from scrapeyard.model import Scraper
from scrapeyard.model.identity import EVERYONE
from scrapeyard.model.job import Item, ItemStatus, Job, JobStatus
from scrapeyard.model.lanes import DEFAULT_LANE as LANE
from scrapeyard.results.exports.builder import ExportBuilder
from scrapeyard.results.feeding import lines_of
from scrapeyard.settings import Settings, SourceSettings
from scrapeyard.store.ports.jobs import ItemFilter, ItemStore
from scrapeyard.wiring.backends import make_store
from scrapeyard.wiring.local_engine import written_here
from scrapeyard.wiring.platform import Platform
from scrapeyard.wiring.starting import LOCAL_ROLES, build_type_info

LOOK_SECONDS = 0.1
LAST_SECONDS = 0.02
"""Looks while a job of which all items have ended is finished, or finds more items."""
ROUND_SECONDS = 0.1
"""Rounds of the dispatcher here: a server saves its database the many looks, and here somebody waits."""
_FEW = 20
"""Items whose end is looked at one by one."""
_PIECE = 256 * 1024

_LOOKED_AT = 100
"""Items that wait, looked at for the one that goes first."""

_ROWS = 250
"""Items handed on at once."""

Show = Callable[[dict[str, Any], JobWait | None], Awaitable[None]]


class LocalJobs:
    """Runs jobs here. Use it through `open_jobs`."""

    def __init__(self, desk: JobService, failure: LastFailure, ended: asyncio.Event) -> None:
        """`ended` is set when items have ended."""
        self._desk = desk
        self._failure = failure
        self._ended = ended

    async def find(self, wanted: str) -> Scraper:
        """A scraper by name. Raises as a catalogue's `resolve`."""
        return await self._desk.creation.find(wanted)

    async def start(self, table: dict[str, Any], stream: BinaryIO) -> tuple[Job, ListSummary | None]:
        """Create a job from a list and the API's fields. Raises BadRequest, ScraperNotFound, ScraperInvalid."""
        options = checked(JobOptions, {**table, "lane": LANE})
        upload = Upload(chunks=_pieces(stream), digest=str, limit=MAX_LIST)
        created = await self._desk.creation.create_from_list(options, upload, identity=EVERYONE)
        return created.job, created.summary

    async def create(self, call: JobCall) -> Job:
        """Create a job from a call whose items are found, not given; with the `job_id` of one there is, that one.
        Raises as `start`."""
        return (await self._desk.creation.create_job(call.model_copy(update={"lane": LANE}), identity=EVERYONE)).job

    async def resume(self, job_id: str) -> Job | None:
        """Go on with a job that an earlier command left; None if there is none, as it is if it has ended."""
        job = await self._desk.store.jobs.get(job_id)
        while job is not None and job.status is JobStatus.CANCELLING:
            await asyncio.sleep(LOOK_SECONDS)
            job = await self._desk.store.jobs.get(job_id)
        if job is None or job.status not in (JobStatus.CANCELLED, JobStatus.PAUSED):
            return job
        return await self._desk.control.resume(job_id)

    async def change_pace(self, job: Job, pace: dict[str, Any]) -> Job:
        """Change how fast a job that goes on is: its `rate` and `concurrency`. Raises BadRequest."""
        return await self._desk.control.change(job.id, checked(ChangeCall, {"policy": pace}))

    async def interrupt(self, job: Job) -> Job:
        """Cancel the job now, so that it can be resumed, and return it when that is done."""
        job = await self._desk.control.cancel(job.id, kill=True)
        while not job.status.is_final:
            await asyncio.sleep(LOOK_SECONDS)
            job = await self._desk.control.get(job.id)
        return job

    async def until_end(self, job: Job, patience: Patience, show: Show) -> Job:
        """Wait for the job's end and return it; `show` is awaited with its document and its wait now and then. Cancels
        a job that waits too long, or that its budget paused for good, because nobody can resume it."""
        while True:
            job = await self._desk.control.get(job.id)
            wait = await self._wait(job)
            is_over = patience.is_over(job, wait)
            await show(self.document(job), None if is_over else wait)
            if job.status.is_final:
                return job
            is_stuck = job.status is JobStatus.PAUSED and job.pause_reason != PAUSED_BY_BREAKER
            if is_stuck or is_over:
                await self._desk.control.cancel(job.id, kill=False)
            await self._pause(job)

    async def _pause(self, job: Job) -> None:
        """Until there may be something new to tell: soon if no item is left, and when items end if few are."""
        counts = job.counts
        left = counts.pending + counts.queued + counts.in_progress
        if left > _FEW:
            await asyncio.sleep(LOOK_SECONDS)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS if left else LAST_SECONDS):
                await self._ended.wait()
        self._ended.clear()

    async def _wait(self, job: Job) -> JobWait | None:
        """Why nothing of it runs now; None if something does, or will at once."""
        counts = job.counts
        if not counts.pending or counts.queued or counts.in_progress:
            return None
        where = ItemFilter(statuses=(ItemStatus.PENDING,))
        pending = (await self._desk.store.items.page(job.id, where, None, _LOOKED_AT)).items
        return self._failure.wait(job, pending, time.time())

    def document(self, job: Job) -> dict[str, Any]:
        """A job as the server shows it, without links: there is nobody to follow them to."""
        shown: dict[str, Any] = msgspec.to_builtins(self._desk.document(job))
        del shown["links"]
        return shown

    def rows(self, job: Job, builder: ExportBuilder) -> "JobRows":
        """Hands the job's items to `builder`, in their order."""
        return JobRows(self._desk.store.items, self._desk.blobs, job.id, builder)

    async def failures(self, job: Job, limit: int) -> tuple[Item, ...]:
        """The first items that ended as errors."""
        where = ItemFilter(statuses=(ItemStatus.ERROR,))
        return (await self._desk.store.items.page(job.id, where, None, limit)).items


class JobRows:
    """The items of one job on their way into a file."""

    def __init__(self, items: ItemStore, blobs: Blobs, job_id: str, builder: ExportBuilder) -> None:
        self._items = items
        self._blobs = blobs
        self._job_id = job_id
        self._builder = builder
        self._next = 0

    async def advance(self, *, rest: bool = False, read: bool = False) -> None:
        """Hand on items that have ended, up to the first that has not; with `rest`, every item that is left; with
        `read` as well, without those that were never run to their end."""
        while True:
            page = await self._items.page(self._job_id, ItemFilter(first=self._next), None, _ROWS)
            ended = page.items if rest else tuple(itertools.takewhile(_has_ended, page.items))
            if ended:
                lines = await lines_of(self._blobs, tuple(filter(_was_run, ended)) if read else ended)
                self._builder.add_lines(lines)  # with no pause before the next line: Ctrl-C must not add them twice
                self._next = ended[-1].seq + 1
            if len(ended) < len(page.items) or page.next_cursor is None:
                self._builder.pass_on()
                return


def _has_ended(item: Item) -> bool:
    return item.status in (ItemStatus.SUCCESS, ItemStatus.ERROR, ItemStatus.CANCELLED)


def _was_run(item: Item) -> bool:
    return item.status in (ItemStatus.SUCCESS, ItemStatus.ERROR)


@contextlib.asynccontextmanager
async def open_jobs(
    settings: Settings, kept_in: Path | None = None, *, keeps_state: bool = False, has_scripts: bool = True
) -> AsyncIterator[LocalJobs]:
    """Start everything; at the end stop it and remove every file, unless they are in `kept_in`. Installed packages and
    downloads from repositories stay in the server's data directory, if there is one, and cached pages in the user's
    cache. With `keeps_state` the next command finds what `ctx.state` has. Without `has_scripts` only built-in scrapers
    can run."""
    from scrapeyard.cli.runs.local import is_remote, pages_folder

    with _folder(kept_in) as folder, pages_folder(folder) as pages:
        failure, ended = LastFailure(), asyncio.Event()
        kept = settings.data_dir.resolve()
        is_kept = kept.is_dir() and os.access(kept, os.W_OK)
        platform = Platform(
            embedded(settings if has_scripts else _without_sources(settings), folder),
            LOCAL_ROLES,
            cache=kept / "cache" if is_kept and is_remote(settings) else None,
            environments=kept / "environments" if is_kept else None,
            pages=pages,
            hear=failure.hear,
            ended=ended.set,
            jobs_only=True,
            temporary=kept_in is None,
            state=LocalState(user_state()) if keeps_state else None,
            has_scripts=has_scripts,
        )
        await _copy_written(settings, platform.settings, temporary=kept_in is None)
        await platform.start()
        desk = platform.job_desk()
        try:
            yield LocalJobs(desk, failure, ended)
        finally:
            desk.close()
            await platform.stop()


@contextlib.contextmanager
def _folder(kept_in: Path | None) -> Iterator[Path]:
    if kept_in is not None:
        kept_in.mkdir(exist_ok=True)
        yield kept_in.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="scrapeyard-job-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


async def _copy_written(settings: Settings, into: Settings, *, temporary: bool) -> None:
    """Copy what operators wrote for sites and proxies from the data directory's database to that of `into`."""
    written = written_here(settings)
    if not written.rules and not written.pools:
        return
    build_type_info()
    store = make_store(into, temporary=temporary)
    await store.start()
    try:
        for rules in written.rules:
            await store.sites.put(rules)
        for pool in written.pools:
            await store.proxies.put_pool(pool)
    finally:
        await store.stop()


def embedded(settings: Settings, folder: Path) -> Settings:
    """The same settings with every backend in this process and its files in the folder."""
    nowhere = SecretStr("")
    blobs = settings.blobs.model_copy(update={"url": ""})
    worker = settings.worker.model_copy(
        update={"lanes": (LANE,), "takes": (), "reserved_slots": 0, "drain_seconds": 0.0}
    )
    changes = {
        "data_dir": folder,
        "redis_url": nowhere,
        "database_url": nowhere,
        "blobs": blobs,
        "worker": worker,
        "jobs": settings.jobs.model_copy(update={"round_seconds": ROUND_SECONDS}),
    }
    return settings.model_copy(update=changes)


def _without_sources(settings: Settings) -> Settings:
    """The same settings with no repository to look at: built-in scrapers come from none."""
    changes = {"scrapers": None, "source": SourceSettings(), "more": (), "installed": False}
    return settings.model_copy(update={"repository": settings.repository.model_copy(update=changes)})


Model = TypeVar("Model", bound=BaseModel)


def checked(model: type[Model], table: dict[str, Any]) -> Model:
    """The fields of a call, validated. Raises BadRequest that names each wrong place."""
    try:
        return model.model_validate(table)
    except ValidationError as error:
        places = (f"  {'/'.join(str(part) for part in fault['loc'])}: {fault['msg']}" for fault in error.errors())
        raise BadRequest("\n".join(["the job cannot be made:", *places])) from None


async def _pieces(stream: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await _piece(stream.fileno()):
        yield piece


async def _piece(number: int) -> bytes:
    """The next bytes of a file or pipe; empty at its end. Runs in a thread that nobody joins: Ctrl-C must end a
    blocked read of stdin, and Python's own reader would hold its lock then."""
    loop = asyncio.get_running_loop()
    come: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        try:
            told = functools.partial(_report, come, os.read(number, _PIECE))
        except OSError as error:
            told = functools.partial(_report, come, BadRequest(f"the list cannot be read: {error.strerror}"))
        with contextlib.suppress(RuntimeError):  # the event loop has ended meanwhile
            loop.call_soon_threadsafe(told)

    threading.Thread(target=read, name="reading-list", daemon=True).start()
    return await come


def _report(come: "asyncio.Future[bytes]", what: bytes | BadRequest) -> None:
    if come.cancelled():
        return
    if isinstance(what, BadRequest):
        come.set_exception(what)
    else:
        come.set_result(what)
