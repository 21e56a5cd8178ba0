"""How busy the platform is, in one look."""

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.responses import Response

from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.jobs.answers import StatsDocument
from scrapeyard.gateway.runs import documents
from scrapeyard.model.job import FINAL_JOB, Counts, JobStatus
from scrapeyard.store.ports.jobs import JobFilter

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway, GatewayServices

MOST_JOBS = 1000
_GOING = tuple(status for status in JobStatus if status not in FINAL_JOB)


def routes(gateway: "Gateway") -> APIRouter:
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
        workers = await services.store.workers(fresh)
        depth = await services.queue.depth()
        document = {
            "runs": await services.store.counts(),
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
    page = await services.store.jobs(JobFilter(statuses=_GOING), None, MOST_JOBS)
    by_status = dict.fromkeys((status.value for status in _GOING), 0)
    for job in page.jobs:
        by_status[job.status.value] += 1
    names = Counts.__struct_fields__
    items = {name: sum(getattr(job.counts, name) for job in page.jobs) for name in names}
    return {"by_status": by_status, "items": items, "more": page.next_cursor is not None}
