"""`/api/schedule`: jobs and runs that start on a schedule."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from scrapeyard.gateway.audit.middleware import AuditDep
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.http.answers import AnswerRoute, respond
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import Cursor, GatewayDep, Limit, shown, there
from scrapeyard.gateway.schedules.documents import (
    FiringDocument,
    HistoryDocument,
    ScheduleDocument,
    SchedulePageDocument,
)
from scrapeyard.gateway.schedules.schemas import EXAMPLE_SCHEDULE, SCHEDULE_ID, ScheduleCall, ScheduleChange

_Path = Annotated[
    str,
    Path(description="The schedule's id.", examples=[EXAMPLE_SCHEDULE], json_schema_extra=shown(SCHEDULE_ID)),
    there("schedule", SCHEDULE_ID),
]


async def _owned(gateway: GatewayDep, identity: IdentityDep, schedule_id: _Path) -> str:
    return await gateway.schedules.owned(schedule_id, identity)


_Id = Annotated[str, Depends(_owned)]
_HERE = "/api/schedule/{schedule_id}"
_REFUSALS = refusals(400, 404, 409, 413, 422, 503)


_TOLD = ("name", "target", "cron", "every_seconds", "time_zone", "jitter_seconds", "overlap", "missed", "paused")


def _told(schedule: ScheduleDocument) -> dict[str, Any]:
    """A schedule for the audit: without what it starts, whose inputs may be personal."""
    return {name: getattr(schedule, name) for name in _TOLD}


router = APIRouter(tags=["schedules"], route_class=AnswerRoute)


@router.post(
    "/api/schedule", status_code=201, summary="Make a schedule", response_model=ScheduleDocument, responses=_REFUSALS
)
async def create_schedule(gateway: GatewayDep, identity: IdentityDep, audit: AuditDep, call: ScheduleCall) -> Response:
    """Starts a job or a run by cron or at intervals, once for each time that comes. What it names is looked up now, and
    again at each start."""
    made = await gateway.schedules.create(call, identity)
    audit.change(None, {"id": made.id, **_told(made)})
    return respond(made, 201, {"Location": made.links.self})


@router.get("/api/schedule", summary="List schedules", responses=refusals(400, 422, 503))
async def list_schedules(
    gateway: GatewayDep, identity: IdentityDep, cursor: Cursor = None, limit: Limit = 50
) -> SchedulePageDocument:
    """Newest first; a client's own. Follow `next_cursor` for more."""
    return await gateway.schedules.page(cursor, limit, identity.only)


@router.get(_HERE, summary="A schedule", responses=refusals(404, 422, 503))
async def get_schedule(gateway: GatewayDep, schedule_id: _Id) -> ScheduleDocument:
    """With its next five times."""
    return await gateway.schedules.get(schedule_id)


@router.patch(_HERE, summary="Change a schedule", responses=_REFUSALS)
async def change_schedule(
    gateway: GatewayDep, identity: IdentityDep, audit: AuditDep, schedule_id: _Id, call: ScheduleChange
) -> ScheduleDocument:
    """What is not given stays. Another time is counted from now on."""
    before = await gateway.schedules.get(schedule_id)
    changed = await gateway.schedules.change(schedule_id, call, identity)
    audit.change(_told(before), _told(changed))
    return changed


@router.delete(
    _HERE, status_code=204, summary="Delete a schedule", response_class=Response, responses=refusals(404, 413, 422, 503)
)
async def delete_schedule(gateway: GatewayDep, audit: AuditDep, schedule_id: _Id) -> Response:
    """With its history. What it started goes on."""
    before = await gateway.schedules.get(schedule_id)
    await gateway.schedules.delete(schedule_id)
    audit.change(_told(before))
    return Response(status_code=204)


@router.post(_HERE + "/run", status_code=202, summary="Run it now", responses=refusals(404, 409, 413, 422, 503))
async def run_schedule(gateway: GatewayDep, schedule_id: _Id) -> FiringDocument:
    """Within a second or so, paused or not; if the last one still goes on, as `overlap` says. The answer names the job
    or run that will be started."""
    return await gateway.schedules.run_now(schedule_id)


@router.post(_HERE + "/pause", summary="Pause a schedule", responses=_REFUSALS)
async def pause_schedule(gateway: GatewayDep, identity: IdentityDep, schedule_id: _Id) -> ScheduleDocument:
    """Nothing is started until /resume, and nothing counts as missed meanwhile. May be repeated."""
    return await gateway.schedules.change(schedule_id, ScheduleChange(paused=True), identity)


@router.post(_HERE + "/resume", summary="Resume a schedule", responses=_REFUSALS)
async def resume_schedule(gateway: GatewayDep, identity: IdentityDep, schedule_id: _Id) -> ScheduleDocument:
    """From its next time on. May be repeated."""
    return await gateway.schedules.change(schedule_id, ScheduleChange(paused=False), identity)


@router.get(_HERE + "/history", summary="What became of its times", responses=refusals(404, 422, 503))
async def get_schedule_history(gateway: GatewayDep, schedule_id: _Id) -> HistoryDocument:
    """The last 100 that were decided and those that wait, newest first."""
    return await gateway.schedules.history(schedule_id)
