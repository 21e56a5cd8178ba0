"""`/api/forget`: remove everything about one URL, one site or one client."""

import hashlib
from collections.abc import Callable
from typing import Annotated, Any, Self

from fastapi import APIRouter
from msgspec import Meta, Struct
from pydantic import BaseModel, ConfigDict, Field, model_validator

from scrapeyard.blobs import keys
from scrapeyard.blobs.port import Blobs
from scrapeyard.dispatch.upkeep.archiving import unpacked
from scrapeyard.engines.http.url import canonical_host, parse_target
from scrapeyard.errors import BadRequest, FetchFailed, Refusal
from scrapeyard.gateway.audit.middleware import AuditDep
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.cache import Caching, InvalidateCall
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.model.job import ArchiveState, Job
from scrapeyard.results.feeding import item_blocks
from scrapeyard.results.manifests import write_manifests
from scrapeyard.store.ports.forgetting import ForgetTarget
from scrapeyard.store.ports.store import Store
from scrapeyard.store.recorder import Recorder
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")
_MOST_TOLD = 20


class ForgetCall(BaseModel):
    """What to forget: exactly one of `url`, `site` and `client`."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra={"examples": [{"url": "https://shop.example/p/1", "dry_run": True}]},
    )

    url: str | None = Field(None, min_length=8, max_length=2048, description="A page's URL.")
    site: str | None = Field(None, min_length=1, max_length=253, description="A host, such as `shop.example`.")
    client: str | None = Field(None, min_length=1, max_length=200, description="A client's name.")
    dry_run: bool = Field(False, description="Count what would go, and remove nothing.")

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if sum(given is not None for given in (self.url, self.site, self.client)) != 1:
            raise ValueError("give one of url, site and client")
        return self


class ForgottenDocument(Struct, frozen=True, kw_only=True):
    """What went, or with `dry_run` what would go."""

    dry_run: Annotated[bool, Meta(description="Whether nothing was removed.")]
    counts: Annotated[
        dict[str, int],
        Meta(
            description="By kind: runs, jobs, items, exports, schedules, webhook_messages, snapshots, state, patterns, "
            "drift, keys, cached_pages."
        ),
    ]
    restoring: Annotated[
        list[str],
        Meta(
            description="Archived jobs that have it and are being restored: call again in a minute, until it is empty."
        ),
    ]


class _Found(Struct, kw_only=True):
    """What there is about a target."""

    runs: list[str]
    jobs: list[Job]
    parts: list[tuple[Job, list[tuple[int, str, str]]]]
    archived: list[Job]
    unfinished: list[str]


class Forgetting:
    """Finds and removes what is about a target. Every step may be repeated: after a crash, call again."""

    def __init__(
        self, store: Store, blobs: Blobs, recorder: Recorder, caching: Caching, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._recorder = recorder
        self._caching = caching
        self._clock = clock

    async def forget(self, call: ForgetCall) -> ForgottenDocument:
        """Raises BadRequest, Refusal (409) while something of it still runs, Unavailable."""
        target = target_of(call)
        await self._recorder.flush()
        found = await self._find(target)
        if found.unfinished and not call.dry_run:
            some = ", ".join(found.unfinished[:_MOST_TOLD])
            raise Refusal("conflict", 409, f"{len(found.unfinished)} still run ({some}); cancel them, then call again")
        exports = [len(await self._store.exports.of_job(job.id)) for job in (*found.jobs, *(j for j, _ in found.parts))]
        counts = {
            "runs": len(found.runs),
            "jobs": len(found.jobs),
            "items": sum(len(items) for _, items in found.parts),
            "exports": sum(exports),
        }
        if not call.dry_run:
            await self._remove(found, target)
        subjects = [*found.runs, *(job.id for job in found.jobs)]
        counts |= await self._store.forgetting.remove_rest(target, subjects, dry=call.dry_run)
        if not call.dry_run:
            counts["cached_pages"] = await self._forget_pages(call)
            await self._store.forgetting.compact()
            log.info("gateway.forgotten", kind=target.kind, counts=counts)
        return ForgottenDocument(dry_run=call.dry_run, counts=counts, restoring=[job.id for job in found.archived])

    async def _find(self, target: ForgetTarget) -> _Found:
        found = _Found(runs=[], jobs=await self._store.forgetting.jobs(target), parts=[], archived=[], unfinished=[])
        async for block in self._store.forgetting.runs(target):
            found.runs += [run_id for run_id, is_final in block if is_final]
            found.unfinished += [run_id for run_id, is_final in block if not is_final]
        found.unfinished += [job.id for job in found.jobs if not job.status.is_final]
        async for job, items in self._store.forgetting.other_jobs(target):
            if job.archive is not ArchiveState.NONE:
                if job.archive is not ArchiveState.ARCHIVED or await self._archive_has(job, target):
                    found.archived.append(job)
            elif not job.status.is_final:
                found.unfinished.append(job.id)
            else:
                found.parts.append((job, items))
        return found

    async def _archive_has(self, job: Job, target: ForgetTarget) -> bool:
        if target.pattern.search(repr(job.source).encode()):
            return True
        async for block in unpacked(self._blobs.stream(job.archive_key)):
            values = (value for row in block.rows for value in row if isinstance(value, bytes | str))
            if any(target.pattern.search(_bytes(value)) for value in values):
                return True
        return False

    async def _remove(self, found: _Found, target: ForgetTarget) -> None:
        for run_id in found.runs:
            await self._blobs.delete_prefix([keys.run_prefix(run_id)])
        for start in range(0, len(found.runs), 500):
            await self._store.sweeps.delete_runs(found.runs[start : start + 500])
        for job in found.jobs:
            if await self._store.jobs.begin_delete(job.id):
                await self._blobs.delete_prefix([keys.job_prefix(job.id)])
                await self._store.jobs.delete(job.id)
        for job in found.archived:
            await self._store.archives.begin_restore(job.id)
        for job, items in found.parts:
            await self._scrub(job, items, target)

    async def _scrub(self, job: Job, items: list[tuple[int, str, str]], target: ForgetTarget) -> None:
        """Objects first: the rows that name them are then found again after a crash."""
        if await self._store.sweeps.begin_job(job.id, job.swept) is None:
            raise Refusal("conflict", 409, f"files of job {job.id} are being written; call again in a moment")
        await self._blobs.delete([key for _, _, key in items if key])
        await self._blobs.delete([keys.item_manifest(job.id, item) for _, item, _ in items])
        await self._blobs.delete_prefix([keys.item_prefix(job.id, item) for _, item, _ in items])
        await self._blobs.delete_prefix([*keys.result_prefixes(job.id), keys.list_prefix(job.id)])
        await self._store.forgetting.scrub_items(job, target, [seq for seq, _, _ in items])
        if "results" not in job.swept:
            await write_manifests(item_blocks(self._store.items, job.id), self._blobs, job)
        await self._store.sweeps.end_job(job.id, self._clock())

    async def _forget_pages(self, call: ForgetCall) -> int:
        if call.client is not None:
            return 0
        return await self._caching.invalidate(InvalidateCall(url=call.url, site=call.site))


def target_of(call: ForgetCall) -> ForgetTarget:
    """Raises BadRequest for what is neither a URL nor a host."""
    if call.client is not None:
        return ForgetTarget(kind="client", value=call.client, forms=())
    try:
        if call.url is not None:
            forms = dict.fromkeys([call.url, parse_target(call.url).url])
            return ForgetTarget(kind="url", value=call.url, forms=tuple(forms))
        host = canonical_host(call.site or "")
    except (FetchFailed, ValueError) as error:
        raise BadRequest(
            f"give a URL such as https://shop.example/p/1, or a host such as shop.example: {error}"
        ) from None
    return ForgetTarget(kind="site", value=host, forms=(f"://{host}",))


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


router = APIRouter(tags=["operations"], route_class=AnswerRoute)


@router.post("/api/forget", summary="Forget a URL, a site or a client", responses=refusals(400, 409, 413, 422, 503))
async def forget(gateway: GatewayDep, identity: IdentityDep, audit: AuditDep, call: ForgetCall) -> ForgottenDocument:
    """Removes runs, items, results, artifacts, pages, logs, dead letters, webhook messages, schedules, snapshots, state
    and cached pages about it, and exports that may contain it. Usage stays as counts. May be repeated. The audit keeps
    a hash of what was forgotten."""
    if call.client is not None and call.client == identity.client:
        raise BadRequest("client: this is the caller itself; use a key of another client")
    forgotten = await gateway.forgetting.forget(call)
    given = call.url or call.site or call.client or ""
    digest = hashlib.sha256(given.encode()).hexdigest()
    kind = "url" if call.url else "site" if call.site else "client"
    audit.change(None, {"forgotten": kind, "sha256": digest, "counts": forgotten.counts, "dry_run": call.dry_run})
    return forgotten
