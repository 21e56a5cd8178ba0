"""Jobs, their items and what became of them. docs/design/jobs.md tells how the tables work together.

Every method raises StoreUnavailable when the database does not answer, and may then be called again with the same
arguments: nothing is done twice. Times are Unix seconds, given by the caller.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

from msgspec import Raw, Struct

from scrapeyard.model import ExitReason
from scrapeyard.model.job import (
    Batch,
    BatchItem,
    BreakerState,
    Counts,
    Item,
    ItemOutcome,
    ItemStatus,
    Job,
    JobPolicy,
    JobStatus,
    NewItem,
)

ITEM_BLOCK = 1000
"""Items are added and streamed in blocks of at most so many."""


class JobFilter(Struct, frozen=True, kw_only=True):
    """What a listing of jobs shows; None means any."""

    statuses: tuple[JobStatus, ...] | None = None
    scraper: str | None = None
    schedule_id: str | None = None
    reading: bool | None = None
    """Whether items are still being added by its source."""
    files_pending: bool = False
    """Only those that were cancelled and whose files are not written yet."""


class JobPage(Struct, frozen=True, kw_only=True):
    """Newest first. `next_cursor` is None on the last page."""

    jobs: tuple[Job, ...]
    next_cursor: str | None = None


class ItemFilter(Struct, frozen=True, kw_only=True):
    """Which items; None means any."""

    statuses: tuple[ItemStatus, ...] | None = None
    exit_reasons: tuple[ExitReason, ...] | None = None
    sites: tuple[str, ...] | None = None
    keys: tuple[str, ...] | None = None
    """At most 1,000."""
    first: int = 0
    """Those numbered so, or higher."""


class ItemPage(Struct, frozen=True, kw_only=True):
    """In the order of the list. `next_cursor` is None on the last page."""

    items: tuple[Item, ...]
    next_cursor: str | None = None


class Recorded(Struct, frozen=True, kw_only=True):
    """What a record changed. None of it is given when the record was refused."""

    counts: Counts
    left: int
    """Items of the batch still without a record; 0: the batch is gone."""


class JobEvent(Struct, frozen=True, kw_only=True):
    """Something that watchers of a job are told. `number` counts from 1 within the job."""

    number: int
    at: float
    kind: str
    """status, item_failed, breaker, budget, export, webhook."""
    data: Raw


class JobStore(Protocol):
    """Jobs as clients and operators see them."""

    async def create_job(self, job: Job) -> bool:
        """Write it with no items. False when its id is taken; nothing is then changed."""

    async def job(self, job_id: str) -> Job | None:
        """With its counters. None means no such job."""

    async def jobs(self, where: JobFilter, cursor: str | None, limit: int) -> JobPage:
        """Raises BadRequest when the cursor is not one of ours."""

    async def add_items(
        self, job_id: str, items: Sequence[NewItem], block: int, now: float, *, source: str = ""
    ) -> int | None:
        """Append a block of at most ITEM_BLOCK. Returns how many were new (an item whose key is there already is left
        out), which are counted as pending. `block` counts from 0 for each `source` that adds (the list it was created
        with is ""): the same block a second time adds nothing and answers as the first time. None when the job takes no
        more: it is cancelling, final or unknown.

        A job that is FINISHING or COMPLETED takes none either; append is for a job that still runs.
        """

    async def end_reading(self, job_id: str, skipped_rows: int, failed: str, now: float) -> Job | None:
        """Its source has ended: CREATING becomes RUNNING, a job that was paused meanwhile stays so; with `failed` it
        is FAILED with that as its error, its pending items cancelled. None means no such job."""

    async def set_source(self, job_id: str, source: dict[str, Any]) -> bool:
        """Write where its items come from and how far that was read. False when there is no such job."""

    async def set_paused(self, job_id: str, paused: bool, reason: str, now: float) -> Job | None:
        """Halt or go on, also while its source is read; a job that is neither being made nor running nor paused stays
        as it is. Resuming also closes its breaker."""

    async def set_policy(self, job_id: str, policy: JobPolicy) -> Job | None:
        """Run what is handed out from now on by another policy. A final job stays as it is. None means no such job."""

    async def cancel_job(self, job_id: str, kill: bool, now: float) -> Job | None:
        """Pending items are counted as cancelled; CANCELLING while batches are out, else CANCELLED with
        `files_pending`. Final jobs stay."""

    async def redrive(self, job_id: str, where: ItemFilter, job: Job | None, now: float) -> int | None:
        """Hand matching final items out again, from attempt 1: errors, unless `where.statuses` says otherwise.
        Cancelled items of a cancelled job come back with them, all of them. `job` carries another pinned scraper or
        policy. Returns how many; None when the job is unknown, CREATING, CANCELLING or FINISHING."""

    async def begin_delete(self, job_id: str) -> bool:
        """Mark a final job as being removed: it cannot be redriven any more, and `finished_before` tells of it until it
        is gone. Remove what it left elsewhere, then call `delete_job`. False when there is none or it is not final."""

    async def delete_job(self, job_id: str) -> bool:
        """Remove a final job with all its rows, in pieces: may be called again after an interruption. False when there
        is none or it is not final."""

    async def finished_before(self, finished_before: float, limit: int) -> list[str]:
        """Ids of final jobs older than the retention."""


class BatchStore(Protocol):
    """Handing out and recording."""

    async def runnable(self, now: float) -> list[Job]:
        """Jobs that are CREATING, RUNNING or PAUSED-by-breaker whose cooldown ended, and have something to hand out:
        items beyond the cursor or waiting ones that are due. Oldest first, at most 1,000."""

    async def cut(self, batch: Batch, now: float) -> Batch | None:
        """Hand out up to `batch.left` items of its job: due waiting ones first, then fresh ones (never both in one
        batch). The batch as written: range or list filled in, `left` what it became. None when there was nothing, or
        the job is not to be run any more. Called again with the same id it returns what was written the first time."""

    async def take_batch(
        self, batch_id: str, worker_id: str, now: float, lease_until: float
    ) -> tuple[Batch, Job, list[BatchItem]] | None:
        """queued → running under this worker. None: drop the delivery, somebody has it or it is gone."""

    async def record(
        self, batch_id: str, worker_id: str, part: int, outcomes: Sequence[ItemOutcome], now: float
    ) -> Recorded | None:
        """Record what some of its items became, once. None: refused, since the batch is not this worker's any more or
        stands at another part; whoever asks again after StoreUnavailable may take None for "done already".

        The job's breaker hears of them in the same transaction: `heard(policy, state, letters(outcomes), now)` of
        model/breaker.py. Its status stays; the dispatcher pauses a job whose breaker opened."""

    async def give_back(self, batch_id: str, worker_id: str, now: float) -> None:
        """A worker that drains, or was told to kill: unrecorded items wait again at the same attempt, due now."""

    async def renew_batches(self, worker_id: str, batch_ids: Sequence[str], lease_until: float) -> list[str]:
        """Prolong. Returns those to stop: no longer this worker's, or their job is being killed."""

    async def queued_batches(self, queued_before: float, limit: int) -> list[Batch]:
        """Those that were published before then and not taken, the oldest first."""

    async def batches_requeued(self, batch_ids: Sequence[str], now: float) -> None:
        """They were published again at `now`."""

    async def expire_batches(self, now: float, limit: int) -> list[tuple[str, int, int]]:
        """Take batches from workers whose lease ended: unrecorded items wait for the next attempt, due now, or end as
        LOST_WORKER where none is left (an item of a killed job waits). (job id, waiting, ended) for each batch."""

    async def batches_out(self, job_id: str) -> list[Batch]:
        """Handed out and not finished."""

    async def set_breaker(self, job_id: str, state: BreakerState, status: JobStatus | None, reason: str) -> None:
        """Write how the breaker stands; with a status, RUNNING ↔ PAUSED by the breaker, nothing else."""

    async def settled(self, limit: int) -> list[Job]:
        """Jobs to finish: RUNNING or PAUSED by the breaker, nothing pending, queued or in progress, nothing being read
        (or CANCELLING with nothing out)."""

    async def move_job(self, job_id: str, leave: JobStatus, to: JobStatus, now: float) -> bool:
        """One step of the machine. False if the job stands elsewhere or has something to hand out again. One that
        becomes CANCELLED has `files_pending`."""

    async def files_written(self, job: Job) -> bool:
        """The files of a cancelled job are there, as it stood when `job` was read: they are pending no more. False when
        it was redriven or removed meanwhile, though it may have been cancelled again: nothing is changed."""


class ItemStore(Protocol):
    """Reading items."""

    async def items(self, job_id: str, where: ItemFilter, cursor: str | None, limit: int) -> ItemPage:
        """A page, in the order of the list. Raises BadRequest when the cursor is not one of ours."""

    async def item(self, job_id: str, key: str) -> Item | None:
        """One, whole. None means no such item."""

    def stream_items(
        self, job_id: str, where: ItemFilter, *, data: bool = True
    ) -> AsyncGenerator[Sequence[Item], None]:
        """All of them in order, in blocks of at most ITEM_BLOCK; without `data`: no input, result, logs."""

    async def dead_letters(self, cursor: str | None, limit: int) -> tuple[tuple[tuple[str, Item], ...], str | None]:
        """Items that ended as errors across jobs, (job id, item), newest job first; then the next cursor."""

    async def add_event(self, job_id: str, kind: str, data: Raw, now: float) -> None:
        """Append to the job's events. `record` itself appends `item_failed` for errors, the first 1,000 of a job."""

    async def events(self, job_id: str, after: int, limit: int) -> list[JobEvent]:
        """Those numbered higher than `after`, in order."""

    async def recount(self, job_id: str) -> Counts:
        """Counted from the rows, slowly: for tests and doctors."""
