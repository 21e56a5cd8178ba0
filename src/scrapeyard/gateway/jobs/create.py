"""From a call or a template to a job in the store."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.builtin import default_for
from scrapeyard.engines.http.url import parse_target
from scrapeyard.errors import (
    BadRequest,
    FetchFailed,
    IdempotencyConflict,
    NotFound,
    Refusal,
    Unavailable,
)
from scrapeyard.gateway.auth.ownership import check_call, owned_wish, owner_of
from scrapeyard.gateway.jobs.calls import JobCall, JobOptions, ShapeOptions
from scrapeyard.gateway.jobs.policies import policy_of
from scrapeyard.gateway.jobs.profiles import export_types, extracting, sinks_of, with_profile
from scrapeyard.gateway.jobs.streams import JobNotifier
from scrapeyard.gateway.runs.admission import Lanes
from scrapeyard.gateway.runs.calls import traceparent
from scrapeyard.gateway.runs.receivers import WebhookValidator
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.inputs.mapper import check_source
from scrapeyard.inputs.source import (
    BadRows,
    FollowSource,
    KafkaSource,
    ListSource,
    Shape,
    SitemapSource,
    Source,
    UrlChoice,
    UrlSource,
    as_table,
    first_status,
    spool_of,
    spool_place,
)
from scrapeyard.inputs.spool import ListSummary
from scrapeyard.model import Priority, Scraper, new_id
from scrapeyard.model.identity import Identity
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.port import Catalogue, find
from scrapeyard.settings import SinkSettings
from scrapeyard.store.ports.jobs import ITEM_BLOCK
from scrapeyard.store.ports.runs import KeyedAnswer
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.traces import TraceExporter

log = get_log("jobs")


PAUSED_AT_START = "created paused"
KEY_SECONDS = 600.0
"""How long an interrupted call may be repeated to complete its job."""
_LOOKS, _LOOK_SECONDS = 50, 0.02
"""For the items of a short list that another process reads. Later the answer says that the job is being created."""


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A list that comes with a call."""

    chunks: AsyncIterator[bytes]
    digest: Callable[[], str]
    """Digest of everything read; call it once the upload has been read."""
    name: str = ""
    limit: int
    """Maximum bytes, after decompression."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """An Idempotency-Key and the digest of what it came with."""

    key: str
    digest: Callable[[], str]


@dataclass(frozen=True, kw_only=True)
class Created:
    """Result of creating a job."""

    job: Job
    summary: ListSummary | None = None
    """Summary of a list that came with the call; None if the source has not been read yet."""
    replayed: bool = False
    """Whether an earlier call with the same key created it."""


class JobCreation:
    """Creates jobs. A refused call leaves nothing behind."""

    def __init__(
        self,
        *,
        store: Store,
        blobs: Blobs,
        catalogue: Catalogue,
        intake: ItemImporter,
        lanes: Lanes,
        news: JobNotifier,
        receivers: WebhookValidator,
        sinks: SinkSettings,
        default_scraper: str,
        clock: Callable[[], float],
        traces: TraceExporter | None = None,
        trace_share: float = 0.0,
    ) -> None:
        """`trace_share` of the calls without a `traceparent` are traced."""
        self._traces = traces
        self._trace_share = trace_share
        self._store = store
        self._blobs = blobs
        self._catalogue = catalogue
        self._intake = intake
        self._lanes = lanes
        self._news = news
        self._receivers = receivers
        self._sinks = sinks
        self._default = default_scraper
        self._checker = InputChecker()
        self._clock = clock

    async def create_job(
        self,
        template: JobCall,
        *,
        identity: Identity,
        job_id: str = "",
        key: Key | None = None,
        schedule_id: str = "",
        trace: str | None = None,
    ) -> Created:
        """Create a job from a template, as `POST /api/jobs` takes it. With a given `job_id` it is created once, however
        often this is called. `trace` is the caller's `traceparent`.

        Raises BadRequest, ScraperNotFound, ScraperInvalid, Refusal or Unavailable."""
        job_id = job_id or (identity.job_id(template.job_id) if template.job_id else new_id("job"))
        check_call(identity, self._wanted(template))
        digest = "" if template.job_id is None else _digest(template)
        if (job := await self._store.jobs.get(job_id)) is not None:
            return _repeated(job, digest)
        template = with_profile(template)
        scraper, source = await self._sourced(template)
        spool = new_id("part") if digest else ""
        source = msgspec.structs.replace(source, call_digest=digest, spool=spool)
        job = await self._drafted(template, scraper, source, job_id, identity)
        job = msgspec.structs.replace(job, schedule_id=schedule_id, traceparent=traceparent(trace, self._trace_share))
        if template.items is None:
            return await self._written(job, None, key)
        place = spool_place(job_id, spool)
        summary = await self._intake.keep_values(place, scraper, template.items, source.shape)
        return await self._written(job, summary, key)

    async def check(self, template: JobCall, identity: Identity) -> None:
        """Raise as `create_job` would; nothing is stored. What lies at an address is not read."""
        check_call(identity, self._wanted(template))
        template = with_profile(template)
        scraper, source = await self._sourced(template)
        await self._drafted(template, scraper, source, "", identity)
        if template.items is not None:
            await self._intake.check_values(scraper, template.items, source.shape)

    async def _sourced(self, template: JobCall) -> tuple[Scraper, Source]:
        scraper = await self.find(self._wanted(template))
        source = extracting(_source(template), scraper, export_types(template))
        dialect = "" if template.options is None else "site"
        source = msgspec.structs.replace(source, domain=_domain(template), dialect=dialect)
        check_source(source, scraper, self._checker)
        if isinstance(source, KafkaSource):
            self._intake.check_topic(source.topic)
        return scraper, source

    async def create_from_list(
        self,
        options: JobOptions,
        upload: Upload,
        *,
        identity: Identity,
        key: Key | None = None,
        trace: str | None = None,
    ) -> Created:
        """Create a job from an uploaded list. Raises as `create_job`, and whatever reading the upload raises."""
        options = with_profile(options)
        check_call(identity, self._wanted(options))
        job_id, scraper = new_id("job"), await self.find(self._wanted(options))
        kept = ListSource(shape=shape_of(options), name=upload.name, domain=options.domain or "")
        source = extracting(kept, scraper, export_types(options))
        job = await self._drafted(options, scraper, source, job_id, identity)
        job = msgspec.structs.replace(job, traceparent=traceparent(trace, self._trace_share))
        summary = await self._intake.keep_list(job_id, scraper, upload.chunks, source.shape, upload.limit)
        return await self._written(job, summary, key)

    async def find(self, wanted: str | None) -> Scraper:
        """Resolve the scraper that a call names to its current version."""
        return await find(self._catalogue, wanted or self._default)

    def _wanted(self, options: JobOptions) -> str:
        return options.scraper or default_for(options.input, self._default)

    def pinned(self, wanted: str | None, scraper: Scraper) -> str:
        """The exact version to run; for a built-in the reference as requested, since each worker runs its own."""
        return (wanted or self._default) if scraper.is_builtin else str(scraper.ref)

    async def _drafted(
        self, options: JobOptions, scraper: Scraper, source: Source, job_id: str, identity: Identity
    ) -> Job:
        preferred = scraper.policy.priority
        jobs = self._store.jobs
        webhook = None if options.webhook is None else self._receivers.accept(options.webhook)
        return Job(
            id=job_id,
            status=JobStatus.PAUSED if options.paused else first_status(source),
            pause_reason=PAUSED_AT_START if options.paused else "",
            name=options.name,
            owner=owner_of(identity, options.owner),
            scraper=self._wanted(options),
            profile=options.profile or "",
            pinned=self.pinned(self._wanted(options), scraper),
            digest=scraper.ref.digest,
            lane=await self._lanes.choose(options.lane, scraper),
            priority=options.priority or (Priority(preferred) if preferred else Priority.NORMAL),
            policy=policy_of(options.policy, scraper),
            exports=tuple(dict.fromkeys([await owned_wish(jobs, identity, each.wish()) for each in options.exports])),
            sinks=sinks_of(options, self._sinks, webhook),
            webhook=None if webhook is None else Raw(msgspec.json.encode(webhook)),
            source=as_table(source),
            reading=True,
            created_at=self._clock(),
        )

    async def _written(self, job: Job, summary: ListSummary | None, key: Key | None) -> Created:
        held = await self._claimed(job, key)
        if held is not None and held != job.id:
            return await self._again(job, held)
        return await self._begun(job, summary)

    async def _begun(self, job: Job, summary: ListSummary | None) -> Created:
        """Write the job, and a short list's items at once; the dispatcher reads all other sources."""
        if not await self._store.jobs.create(job):
            if job.source.get("spool"):
                await self._blobs.delete([keys.job_list(spool_of(job))])
            return _repeated(await self._standing(job.id), job.source.get("call_digest", ""))
        if self._traces is not None:
            self._traces.job_created(job.traceparent, job.id, job.created_at, self._clock())
        log.info("jobs.created", job=job.id, scraper=job.pinned, source=str(job.source.get("kind")))
        if summary is not None and summary.rows <= ITEM_BLOCK:
            await self._fill(job)
        await self._news.wake()
        stands = await self._standing(job.id)
        _repeated(stands, job.source.get("call_digest", ""))  # after an outage the store cannot tell whose row it found
        return Created(job=stands, summary=summary)

    async def _fill(self, job: Job) -> None:
        """Read the list, or wait a moment for the dispatcher that came first."""
        try:
            if await self._intake.fill(job):
                return
            for _ in range(_LOOKS):
                if not (await self._standing(job.id)).reading:
                    return
                await asyncio.sleep(_LOOK_SECONDS)
        except Unavailable as error:  # the job is durable: the dispatcher continues
            log.warning("intake.later", job=job.id, error=error.message)

    async def _claimed(self, job: Job, key: Key | None) -> str | None:
        """The id of the job that holds the key; None without a key. Raises IdempotencyConflict."""
        if key is None:
            return None
        ours = KeyedAnswer(key=key.key, body_digest=key.digest(), run_ids=(job.id,), created_at=self._clock())
        held = await self._store.keys.remember(ours, ())
        if held.body_digest != ours.body_digest:
            await self._blobs.delete([keys.job_list(spool_of(job))])
            raise IdempotencyConflict("this Idempotency-Key was used with another body")
        return held.run_ids[0]

    async def _again(self, job: Job, held: str) -> Created:
        """Another call claimed the key first. If it never wrote its job, write it here from the list it left."""
        await self._blobs.delete([keys.job_list(job.id)])
        found = await self._store.jobs.get(held)
        if found is not None:
            return Created(job=found, replayed=True)
        is_list = job.source.get("kind") == "list"
        if is_list and await self._blobs.size(keys.job_list(held)) is None:
            raise Refusal("conflict", 409, "the job that this Idempotency-Key made was deleted; use a new key")
        created = await self._begun(msgspec.structs.replace(job, id=held), None)
        return Created(job=created.job, replayed=True)

    async def _standing(self, job_id: str) -> Job:
        job = await self._store.jobs.get(job_id)
        if job is None:
            raise NotFound(f"no job {job_id}; it was deleted this moment")
        return job


def shape_of(options: ShapeOptions, bad_rows: BadRows = "reject") -> Shape:
    """How rows become inputs. `bad_rows` is the default if the call does not set it."""
    return Shape(
        format=options.format,
        delimiter=options.delimiter,
        names=tuple(options.names),
        columns=dict(options.columns),
        input=dict(options.input),
        bad_rows=options.bad_rows or bad_rows,
    )


def _repeated(job: Job, digest: str) -> Created:
    """A job whose id is asked for again. Raises Refusal (409) if another call made it."""
    if job.source.get("call_digest", "") != digest:
        raise Refusal("conflict", 409, f"another call made the job {job.id}; choose another job_id, or send that call")
    return Created(job=job, replayed=True)


def _digest(call: JobCall) -> str:
    """Digest of what a call asks for, whatever names it uses."""
    asked = call.model_dump(mode="json", exclude_unset=True)
    return hashlib.sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()


def _domain(call: JobCall) -> str:
    """The site that a call names, or the host of the first address that it gives; empty if there is none."""
    first: Any = call.sitemap_url or next(iter(call.starts or call.items or ()), None)
    for name in ("input", "url"):
        first = first.get(name, first) if isinstance(first, dict) else first
    if call.domain or not isinstance(first, str):
        return call.domain or ""
    try:
        return parse_target(first).host
    except FetchFailed:
        return ""


def _source(call: JobCall) -> Source:
    """Where the items come from. Bad rows in a site's own lists are skipped by default, since no caller can correct
    them. Raises BadRequest for an invalid time."""
    if call.items_url is not None:
        return UrlSource(url=call.items_url, shape=shape_of(call))
    found = shape_of(call, "skip")
    if call.sitemap_url is not None:
        return SitemapSource(
            url=call.sitemap_url,
            shape=found,
            choice=_choice(call.sitemap.include, call.sitemap.exclude),
            modified_since=_seconds(call.sitemap.modified_since),
            limit=call.sitemap.limit,
        )
    if call.kafka is not None:
        shape = msgspec.structs.replace(found, format="jsonl") if found.format == "auto" else found
        return KafkaSource(shape=shape, **call.kafka.model_dump())
    if call.starts:
        follow: dict[str, Any] = call.follow.model_dump(exclude={"include", "exclude"}, exclude_none=True)
        return FollowSource(
            start=call.starts, shape=found, choice=_choice(call.follow.include, call.follow.exclude), **follow
        )
    return ListSource(shape=shape_of(call))


def _seconds(given: datetime | None) -> float | None:
    if given is None:
        return None
    try:
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError) as error:
        raise BadRequest(f"modified_since: a time that cannot be used: {error}") from None


def _choice(include: list[str], exclude: list[str]) -> UrlChoice:
    return UrlChoice(include=tuple(include), exclude=tuple(exclude))
