"""How the platform is doing: `/api/workers`, `/api/stats`, health, `/metrics`."""

import time
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from msgspec.structs import asdict
from starlette.responses import PlainTextResponse, Response

from scrapeyard import __version__
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.problems import Refusal
from scrapeyard.gateway.jobs.answers import StatsDocument
from scrapeyard.gateway.operations.health import DependencyState
from scrapeyard.gateway.operations.schemas import HealthDocument, LiveDocument, ReadyDocument, WorkersDocument
from scrapeyard.gateway.runs import documents
from scrapeyard.gateway.scrapers.documents import state_document
from scrapeyard.model import WorkerInfo
from scrapeyard.model.job import FINAL_JOB, Counts, JobStatus
from scrapeyard.store.ports.jobs import JobFilter
from scrapeyard.telemetry.metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway, GatewayServices


def worker_routes(gateway: "Gateway") -> APIRouter:
    """The route."""
    router = APIRouter(tags=["operations"])
    services = gateway.services

    @router.get(
        "/api/workers",
        summary="List workers",
        description="Workers whose heartbeat is no older than a lease, with their load, lanes, engines and walls.",
        operation_id="list_workers",
        response_model=WorkersDocument,
        responses=refusals(503),
    )
    async def list_workers() -> Response:
        now = services.clock()
        workers = await services.store.workers.alive(now - services.settings.worker.lease_seconds)
        shown = [_document(worker, now) for worker in workers]
        return Response(documents.encode({"workers": shown}), media_type=documents.JSON)

    return router


def _document(worker: WorkerInfo, now: float) -> dict[str, Any]:
    return {
        **asdict(worker),
        "started_at": documents.instant(worker.started_at),
        "seen_at": documents.instant(worker.seen_at),
        "environments": {name: state_document(state) for name, state in worker.environments.items()},
        "age_seconds": round(max(0.0, now - worker.seen_at), 3),
    }


MOST_JOBS = 1000
_GOING = tuple(status for status in JobStatus if status not in FINAL_JOB)


def stats_routes(gateway: "Gateway") -> APIRouter:
    """The route."""
    router = APIRouter(tags=["operations"])
    services = gateway.services

    @router.get(
        "/api/stats",
        summary="See how busy it is",
        description="Runs and jobs that are not final, what waits in the queue, and the workers' slots.",
        operation_id="get_stats",
        response_model=StatsDocument,
        responses=refusals(503),
    )
    async def get_stats() -> Response:
        fresh = services.clock() - 3 * services.settings.worker.heartbeat_seconds
        workers = await services.store.workers.alive(fresh)
        depth = await services.queue.depth()
        document = {
            "runs": await services.store.runs.counts(),
            "jobs": await _jobs(services),
            "queue": [
                {"lane": lane, "priority": priority, "waiting": waiting}
                for (lane, priority), waiting in sorted(depth.items())
            ],
            "workers": {
                "count": len(workers),
                "slots": sum(worker.slots for worker in workers),
                "busy": sum(worker.busy for worker in workers),
            },
        }
        return Response(documents.encode(document), media_type=documents.JSON)

    return router


async def _jobs(services: "GatewayServices") -> dict[str, Any]:
    page = await services.store.jobs.page(JobFilter(statuses=_GOING), None, MOST_JOBS)
    by_status = dict.fromkeys((status.value for status in _GOING), 0)
    for job in page.jobs:
        by_status[job.status.value] += 1
    names = Counts.__struct_fields__
    items = {name: sum(getattr(job.counts, name) for job in page.jobs) for name in names}
    return {"by_status": by_status, "items": items, "more": page.next_cursor is not None}


def health_routes(gateway: "Gateway") -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["operations"])

    @router.get(
        "/api/health",
        summary="Tell the state of every dependency",
        description="`down` (503) when calls cannot be taken; `degraded` when they are but not all goes well.",
        operation_id="health",
        response_model=HealthDocument,
        responses={503: {"model": HealthDocument, "description": "The queue or the store is away."}, **refusals()},
    )
    async def health() -> Response:
        findings = await gateway.health.look()
        overall = gateway.health.overall(findings)
        document = {
            "status": overall,
            "version": __version__,
            "gateway": gateway.services.gateway_id,
            "dependencies": {name: _health_document(finding) for name, finding in findings.items()},
        }
        return Response(documents.encode(document), 503 if overall == "down" else 200, media_type=documents.JSON)

    @router.get(
        "/api/ready",
        summary="Tell whether calls can be taken",
        description="For load balancers: 503 while starting or stopping, or while the queue or the store is away.",
        operation_id="ready",
        response_model=ReadyDocument,
        responses=refusals(503),
    )
    async def ready() -> Response:
        if not gateway.serving:
            raise Refusal("not_ready", 503, "the gateway is starting or stopping", retry_after=1)
        for name, finding in (await gateway.health.look("queue", "store")).items():
            if not finding.up:
                raise Refusal("not_ready", 503, f"{name}: {finding.detail}", retry_after=2)
        return Response(b'{"ready":true}', media_type=documents.JSON)

    @router.get(
        "/api/live",
        summary="Tell that the process answers",
        description="Always 200.",
        operation_id="live",
        response_model=LiveDocument,
        responses=refusals(),
    )
    async def live() -> Response:
        return Response(b'{"alive":true}', media_type=documents.JSON)

    return router


def _health_document(finding: DependencyState) -> dict[str, Any]:
    return {
        "state": "ok" if finding.up else "away",
        "latency_ms": finding.latency_ms,
        "age_seconds": round(max(0.0, time.monotonic() - finding.at), 3),
        "detail": finding.detail,
    }


def metrics_routes(gateway: "Gateway") -> APIRouter:
    """The route."""
    router = APIRouter(tags=["operations"])

    @router.get(
        "/metrics",
        summary="Metrics of this gateway",
        description="In Prometheus' text form: how fresh each repository is, refreshes, runs ended, calls that wait.",
        operation_id="metrics",
        response_class=PlainTextResponse,
        responses=refusals(),
    )
    async def metrics() -> Response:
        return Response(gateway.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    return router
