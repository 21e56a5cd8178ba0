"""`/api/sinks`: where the results of jobs are delivered; and delivering a job again."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from msgspec import Meta, Struct
from msgspec.structs import replace

from scrapeyard.errors import NotFound, Refusal, Unavailable
from scrapeyard.gateway.auth.owned import JobId
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep, shown, there
from scrapeyard.gateway.jobs.documents import JobSinkDocument, job_sink
from scrapeyard.model.export import ITEMS_SINK, MAX_SINKS, SINK_NAME, SinkDelivery, SinkState
from scrapeyard.model.job import Job
from scrapeyard.results.sinks import progress
from scrapeyard.settings import SinkKind, SinkSettings
from scrapeyard.store.ports.exports import SinkStore

_TRIES = 10


class SinkDocument(Struct, frozen=True, kw_only=True):
    """A sink that jobs may name. Its address and its keys are the operator's."""

    name: Annotated[str, Meta(pattern=SINK_NAME, examples=["warehouse"])]
    kind: SinkKind
    default: Annotated[bool, Meta(description="Whether jobs that name no sink are delivered to it.")]
    active: Annotated[int, Meta(description="Jobs that are being delivered to it.")]
    failed: Annotated[int, Meta(description="Jobs whose delivery was given up.")]


class SinksDocument(Struct, frozen=True, kw_only=True):
    """All sinks, in the order of the settings."""

    sinks: list[SinkDocument]


_Sink = Annotated[
    str,
    Path(description="The sink's name.", json_schema_extra=shown(SINK_NAME)),
    there("sink", SINK_NAME),
]
_FromStart = Annotated[
    bool, Query(description="Whether records that it has are delivered again, too: those of the whole job.")
]

router = APIRouter(tags=["sinks"], route_class=AnswerRoute)


@router.get("/api/sinks", summary="List sinks", responses=refusals(422, 503))
async def list_sinks(gateway: GatewayDep) -> SinksDocument:
    """The sinks that the operator defined, and how many jobs are being delivered to each."""
    settings = gateway.services.settings.sinks
    stand = await gateway.services.store.sinks.standing() if settings.targets else {}
    return SinksDocument(
        sinks=[
            SinkDocument(
                name=target.name,
                kind=target.kind,
                default=target.name in settings.default,
                active=stand.get((target.name, SinkState.ACTIVE), 0),
                failed=stand.get((target.name, SinkState.FAILED), 0),
            )
            for target in settings.targets
        ]
    )


@router.post(
    "/api/jobs/{job_id}/sinks/{sink}",
    summary="Deliver a job to a sink",
    responses=refusals(404, 409, 413, 422, 503),
)
async def deliver_job(
    gateway: GatewayDep, job_id: JobId, sink: _Sink, *, from_start: _FromStart = False
) -> JobSinkDocument:
    """Adds a sink to a job, also to one that has ended. A delivery that was given up goes on where it stood, and one
    that waits is tried at once. May be repeated."""
    services = gateway.services
    job = await gateway.jobs.control.get(job_id)
    _check(job, sink, services.settings.sinks)
    now = services.clock()
    if not await services.store.sinks.add(job.id, sink, now):
        raise Refusal("conflict", 409, "the job is being deleted, so it cannot be delivered")
    return job_sink(job, await _resumed(services.store.sinks, job, sink, now, from_start=from_start))


def _check(job: Job, sink: str, settings: SinkSettings) -> None:
    if settings.target(sink) is None and not (sink == ITEMS_SINK and sink in job.sinks):
        raise NotFound(f"no sink {sink}; GET /api/sinks lists those that there are")
    if job.archive:
        raise Refusal("conflict", 409, f"the job is {job.archive}; restore it, then deliver it")
    if sink not in job.sinks and len(job.sinks) >= MAX_SINKS:
        raise Refusal("conflict", 409, f"the job has {MAX_SINKS} sinks, and cannot have more")


async def _resumed(sinks: SinkStore, job: Job, sink: str, now: float, *, from_start: bool) -> SinkDelivery:
    for _ in range(_TRIES):  # the dispatcher may write it at the same moment
        found = await sinks.of_jobs([job.id])
        before = next((each for each in found if each.sink == sink), None)
        if before is None:
            raise NotFound(f"no job {job.id}; it was deleted this moment")
        if before.state is SinkState.DONE and not from_start:
            return before
        after = replace(before, state=SinkState.ACTIVE, due_at=now, attempts=0, failing_since=None)
        if from_start:
            anew = progress.decode(before.progress).from_first()
            after = replace(after, progress=progress.encode(anew), covered=0)
        if (written := await sinks.put(after)) is not None:
            return written
    raise Unavailable("the delivery changes all the time; try again")
