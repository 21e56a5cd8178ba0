"""Jobs: creating, steering, listing and deleting them."""

from typing import Any, Final

from msgspec import Raw

from scrapeyard.model import Priority
from scrapeyard.model.job import FINAL_JOB, BreakerState, Job, JobPolicy, JobStatus
from scrapeyard.model.webhook import JobEventKind
from scrapeyard.store.database.paging import is_id
from scrapeyard.store.dynamo.items.due import DueItems
from scrapeyard.store.dynamo.jobs.batches import DynamoBatches
from scrapeyard.store.dynamo.jobs.deleting import JobRemoval
from scrapeyard.store.dynamo.jobs.events import DynamoEvents
from scrapeyard.store.dynamo.jobs.listing import JobListing
from scrapeyard.store.dynamo.jobs.sinks import new_sinks
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.table.part import DynamoBase, DynamoPart
from scrapeyard.store.jobs.rules.rows import Row, source_values, to_job
from scrapeyard.store.jobs.rules.states import (
    HANDS_OUT,
    cancelled,
    may_move,
    paused_or_resumed,
    reading_ended,
    reopened,
    status_values,
    with_breaker,
    with_policy,
)
from scrapeyard.store.ports.jobs import JobFilter, JobPage

_DELETING: Final = {"deleting": True, "files_pending": False, "sweep_at": 0.0}


class DynamoJobs(DynamoPart):
    """The JobStore."""

    def __init__(self, base: DynamoBase, rows: DynamoJobRows, batches: DynamoBatches) -> None:
        super().__init__(base)
        self._rows = rows
        self._batches = batches
        self._events = DynamoEvents(base, rows)
        self._listing = JobListing(base.table, rows, DueItems(base))
        self._removal = JobRemoval(base)

    async def create(self, job: Job) -> bool:
        """Write the job without items, and a delivery to each of its sinks. False, and nothing is changed, if its id is
        taken."""
        return await self._rows.create(job, new_sinks(job))

    async def get(self, job_id: str) -> Job | None:
        """One job with its counters. None if there is none."""
        row = await self._rows.get(job_id)
        return None if row is None else to_job(row)

    async def page(self, where: JobFilter, cursor: str | None, limit: int) -> JobPage:
        """Newest first. Raises BadRequest for an invalid cursor. A page may be short: jobs change while it is read."""
        return await self._listing.page(where, cursor, limit)

    async def end_reading(self, job_id: str, skipped_rows: int, failed: str, now: float) -> Job | None:
        """The source has ended: CREATING becomes RUNNING, PAUSED stays; with `failed` either becomes FAILED, its
        pending items cancelled and its batches killed. None if there is no such job."""
        return await self._rows.changed(job_id, lambda row: reading_ended(row, skipped_rows, failed, now))

    async def set_source(self, job_id: str, source: dict[str, Any]) -> bool:
        """Store the source and how far it was read. False if there is no such job."""
        return await self._rows.changed(job_id, lambda _: source_values(source)) is not None

    async def set_paused(self, job_id: str, paused: bool, reason: str, now: float) -> Job | None:
        """Pause or resume; a job that is neither being created nor running nor paused stays as it is."""
        return await self._rows.changed(job_id, lambda row: paused_or_resumed(row, paused, reason, now))

    async def pause_and_tell(self, job_id: str, reason: str, kind: JobEventKind, data: Raw, now: float) -> bool:
        """Pause a job that is being created or runs, and append an event with it. False if it has another status."""

        async def work() -> bool:
            job = await self._rows.get(job_id)
            if job is None or job["status"] not in HANDS_OUT:
                return False
            told, counted = await self._events.told(job, [(now, str(kind), bytes(data))])
            values = {"pause_reason": reason, "breaker_until": None, **counted}
            paused = status_values(JobStatus.PAUSED, now) | values
            await self._table.transact([told, *await self._rows.change(job, paused)])
            return True

        return await self._rows.apply(job_id, work) if is_id(job_id) else False

    async def set_policy(
        self, job_id: str, policy: JobPolicy, *, name: str | None = None, priority: Priority | None = None
    ) -> Job | None:
        """Apply another policy and priority to items handed out from now on, and rename the job; None: no change.
        A final job stays as it is. None if unknown."""
        return await self._rows.changed(job_id, lambda row: with_policy(row, policy, name, priority))

    async def set_breaker(self, job_id: str, state: BreakerState, status: JobStatus | None, reason: str) -> None:
        """Write the breaker's state; with a status, only RUNNING ↔ PAUSED by the breaker."""
        await self._rows.changed(job_id, lambda row: with_breaker(row, state, status, reason))

    async def cancel(self, job_id: str, kill: bool, now: float, *, fault: str = "") -> Job | None:
        """Count pending items as cancelled; CANCELLING while batches are out, else CANCELLED with its files pending.
        With `kill` or a `fault`, batches not yet taken are put back here."""
        job = await self._rows.changed(job_id, lambda row: cancelled(row, kill, now, fault))
        if job is None or job.status is not JobStatus.CANCELLING or not (job.kill or fault):
            return job
        await self._batches.withdraw(job_id, now)
        return await self._rows.changed(job_id, lambda row: cancelled(row, kill, now, fault))

    async def reopen(self, job_id: str, now: float) -> Job | None:
        """Undo a cancel: CANCELLED becomes RUNNING. Any other job stays as it is. None if unknown."""
        return await self._rows.changed(job_id, lambda row: reopened(row, now))

    async def move(self, job_id: str, leave: JobStatus, to: JobStatus, now: float) -> bool:
        """One step of the state machine. False if the job has another status or has items to hand out again."""
        values = status_values(to, now) | {"breaker_until": None}
        return await self._change_if(job_id, lambda row: values if may_move(row, leave, to) else None)

    async def runnable(self, now: float) -> list[Job]:
        """Jobs with items to hand out, or paused by a breaker whose cooldown ended. Oldest first."""
        return await self._listing.runnable(now)

    async def overdue(self, now: float, limit: int) -> list[Job]:
        """Jobs whose deadline has passed and that are not ending yet, the oldest first."""
        return await self._listing.overdue(now, limit)

    async def any_open(self) -> bool:
        """Whether a job has not ended, or is cancelled and its files are not written yet."""
        return await self._listing.any_open()

    async def settled(self, limit: int) -> list[Job]:
        """Jobs to finish: nothing to hand out, nothing handed out, nothing being read."""
        return await self._listing.settled(limit)

    async def files_written(self, job: Job) -> bool:
        """Record that the files of a cancelled job are written. False if the job has changed since it was read."""

        def values(row: Row) -> Row | None:
            same = row["files_pending"] and row["finished_at"] == job.finished_at
            return {"files_pending": False} if same else None

        return await self._change_if(job.id, values)

    async def begin_delete(self, job_id: str) -> bool:
        """Mark a final job as being deleted. False if there is none or it is not final."""
        return await self._change_if(job_id, lambda row: _DELETING if row["status"] in FINAL_JOB else None)

    async def delete(self, job_id: str) -> bool:
        """Delete a final job with all its rows, in pieces: may be called again after an interruption. False if there is
        none or it is not final."""
        if not await self.begin_delete(job_id):
            return False
        job = await self._rows.get(job_id)
        if job is not None:
            await self._removal.remove_all(job)
            await self._rows.remove(job)
        return True

    async def _change_if(self, job_id: str, values: Any) -> bool:
        """Write the columns that `values` makes of the row; False if it makes None, or there is no such job."""

        async def work() -> bool:
            job = await self._rows.get(job_id)
            written = None if job is None else values(job)
            if job is None or written is None:
                return False
            await self._table.transact(await self._rows.change(job, written))
            return True

        return await self._rows.apply(job_id, work) if is_id(job_id) else False
