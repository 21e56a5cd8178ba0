"""Messages to receivers: derived from what happened to jobs and runs, kept until they are taken.

Every method raises StoreUnavailable when the database does not answer, and may then be called again with the same
arguments: nothing is done twice. Times are Unix seconds, given by the caller.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from scrapeyard.model import Run
from scrapeyard.model.job import Job
from scrapeyard.model.webhook import DeliveryState, Webhook, WebhookDelivery
from scrapeyard.store.ports.jobs import JobEvent


class EventCursor(Struct, frozen=True, kw_only=True):
    """How much of a job's news was made into deliveries."""

    events: int = 0
    """Number of the last event."""
    status: str = ""
    """What was last told, or found; empty: nothing."""
    finished_at: float | None = None
    """Of the job when that was."""


class JobNewsItem(Struct, frozen=True, kw_only=True):
    """A job with something untold."""

    job: Job
    mark: EventCursor
    events: tuple[JobEvent, ...]
    """After the mark, in order; there may be more."""


class DeliveryFilter(Struct, frozen=True, kw_only=True):
    """What a listing shows; None means any."""

    subject: str | None = None
    state: DeliveryState | None = None


class DeliveryPage(Struct, frozen=True, kw_only=True):
    """Newest first, without bodies. `next_cursor` is None on the last page."""

    deliveries: tuple[WebhookDelivery, ...]
    next_cursor: str | None = None


class WebhookStore(Protocol):
    """The outbox."""

    async def untold_jobs(self, limit: int, events: int) -> list[JobNewsItem]:
        """Jobs with a webhook that have events after their mark, or stand elsewhere than it says; with at most so many
        events each."""

    async def tell_job(
        self, job_id: str, before: EventCursor, after: EventCursor, deliveries: Sequence[WebhookDelivery]
    ) -> bool:
        """Write deliveries and move the mark, all or nothing. False: the mark stood elsewhere, or the job is gone."""

    async def watch_runs(self, run_ids: Sequence[str], webhook: Webhook, now: float) -> None:
        """Tell this receiver when these runs end, whatever becomes of who asked. Written before they are."""

    async def ended_runs(self, limit: int) -> list[tuple[Run, Webhook]]:
        """Watched runs that have ended, whole."""

    async def tell_run(self, run_id: str, deliveries: Sequence[WebhookDelivery]) -> None:
        """Write deliveries and watch the run no more, all or nothing."""

    async def forget_watches_before(self, created_before: float) -> None:
        """Drop watches of runs that never ended, or never were."""

    async def claim_delivery(
        self, holder: str, now: float, lease_until: float, but_hosts: Sequence[str]
    ) -> WebhookDelivery | None:
        """Take the longest due that nobody sends, to none of these hosts; one more attempt. None: there is none."""

    async def end_attempt(self, delivery: WebhookDelivery) -> bool:
        """Write how it went: a final state, or WAITING with `next_at`. False: it is not this holder's any more."""

    async def delivery(self, delivery_id: str) -> WebhookDelivery | None:
        """None means no such delivery."""

    async def deliveries(self, where: DeliveryFilter, cursor: str | None, limit: int) -> DeliveryPage:
        """Raises BadRequest when the cursor is not one of ours."""

    async def replay_delivery(self, delivery_id: str, now: float, give_up_at: float) -> WebhookDelivery | None:
        """Send it once more, from now on; one that waits is due at once. None means no such delivery."""

    async def forget_deliveries_before(self, finished_before: float, limit: int) -> int:
        """Drop final ones older than that; how many."""
