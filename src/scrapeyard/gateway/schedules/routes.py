"""`/api/schedule`: jobs and runs that start on a schedule."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import Cursor, Limit
from scrapeyard.gateway.schedules.schemas import (
    EXAMPLE_SCHEDULE,
    SCHEDULE_ID,
    FiringDocument,
    HistoryDocument,
    ScheduleCall,
    ScheduleChange,
    ScheduleDocument,
    SchedulePageDocument,
)
from scrapeyard.gateway.scrapers.documents import answer

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

_Id = Annotated[str, Path(pattern=SCHEDULE_ID, description="The schedule's id.", examples=[EXAMPLE_SCHEDULE])]
_HERE = "/api/schedule/{schedule_id}"
_REFUSALS = refusals(400, 404, 409, 413, 422, 503)


def routes(gateway: "Gateway") -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["schedules"])
    _keeping(router, gateway)
    _steering(router, gateway)
    return router


def _keeping(router: APIRouter, gateway: "Gateway") -> None:
    desk = gateway.schedules

    @router.post(
        "/api/schedule",
        status_code=201,
        summary="Make a schedule",
        description="Starts a job or a run by cron or at intervals, once for each time that comes. What it names is "
        "looked up now, and again at each start.",
        operation_id="create_schedule",
        response_model=ScheduleDocument,
        responses=_REFUSALS,
    )
    async def create_schedule(call: ScheduleCall) -> Response:
        made = await desk.create(call)
        response = answer(made, 201)
        response.headers["Location"] = made["links"]["self"]
        return response

    @router.get(
        "/api/schedule",
        summary="List schedules",
        description="Newest first. Follow `next_cursor` for more.",
        operation_id="list_schedules",
        response_model=SchedulePageDocument,
        responses=refusals(400, 422, 503),
    )
    async def list_schedules(cursor: Cursor = None, limit: Limit = 50) -> Response:
        return answer(await desk.page(cursor, limit))

    @router.get(
        _HERE,
        summary="A schedule",
        description="With its next five times.",
        operation_id="get_schedule",
        response_model=ScheduleDocument,
        responses=refusals(404, 422, 503),
    )
    async def get_schedule(schedule_id: _Id) -> Response:
        return answer(await desk.get(schedule_id))

    @router.patch(
        _HERE,
        summary="Change a schedule",
        description="What is not given stays. Another time is counted from now on.",
        operation_id="change_schedule",
        response_model=ScheduleDocument,
        responses=_REFUSALS,
    )
    async def change_schedule(schedule_id: _Id, call: ScheduleChange) -> Response:
        return answer(await desk.change(schedule_id, call))

    @router.delete(
        _HERE,
        status_code=204,
        summary="Delete a schedule",
        description="With its history. What it started goes on.",
        operation_id="delete_schedule",
        response_class=Response,
        responses=refusals(404, 413, 422, 503),
    )
    async def delete_schedule(schedule_id: _Id) -> Response:
        await desk.delete(schedule_id)
        return Response(status_code=204)


def _steering(router: APIRouter, gateway: "Gateway") -> None:
    desk = gateway.schedules

    @router.post(
        _HERE + "/run",
        status_code=202,
        summary="Run it now",
        description="Within a second or so, paused or not; if the last one still goes on, as `overlap` says. The "
        "answer names the job or run that will be started.",
        operation_id="run_schedule",
        response_model=FiringDocument,
        responses=refusals(404, 409, 413, 422, 503),
    )
    async def run_schedule(schedule_id: _Id) -> Response:
        return answer(await desk.run_now(schedule_id), 202)

    @router.post(
        _HERE + "/pause",
        summary="Pause a schedule",
        description="Nothing is started until /resume, and nothing counts as missed meanwhile. May be repeated.",
        operation_id="pause_schedule",
        response_model=ScheduleDocument,
        responses=_REFUSALS,
    )
    async def pause_schedule(schedule_id: _Id) -> Response:
        return answer(await desk.change(schedule_id, ScheduleChange(paused=True)))

    @router.post(
        _HERE + "/resume",
        summary="Resume a schedule",
        description="From its next time on. May be repeated.",
        operation_id="resume_schedule",
        response_model=ScheduleDocument,
        responses=_REFUSALS,
    )
    async def resume_schedule(schedule_id: _Id) -> Response:
        return answer(await desk.change(schedule_id, ScheduleChange(paused=False)))

    @router.get(
        _HERE + "/history",
        summary="What became of its times",
        description="The last 100 that were decided and those that wait, newest first.",
        operation_id="get_schedule_history",
        response_model=HistoryDocument,
        responses=refusals(404, 422, 503),
    )
    async def get_schedule_history(schedule_id: _Id) -> Response:
        return answer(await desk.history(schedule_id))
