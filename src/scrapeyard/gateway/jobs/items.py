"""Items of jobs: list them, get one, download its artifacts; dead letters across jobs."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from msgspec import Meta, Raw, Struct
from starlette.responses import Response

from scrapeyard.blobs import keys
from scrapeyard.errors import NotFound, Swept
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.auth.owned import JobId
from scrapeyard.gateway.http.answers import JSON, AnswerRoute
from scrapeyard.gateway.http.downloads import BYTES, AnyResponse, attachment, kept_object
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import (
    Cursor,
    GatewayDep,
    HttpStatuses,
    ItemKey,
    ItemStatuses,
    Keys,
    Limit,
    Reasons,
    Sites,
)
from scrapeyard.gateway.http.patterns import JOB_ID, NEXT, OBJECT, SCRAPER_ID
from scrapeyard.gateway.jobs.service import JobService
from scrapeyard.gateway.runs.documents import ArtifactDocument
from scrapeyard.model import ExitReason, LogLine, RunError, Usage
from scrapeyard.model.instants import instant
from scrapeyard.model.job import Item, ItemStatus, Job
from scrapeyard.store.ports.jobs import DeadLetterFilter, ItemFilter, ItemPage

MOST_GROUPS = 50
_NULL = Raw(b"null")
_MANIFEST = "manifest"
_LOOKS = 50
"""Pages of items that one search looks at."""
_Words = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        description="Only items whose input, or result if it is small, has this text; upper and lower case are alike. "
        "One call looks at 50 times `limit` items at most: a page may be empty and have a `next_cursor`.",
    ),
]
_SHORT = {"data": "data.json", "html": "html.html", "metadata": "metadata.json", "screenshot": "screenshot.png"}
_Artifact = Annotated[
    str,
    Query(
        pattern=r"^[^/\x00-\x1f\x7f]{1,255}$",
        description="`data`, `html`, `metadata`, `screenshot`, `manifest`, or a name from the item's `artifacts`.",
    ),
]
_BYTES = {"description": "The bytes, as an attachment.", "content": BYTES}


class ItemLinks(Struct, frozen=True, kw_only=True):
    """Where to go from here."""

    self: str
    job: str


class ItemDocument(Struct, frozen=True, kw_only=True):
    """An item."""

    id: str
    number: Annotated[int, Meta(description="Its place in the job, from 0.")]
    status: ItemStatus
    input: Annotated[Raw, OBJECT]
    attempt: Annotated[int, Meta(description="Attempts begun.")]
    not_before: Annotated[str | None, Meta(description="When it is tried again.")]
    exit_reason: ExitReason | None
    http_status: Annotated[
        int | None, Meta(description="Of the last page that it fetched; null if there was none, or no answer.")
    ]
    partial: Annotated[
        bool, Meta(description="It failed, and `result` has the records that the script yielded before.")
    ]
    error: RunError | None
    site: str | None
    usage: Usage | None
    strategy_used: Annotated[
        str | None,
        Meta(
            description="How its last page was had: `http`, `clearance` (plain HTTP with what the solver had got), "
            "`solver` or `cache`; null if it got none."
        ),
    ]
    proxy_used: Annotated[
        str | None, Meta(description="Class and exit of the proxy that the page came through, without credentials.")
    ]
    started_at: str | None
    finished_at: str | None
    depth: Annotated[int | None, Meta(description="Links from a start to it; null unless links are followed.")]
    referrer: Annotated[str | None, Meta(description="The page that linked to it first.")]
    result: Annotated[Raw, Meta(description="Null before the end and where the data is an object: `artifacts` has it.")]
    result_bytes: int
    artifacts: list[ArtifactDocument]
    swept: Annotated[tuple[str, ...], Meta(description="What retention has removed of it.")]
    links: ItemLinks


class WholeItemDocument(ItemDocument, frozen=True, kw_only=True):
    """An item with what it wrote."""

    logs: Annotated[tuple[LogLine, ...], Meta(description="The last lines, of items that failed.")]


class ItemPageDocument(Struct, frozen=True, kw_only=True):
    """One page of the items, in the order of the list."""

    items: list[ItemDocument]
    next_cursor: Annotated[str | None, NEXT]


class DeadLetterDocument(ItemDocument, frozen=True, kw_only=True):
    """An item that ended as an error."""

    job_id: str


class DeadLetterPageDocument(Struct, frozen=True, kw_only=True):
    """One page of the dead letters, those of the newest job first."""

    items: list[DeadLetterDocument]
    next_cursor: Annotated[str | None, NEXT]


ShownItem = TypeVar("ShownItem", bound=ItemDocument)


def item_document(job: Job, item: Item) -> ItemDocument:
    """An item without its logs."""
    return _shown(ItemDocument, job.id, item, swept=job.swept_of(item))


def whole_item(job: Job, item: Item) -> WholeItemDocument:
    """An item with its logs."""
    return _shown(WholeItemDocument, job.id, item, logs=item.logs, swept=job.swept_of(item))


def dead_letter(job: Job, item: Item) -> DeadLetterDocument:
    """An item that ended as an error, among those of other jobs."""
    return _shown(DeadLetterDocument, job.id, item, job_id=job.id, swept=job.swept_of(item))


def _shown(kind: type[ShownItem], of: str, item: Item, **more: Any) -> ShownItem:
    here = f"/api/jobs/{of}/items/{quote(item.key, safe='')}"
    return kind(
        id=item.key,
        number=item.seq,
        status=item.status,
        input=item.input,
        attempt=item.attempt,
        not_before=instant(item.not_before),
        exit_reason=item.exit_reason,
        http_status=item.http_status,
        partial=item.partial,
        error=item.error,
        site=item.site or None,
        usage=item.usage,
        strategy_used=item.strategy or None,
        proxy_used=item.proxy or None,
        started_at=instant(item.started_at),
        finished_at=instant(item.finished_at),
        depth=item.depth,
        referrer=item.referrer or None,
        result=item.result if item.result is not None else _NULL,
        result_bytes=item.result_bytes,
        artifacts=_artifacts(here, item),
        links=ItemLinks(self=here, job=f"/api/jobs/{of}"),
        **more,
    )


def _artifacts(here: str, item: Item) -> list[ArtifactDocument]:
    """Everything that can be downloaded of an item, without blob keys."""
    found = [(kept.name, kept.content_type, kept.size) for kept in item.artifacts]
    has_data = item.result is not None or bool(item.result_key)
    if has_data and not any(name == "data.json" for name, _, _ in found):
        found.insert(0, ("data.json", "application/json", item.result_bytes or len(bytes(item.result or b""))))
    return [
        ArtifactDocument(
            name=name, content_type=kind, size=size, href=f"{here}/download?artifact={quote(name, safe='')}"
        )
        for name, kind, size in found
    ]


router = APIRouter(tags=["jobs"], route_class=AnswerRoute)


@router.get("/api/jobs/{job_id}/items", summary="List a job's items", responses=refusals(400, 404, 409, 422, 503))
async def list_items(
    gateway: GatewayDep,
    job_id: JobId,
    *,
    status: ItemStatuses = None,
    exit_reason: Reasons = None,
    site: Sites = None,
    http_status: HttpStatuses = None,
    key: Keys = None,
    first: Annotated[int, Query(ge=0, le=2**53, description="Items with this number or higher.")] = 0,
    q: _Words = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> ItemPageDocument:
    """In the order of the list, with results that are small. An item must fit every filter given."""
    where = ItemFilter(
        statuses=tuple(status) if status else None,
        exit_reasons=tuple(exit_reason) if exit_reason else None,
        sites=tuple(site) if site else None,
        http_statuses=tuple(http_status) if http_status else None,
        keys=tuple(key) if key else None,
        first=first,
    )
    look = partial(gateway.jobs.store.items.page, job_id, where, limit=limit)
    page = await _searched(look, q, cursor) if q else await look(cursor)
    if not page.items:
        await gateway.jobs.control.with_items(job_id)
    job = await gateway.jobs.control.get(job_id)
    return ItemPageDocument(items=[item_document(job, item) for item in page.items], next_cursor=page.next_cursor)


async def _searched(look: Callable[[str | None], Awaitable[ItemPage]], words: str, cursor: str | None) -> ItemPage:
    """The next items with these words: those of the first page that has any, or of the last that one call looks at."""
    for _ in range(_LOOKS):
        page = await look(cursor)
        found, cursor = await asyncio.to_thread(_with_words, page.items, words.casefold()), page.next_cursor
        if found or cursor is None:
            break
    return ItemPage(items=tuple(found), next_cursor=cursor)


def _with_words(items: Iterable[Item], words: str) -> list[Item]:
    return [item for item in items if words in _text(item.input) or words in _text(item.result)]


def _text(value: Raw | None) -> str:
    return "" if value is None else bytes(value).decode("utf-8", "replace").casefold()


class FailureDocument(Struct, frozen=True, kw_only=True):
    """Items of a job that failed alike."""

    exit_reason: ExitReason
    http_status: Annotated[int | None, Meta(description="Of the last page that they fetched; null: there was none.")]
    site: Annotated[str | None, Meta(description="Registrable domain.")]
    count: Annotated[int, Meta(description="How many there are.")]
    example: Annotated[ItemDocument, Meta(description="The first of them.")]


class FailuresDocument(Struct, frozen=True, kw_only=True):
    """Why items of a job failed."""

    job_id: Annotated[str, Meta(description="The job's id.")]
    groups: Annotated[list[FailureDocument], Meta(description="The 50 largest groups, the largest first.")]


@router.get("/api/jobs/{job_id}/errors", summary="See why items failed", responses=refusals(404, 409, 422, 503))
async def list_errors(gateway: GatewayDep, job_id: JobId) -> FailuresDocument:
    """Failed items by exit reason, HTTP status and site, each group with its first item as an example."""
    await gateway.jobs.control.with_items(job_id)
    job = await gateway.jobs.control.get(job_id)
    found = await gateway.jobs.store.items.failures(job_id, MOST_GROUPS)
    groups = [
        FailureDocument(
            exit_reason=group.exit_reason,
            http_status=group.http_status,
            site=group.site or None,
            count=group.count,
            example=item_document(job, group.example),
        )
        for group in found
    ]
    return FailuresDocument(job_id=job_id, groups=groups)


@router.get("/api/jobs/{job_id}/items/{key}", summary="Look an item up", responses=refusals(404, 409, 410, 422, 503))
async def get_item(gateway: GatewayDep, job_id: JobId, key: ItemKey) -> WholeItemDocument:
    """With its result, error, logs and what it left."""
    job, item = await _item(gateway.jobs, job_id, key)
    if item.result_bytes or item.exit_reason is ExitReason.SUCCEEDED:
        _check_swept(job, item, "results")
    return whole_item(job, item)


@router.get(
    "/api/jobs/{job_id}/items/{key}/download",
    summary="Download what an item left",
    response_class=AnyResponse,
    responses={200: _BYTES, **refusals(404, 409, 410, 422, 503)},
)
async def download_artifact(
    gateway: GatewayDep, request: Request, job_id: JobId, key: ItemKey, artifact: _Artifact = "data"
) -> Response:
    """Streamed, with its own content type."""
    job, item = await _item(gateway.jobs, job_id, key)
    return await _download(gateway.jobs, job, item, artifact, request.headers.get("accept-encoding", ""))


def _check_swept(job: Job, item: Item, kind: str) -> None:
    """Raises Swept if retention has removed this kind of the item."""
    if kind in job.swept_of(item):
        at = instant(job.swept[kind])
        raise Swept(f"retention removed the {kind} of item {item.key} of job {job.id} at {at}")


async def _item(desk: JobService, job_id: str, key: str) -> tuple[Job, Item]:
    item = await desk.store.items.get(job_id, key)
    if item is None:
        await desk.control.with_items(job_id)
        raise NotFound(f"job {job_id} has no item {key}")
    return await desk.control.get(job_id), item


async def _download(desk: JobService, job: Job, item: Item, artifact: str, accepts: str) -> Response:
    """Artifact names chosen by a script take precedence over the short names."""
    for name in (artifact, _SHORT.get(artifact, "")):
        for kept in item.artifacts:
            if kept.name == name:
                _check_swept(job, item, kept.kind)
                return await kept_object(desk.blobs, kept.key, kept.content_type, accepts, attachment(name))
    if _SHORT.get(artifact, artifact) == "data.json":
        _check_swept(job, item, "results")
        headers = attachment(f"{item.key}.json")
        if item.result is not None:
            return Response(bytes(item.result), headers=headers, media_type=JSON)
        if item.result_key:
            return await kept_object(desk.blobs, item.result_key, JSON, accepts, headers)
    if artifact == _MANIFEST:
        _check_swept(job, item, "results")
        key = keys.item_manifest(job.id, item.key)
        try:
            return await kept_object(desk.blobs, key, JSON, accepts, attachment(f"{item.key}.json"))
        except NotFound:
            raise NotFound(f"item {item.key} has no manifest; jobs with policy.results `objects` write them") from None
    raise NotFound(f"item {item.key} left nothing of that name; its `artifacts` lists what there is")


@router.get("/api/dead-letters", summary="List dead letters", responses=refusals(400, 422, 503))
async def list_dead_letters(
    gateway: GatewayDep,
    identity: IdentityDep,
    *,
    job_id: Annotated[str | None, Query(pattern=JOB_ID, description="Of this job.")] = None,
    scraper: Annotated[str | None, Query(pattern=SCRAPER_ID, description="`site/task`, any version.")] = None,
    exit_reason: Reasons = None,
    site: Sites = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> DeadLetterPageDocument:
    """Items that ended as errors, of every job, a client's of its own; those of the newest job first. `POST
    /api/jobs/{job_id}/redrive` runs them again."""
    where = DeadLetterFilter(
        job_id=job_id,
        owner=identity.only,
        scraper=scraper,
        exit_reasons=tuple(exit_reason) if exit_reason else None,
        sites=tuple(site) if site else None,
    )
    found, next_cursor = await gateway.jobs.store.items.dead_letters(where, cursor, limit)
    jobs = {job_id: await gateway.jobs.store.jobs.get(job_id) for job_id in {job_id for job_id, _ in found}}
    shown = [dead_letter(job, item) for job_id, item in found if (job := jobs[job_id]) is not None]
    return DeadLetterPageDocument(items=shown, next_cursor=next_cursor)
