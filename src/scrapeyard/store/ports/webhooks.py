"""Messages to receivers: derived from changes of jobs, runs and alerts, stored until they are delivered; and alerts.

Every method raises StoreUnavailable when the database does not answer, and may then be called again with the same
arguments: nothing is done twice. Times are Unix seconds, given by the caller.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from scrapeyard.model import Run
from scrapeyard.model.job import Job
from scrapeyard.model.webhook import DeliveryState, Webhook, WebhookDelivery
from scrapeyard.store.ports.jobs import JobEvent


class EventCursor(Struct, frozen=True, kw_only=True):
    """Which of a job's news have been made into deliveries."""

    events: int = 0
    """Number of the last event."""
    status: str = ""
    """Last status sent or found; empty if none."""
    finished_at: float | None = None
    """The job's `finished_at` at that time."""


class JobNewsItem(Struct, frozen=True, kw_only=True):
    """A job with news that have no delivery yet."""

    job: Job
    mark: EventCursor
    events: tuple[JobEvent, ...]
    """Events after the mark, in order; there may be more."""


class WebhookStore(Protocol):
    """The news of jobs and runs that become deliveries."""

    async def untold_jobs(self, limit: int, events: int) -> list[JobNewsItem]:
        """Jobs with a webhook that have events after their mark, or another status than it says; with at most `events`
        events each."""

    async def tell_job(
        self, job_id: str, before: EventCursor, after: EventCursor, deliveries: Sequence[WebhookDelivery]
    ) -> bool:
        """Write deliveries and move the mark, atomically. False if the mark had moved, or the job is gone."""

    async def watch_runs(self, run_ids: Sequence[str], webhook: Webhook, now: float) -> None:
        """Notify this receiver when these runs end, whatever happens to the caller. Written before the runs are."""

    async def ended_runs(self, limit: int) -> list[tuple[Run, Webhook]]:
        """Watched runs that have ended, whole."""

    async def tell_run(self, run_id: str, deliveries: Sequence[WebhookDelivery]) -> None:
        """Write deliveries and remove the watch, atomically."""

    async def forget_watches_before(self, created_before: float) -> None:
        """Drop watches of runs that never ended or were never written."""


class DeliveryFilter(Struct, frozen=True, kw_only=True):
    """What a listing shows; None means any."""

    subject: str | None = None
    owner: str | None = None
    state: DeliveryState | None = None


class DeliveryPage(Struct, frozen=True, kw_only=True):
    """Newest first, without bodies. `next_cursor` is None on the last page."""

    deliveries: tuple[WebhookDelivery, ...]
    next_cursor: str | None = None


class DeliveryStore(Protocol):
    """The outbox: deliveries, until they are sent."""

    async def claim(
        self, holder: str, now: float, lease_until: float, but_hosts: Sequence[str]
    ) -> WebhookDelivery | None:
        """Claim the longest due unclaimed delivery to none of these hosts; counts an attempt. None if there is none."""

    async def end_attempt(self, delivery: WebhookDelivery) -> bool:
        """Write the result: a final state, or WAITING with `next_at`. False if it is no longer this holder's."""

    async def get(self, delivery_id: str) -> WebhookDelivery | None:
        """One delivery; None if there is none."""

    async def page(self, where: DeliveryFilter, cursor: str | None, limit: int) -> DeliveryPage:
        """Raises BadRequest for an invalid cursor."""

    async def replay(self, delivery_id: str, now: float, give_up_at: float) -> WebhookDelivery | None:
        """Send it once more, starting now; a waiting one becomes due at once. None if there is no such delivery."""

    async def forget_before(self, finished_before: float, limit: int) -> int:
        """Drop older final ones; returns how many."""


AlertState = Literal["firing", "resolved"]


class Alert(Struct, frozen=True, kw_only=True):
    """One alert, from when its rule was broken until it was kept again."""

    id: str
    rule: str
    """Name of the rule."""
    subject: str
    """What it is about: a lane, a client, a site, a worker, or `all`."""
    state: AlertState = "firing"
    words: str
    """What is wrong, as of the last time that it was told."""
    value: float
    threshold: float
    started_at: float
    told_at: float
    """When receivers were last told that it lasts."""
    tells: int = 1
    resolved_at: float | None = None


class AlertPage(Struct, frozen=True, kw_only=True):
    """Newest first. `next_cursor` is None on the last page."""

    alerts: tuple[Alert, ...]
    next_cursor: str | None = None


class AlertStore(Protocol):
    """Alerts. Each change is written together with the messages that tell of it, so that none is lost or doubled."""

    async def firing(self) -> tuple[Alert, ...]:
        """Every alert that lasts, the oldest first."""

    async def open(self, alert: Alert, deliveries: Sequence[WebhookDelivery]) -> bool:
        """Write a new alert. False, and nothing is written, if one of its rule and subject lasts already."""

    async def change(self, before: Alert, after: Alert, deliveries: Sequence[WebhookDelivery]) -> bool:
        """Tell of it again, or resolve it. False, and nothing is written, if it is not as `before` any more."""

    async def tell(self, deliveries: Sequence[WebhookDelivery]) -> None:
        """Write messages that belong to no alert."""

    async def page(self, state: AlertState | None, cursor: str | None, limit: int) -> AlertPage:
        """Raises BadRequest for an invalid cursor."""

    async def forget_before(self, resolved_before: float) -> None:
        """Drop alerts that were resolved earlier."""
