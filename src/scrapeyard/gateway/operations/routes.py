"""How the platform is doing: `/api/workers`, `/api/stats`, health, `/metrics`."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query
from msgspec.structs import replace
from pydantic import StringConstraints
from starlette.responses import PlainTextResponse, Response

from scrapeyard import __version__
from scrapeyard.errors import NotFound, Refusal
from scrapeyard.gateway.audit.middleware import AuditDep, AuditNote
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.http.answers import AnswerRoute, respond
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep, shown, there
from scrapeyard.gateway.http.patterns import WORKER_ID
from scrapeyard.gateway.operations.documents import (
    GOING,
    DependencyDocument,
    HealthDocument,
    JobsCount,
    LaneDocument,
    LiveDocument,
    LoadHistoryDocument,
    ReadyDocument,
    RootDocument,
    ScaleDocument,
    SettingsDocument,
    StatsDocument,
    WorkerDocument,
    WorkersCount,
    WorkersDocument,
)
from scrapeyard.model import WorkerInfo
from scrapeyard.model.identity import NOBODY
from scrapeyard.model.worker import DrainWish
from scrapeyard.queues.load import lane_loads, workers_wanted
from scrapeyard.queues.messages import LANE
from scrapeyard.store.ports.jobs import JobFilter
from scrapeyard.telemetry.metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

MOST_JOBS = 1000
router = APIRouter(tags=["operations"], route_class=AnswerRoute)


@router.get("/api/stats", summary="See how busy it is", responses=refusals(422, 503))
async def get_stats(gateway: GatewayDep) -> StatsDocument:
    """Runs and jobs that are not final, what waits in the queue, and the workers' slots."""
    services = gateway.services
    workers = await services.store.workers.alive(services.clock() - 3 * services.settings.worker.heartbeat_seconds)
    depth = sorted((await services.queue.depth()).items())
    page = await services.store.jobs.page(JobFilter(statuses=GOING), None, MOST_JOBS)
    return StatsDocument(
        runs=await services.store.runs.counts(),
        jobs=JobsCount.of(page.jobs, more=page.next_cursor is not None),
        queue=[LaneDocument(lane=lane, priority=priority, waiting=waiting) for (lane, priority), waiting in depth],
        workers=WorkersCount.of(workers),
    )


@router.get("/api/stats/history", summary="See how busy it was", responses=refusals(422, 503))
async def get_history(
    gateway: GatewayDep,
    hours: Annotated[float, Query(gt=0, le=48, allow_inf_nan=False, description="How far back.")] = 1.0,
) -> LoadHistoryDocument:
    """Slots, queue and what ended, minute by minute, for two days: charts without Prometheus."""
    services = gateway.services
    return LoadHistoryDocument.of(await services.store.load.since(services.clock() - hours * 3600))


TargetSeconds = Annotated[
    float,
    Query(ge=1, le=86_400, allow_inf_nan=False, description="How long work may wait before it begins, in seconds."),
]
_LANE = Query(
    max_length=50,
    description="Count these lanes and the workers that take them; all if none is named. May be repeated.",
)
LaneNames = Annotated[list[Annotated[str, StringConstraints(pattern=f"^{LANE.pattern}$")]], _LANE]


@router.get("/api/stats/scale", summary="Tell how many workers are needed", responses=refusals(422, 503))
async def get_scale(gateway: GatewayDep, target_seconds: TargetSeconds = 60.0, lane: LaneNames = []) -> ScaleDocument:  # noqa: B006
    """For KEDA, an HPA or ECS: queued work in seconds by lane, and the workers that it needs."""
    services = gateway.services
    workers = await services.store.workers.alive(services.clock() - services.settings.worker.lease_seconds)
    page = await services.store.jobs.page(JobFilter(statuses=GOING), None, MOST_JOBS)
    loads = lane_loads(await services.queue.depth(), page.jobs, workers, lane)
    wanted = workers_wanted(loads, workers, target_seconds, services.settings.worker.slots_here)
    return ScaleDocument.of(loads, wanted, target_seconds)


@router.get("/api/workers", summary="List workers", responses=refusals(422, 503))
async def list_workers(gateway: GatewayDep) -> WorkersDocument:
    """Workers whose heartbeat is no older than a lease, with their load, lanes, engines and walls."""
    services, now = gateway.services, gateway.services.clock()
    workers = await services.store.workers.alive(now - services.settings.worker.lease_seconds)
    return WorkersDocument(workers=[WorkerDocument.of(worker, now) for worker in workers])


@router.get("/api/settings", summary="See the settings in force", responses=refusals(422))
async def get_settings(gateway: GatewayDep) -> SettingsDocument:
    """Every setting of the gateway that answers, with where its value came from. Passwords, keys and tokens are hidden.
    Settings are read at the start: change the file or the environment and start again."""
    return SettingsDocument.of(gateway.services.gateway_id, gateway.services.settings)


WorkerPath = Annotated[
    str,
    Path(description="The worker's id.", examples=["worker_0199f0c2a1b4"], json_schema_extra=shown(WORKER_ID)),
    there("worker", WORKER_ID),
]
ExitToo = Annotated[bool, Query(alias="exit", description="End its process when it has nothing left to do.")]


@router.post("/api/workers/{worker_id}/drain", summary="Drain a worker", responses=refusals(404, 409, 422, 503))
async def drain_worker(
    gateway: GatewayDep, audit: AuditDep, worker_id: WorkerPath, *, end: ExitToo = False
) -> WorkerDocument:
    """It takes no new work from its next heartbeat on and finishes what it has, however long that takes; items that it
    has not begun go back. `running` is 0 when nothing is left. Repeating it is harmless."""
    worker = await _worker(gateway, worker_id)
    if end and not worker.alone:
        words = f"the process of {worker_id} has other roles, too; drain it without exit, and stop the process yourself"
        raise Refusal("not_alone", 409, words)
    return await _ask(gateway, audit, worker, "exit" if end else "stay")


@router.delete(
    "/api/workers/{worker_id}/drain", summary="Let a worker take work again", responses=refusals(404, 422, 503)
)
async def undrain_worker(gateway: GatewayDep, audit: AuditDep, worker_id: WorkerPath) -> WorkerDocument:
    """It takes work again from its next heartbeat on, unless its process is stopping. May be repeated."""
    return await _ask(gateway, audit, await _worker(gateway, worker_id), "")


async def _worker(gateway: "Gateway", worker_id: str) -> WorkerInfo:
    services = gateway.services
    workers = await services.store.workers.alive(services.clock() - services.settings.worker.lease_seconds)
    for worker in workers:
        if worker.id == worker_id:
            return worker
    raise NotFound(f"no worker {worker_id} with a fresh heartbeat; GET /api/workers lists them")


async def _ask(gateway: "Gateway", audit: AuditNote, worker: WorkerInfo, wish: DrainWish) -> WorkerDocument:
    if not await gateway.services.store.workers.set_drain(worker.id, wish):
        raise NotFound(f"worker {worker.id} has ended")
    audit.change({"drain": worker.drain}, {"drain": wish})
    return WorkerDocument.of(replace(worker, drain=wish), gateway.services.clock())


@router.get(
    "/api/health",
    summary="Tell the state of every dependency",
    response_model=HealthDocument,
    responses={503: {"model": HealthDocument, "description": "The queue or the store is away."}, **refusals(422)},
)
async def health(gateway: GatewayDep) -> Response:
    """`down` (503) when calls cannot be taken; `degraded` when they are but not all goes well."""
    findings = await gateway.health.look()
    overall = gateway.health.overall(findings)
    told = HealthDocument(
        status=overall,
        version=__version__,
        gateway=gateway.services.gateway_id,
        database="ok" if findings["store"].up else f"error: {findings['store'].detail}",
        dependencies={name: DependencyDocument.of(finding) for name, finding in findings.items()},
    )
    return respond(told, 503 if overall == "down" else 200)


@router.get("/api/ready", summary="Tell whether calls can be taken", responses=refusals(422, 503))
async def ready(gateway: GatewayDep, identity: IdentityDep) -> ReadyDocument:
    """For load balancers: 503 while starting or stopping, or while the queue or the store is away."""
    if not gateway.serving:
        raise Refusal("not_ready", 503, "the gateway is starting or stopping", retry_after=1)
    for name, finding in (await gateway.health.look("queue", "store")).items():
        if not finding.up:
            detail = "does not answer" if identity is NOBODY else finding.detail
            raise Refusal("not_ready", 503, f"{name}: {detail}", retry_after=2)
    return ReadyDocument(ready=True)


@router.get("/", summary="Tell what answers here", responses=refusals(422))
async def root() -> RootDocument:
    """For people who look at the address alone. Always 200."""
    return RootDocument(version=__version__)


@router.get("/api/live", summary="Tell that the process answers", responses=refusals(422))
async def live() -> LiveDocument:
    """Always 200."""
    return LiveDocument(alive=True)


@router.get("/metrics", summary="Metrics of this process", response_class=PlainTextResponse, responses=refusals(422))
async def metrics(gateway: GatewayDep) -> Response:
    """In Prometheus' text form. docs/metrics.md lists them."""
    return Response(gateway.metrics.text(), headers={"Content-Type": CONTENT_TYPE})
