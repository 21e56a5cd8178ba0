"""Starts the jobs and runs of schedules, as a call would."""

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from scrapeyard.errors import BadRequest, QueueUnavailable
from scrapeyard.gateway.jobs.calls import JobCall
from scrapeyard.gateway.jobs.control import JobControl
from scrapeyard.gateway.jobs.create import JobCreation
from scrapeyard.gateway.runs.admission import RunBuilder
from scrapeyard.gateway.runs.answers import Cancelling
from scrapeyard.gateway.runs.calls import ScrapeRequest, traceparent
from scrapeyard.gateway.runs.receivers import WebhookValidator
from scrapeyard.gateway.runs.schemas import ScrapeCall
from scrapeyard.model.identity import Identity, on_behalf_of
from scrapeyard.model.schedule import Schedule, Target
from scrapeyard.queues.deliveries import deliver
from scrapeyard.queues.port import Queue
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("schedules")
Call = TypeVar("Call", bound=BaseModel)


class TemplateStarter:
    """The Starter of the dispatcher's schedules: jobs and runs by the same steps as the API's."""

    def __init__(
        self,
        *,
        store: Store,
        queue: Queue,
        creation: JobCreation,
        control: JobControl,
        builder: RunBuilder,
        receivers: WebhookValidator,
        cancelling: Cancelling,
        clock: Callable[[], float],
        trace_share: float = 0.0,
    ) -> None:
        """`trace_share` of the runs that it starts are traced."""
        self._store = store
        self._queue = queue
        self._creation = creation
        self._control = control
        self._builder = builder
        self._receivers = receivers
        self._cancelling = cancelling
        self._clock = clock
        self._trace_share = trace_share

    async def start(self, schedule: Schedule, subject: str) -> None:
        """Create what the template describes, under this id, durably; do nothing if it already exists."""
        if schedule.target == "job":
            template = self._read(JobCall, schedule)
            identity = on_behalf_of(schedule.owner)
            await self._creation.create_job(template, identity=identity, job_id=subject, schedule_id=schedule.id)
        else:
            await self._scrape(self._read(ScrapeCall, schedule), subject, on_behalf_of(schedule.owner))

    async def going(self, target: Target, subject: str) -> bool | None:
        """Whether it has not ended yet. None if there is no such job or run."""
        stands = await (self._store.jobs.get(subject) if target == "job" else self._store.runs.get(subject))
        return None if stands is None else not stands.status.is_final

    async def cancel(self, target: Target, subject: str) -> None:
        """Cancel it; batches of a job are killed. May be repeated."""
        if target == "job":
            await self._control.cancel(subject, kill=True)
        else:
            await self._cancelling.cancel(subject, self._clock())

    async def _scrape(self, call: ScrapeCall, run_id: str, identity: Identity) -> None:
        """Durable first, so a queue that is away only delays it. The store refuses a second delivery."""
        asked = ScrapeRequest(
            call=call,
            wait=0,
            preference="",
            key=None,
            digest="",
            traceparent=traceparent(None, self._trace_share),
            identity=identity,
        )
        (run,) = await self._builder.build(asked, "", self._clock())
        run = replace(run, id=run_id)
        if call.webhook is not None:
            await self._store.webhooks.watch_runs([run_id], self._receivers.accept(call.webhook), self._clock())
        await self._store.runs.add([run])
        try:
            await self._queue.publish([deliver(run, redelivered=True)])
        except QueueUnavailable as error:
            log.warning("gateway.publish_deferred", count=1, error=error.message)

    def _read(self, model: type[Call], schedule: Schedule) -> Call:
        """Parse a template. One accepted by an older version may no longer be valid."""
        try:
            return model.model_validate(self._receivers.open_template(msgspec.json.decode(schedule.template)))
        except ValidationError as error:
            fault = error.errors()[0]
            place = "/".join(str(part) for part in fault["loc"])
            raise BadRequest(
                f"the template cannot be used any more: {place}: {fault['msg']}; change the schedule"
            ) from None
