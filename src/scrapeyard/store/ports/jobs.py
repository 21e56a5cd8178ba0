"""Jobs, their items and outcomes. docs/design/jobs.md explains how the tables work together.

Every method raises StoreUnavailable when the database does not answer, and may then be called again with the same
arguments: nothing is done twice. Times are Unix seconds, given by the caller.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

from msgspec import Raw, Struct

from scrapeyard.model import ExitReason, Priority, Usage
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
from scrapeyard.model.webhook import JobEventKind

ITEM_BLOCK = 1000
"""Items are added and streamed in blocks of at most this many."""


class JobFilter(Struct, frozen=True, kw_only=True):
    """What a listing of jobs shows; None means any."""

    statuses: tuple[JobStatus, ...] | None = None
    scraper: str | None = None
    schedule_id: str | None = None
    owner: str | None = None
    domain: str | None = None
    """The site it is about. No index serves this: each row is looked at, the newest first."""
    reading: bool | None = None
    """Whether its source is still adding items."""
    finished_after: float | None = None
    """Only jobs that ended since then."""
    files_pending: bool = False
    """Only cancelled jobs whose files are not written yet."""


class JobPage(Struct, frozen=True, kw_only=True):
    """Newest first. `next_cursor` is None on the last page."""

    jobs: tuple[Job, ...]
    next_cursor: str | None = None


class JobStore(Protocol):
    """Jobs, their states, and which of them need work."""

    async def create(self, job: Job) -> bool:
        """Write the job without items, and a delivery, due now, to each of its sinks. False, and nothing is changed, if
        its id is taken."""

    async def get(self, job_id: str) -> Job | None:
        """One job with its counters. None if there is none."""

    async def page(self, where: JobFilter, cursor: str | None, limit: int) -> JobPage:
        """Raises BadRequest for an invalid cursor."""

    async def end_reading(self, job_id: str, skipped_rows: int, failed: str, now: float) -> Job | None:
        """The source has ended: CREATING becomes RUNNING, a job paused meanwhile stays paused. With `failed` the job is
        FAILED with that error, and its pending items are cancelled. None if there is no such job."""

    async def set_source(self, job_id: str, source: dict[str, Any]) -> bool:
        """Store the source and how far it was read. False if there is no such job."""

    async def set_paused(self, job_id: str, paused: bool, reason: str, now: float) -> Job | None:
        """Pause or resume, also while the source is read; a job that is neither being created nor running nor paused
        stays as it is. Resuming also closes its breaker."""

    async def pause_and_tell(self, job_id: str, reason: str, kind: JobEventKind, data: Raw, now: float) -> bool:
        """Pause a job that is being created or runs, and append an event with it. False, and nothing is changed, if it
        has another status: of several who pause it at once, one tells."""

    async def set_policy(
        self, job_id: str, policy: JobPolicy, *, name: str | None = None, priority: Priority | None = None
    ) -> Job | None:
        """Apply another policy and priority to items handed out from now on, and rename the job; None: no change. The
        deadline moves by as much as `max_seconds` changes. A final job stays as it is. None if unknown."""

    async def set_breaker(self, job_id: str, state: BreakerState, status: JobStatus | None, reason: str) -> None:
        """Write the breaker's state; with a status, only RUNNING ↔ PAUSED by the breaker."""

    async def cancel(self, job_id: str, kill: bool, now: float, *, fault: str = "") -> Job | None:
        """Count pending items as cancelled; CANCELLING while batches are out, else CANCELLED with `files_pending`.
        Final jobs stay. `fault` is the job's error, if the platform cancels it; batches that no worker has taken are
        then withdrawn, and those that run end by themselves."""

    async def reopen(self, job_id: str, now: float) -> Job | None:
        """Undo a cancel: CANCELLED becomes RUNNING with a closed breaker, cancelled items wait again at the attempt
        they had reached, and a source that was not read to its end is read on. Any other job, or one that is being
        deleted, stays as it is. None if unknown."""

    async def move(self, job_id: str, leave: JobStatus, to: JobStatus, now: float) -> bool:
        """One step of the state machine. False if the job has another status or has items to hand out again. A job that
        becomes CANCELLED has `files_pending`."""

    async def runnable(self, now: float) -> list[Job]:
        """Jobs that are CREATING, RUNNING or PAUSED by a breaker whose cooldown ended, and have items to hand out:
        beyond the cursor, or waiting and due. Oldest first, at most 1,000."""

    async def overdue(self, now: float, limit: int) -> list[Job]:
        """Jobs whose `deadline` has passed and that are CREATING, RUNNING or PAUSED: cancel them. The oldest first."""

    async def any_open(self) -> bool:
        """Whether a job has not ended, or is cancelled and its files are not written yet."""

    async def settled(self, limit: int) -> list[Job]:
        """Jobs to finish: RUNNING or PAUSED by the breaker, with nothing pending, queued, in progress or being read; or
        CANCELLING with nothing handed out."""

    async def files_written(self, job: Job) -> bool:
        """Record that the files of a cancelled job, as it was when `job` was read, are written. False, and nothing is
        changed, if it was redriven or deleted meanwhile, even if it was cancelled again."""

    async def begin_delete(self, job_id: str) -> bool:
        """Mark a final job as being deleted: it can no longer be redriven, and `SweepStore.jobs_due` returns it until
        it is gone. Remove its objects, then call `delete`. False if there is none or it is not final."""

    async def delete(self, job_id: str) -> bool:
        """Delete a final job with all its rows, in pieces: may be called again after an interruption. False if there is
        none or it is not final."""


class ItemFilter(Struct, frozen=True, kw_only=True):
    """Which items; None means any."""

    statuses: tuple[ItemStatus, ...] | None = None
    exit_reasons: tuple[ExitReason, ...] | None = None
    sites: tuple[str, ...] | None = None
    http_statuses: tuple[int, ...] | None = None
    """Of the last page that an item fetched."""
    keys: tuple[str, ...] | None = None
    """At most 1,000."""
    first: int = 0
    """Items with this number or higher."""


class DeadLetterFilter(Struct, frozen=True, kw_only=True):
    """Which failed items across jobs; None means any."""

    job_id: str | None = None
    owner: str | None = None
    scraper: str | None = None
    exit_reasons: tuple[ExitReason, ...] | None = None
    sites: tuple[str, ...] | None = None


class FailureGroup(Struct, frozen=True, kw_only=True):
    """Failed items of a job that ended alike."""

    exit_reason: ExitReason
    http_status: int | None
    site: str
    count: int
    example: Item
    """The first of them."""


class ItemPage(Struct, frozen=True, kw_only=True):
    """In the order of the list. `next_cursor` is None on the last page."""

    items: tuple[Item, ...]
    next_cursor: str | None = None


class Frontier(Struct, frozen=True, kw_only=True):
    """Which ends of a job's items a watcher knows: of those below `cursor` that are not `open`."""

    cursor: int = 0
    open: frozenset[int] = frozenset()
    ended: int = 0
    """How many ends are accounted for."""


class EndedItems(Struct, frozen=True, kw_only=True):
    """Items that ended, in the order of their ends."""

    frontier: Frontier
    """To ask with next time."""
    items: tuple[Item, ...] = ()
    left_out: int = 0
    """How many more ended."""


class ItemStore(Protocol):
    """Items of jobs and their outcomes."""

    async def add(
        self, job_id: str, items: Sequence[NewItem], block: int, now: float, *, source: str = ""
    ) -> int | None:
        """Append a block of at most ITEM_BLOCK. Returns how many items were new (those whose key exists are skipped);
        they count as pending. `block` counts from 0 for each `source` (the job's own list is ""). Repeating a block
        adds nothing and returns the same. None if the job takes no more: it is cancelling, final or unknown.

        A job that is FINISHING or COMPLETED takes none either; append is for a job that still runs.
        """

    async def added(self, job_id: str, source: str) -> int:
        """How many items all blocks of a source have added."""

    async def page(self, job_id: str, where: ItemFilter, cursor: str | None, limit: int) -> ItemPage:
        """A page, in list order. Raises BadRequest for an invalid cursor."""

    async def get(self, job_id: str, key: str) -> Item | None:
        """One whole item; None if there is none."""

    def stream(self, job_id: str, where: ItemFilter, *, data: bool = True) -> AsyncGenerator[Sequence[Item], None]:
        """Yield all items in order, in blocks of at most ITEM_BLOCK; without `data`: no input, result, logs."""

    async def dead_letters(
        self, where: DeadLetterFilter, cursor: str | None, limit: int
    ) -> tuple[tuple[tuple[str, Item], ...], str | None]:
        """Items that ended as errors across jobs, (job id, item), newest job first; then the next cursor."""

    async def failures(self, job_id: str, limit: int) -> Sequence[FailureGroup]:
        """Why items of a job failed: the `limit` largest groups, the largest first."""

    async def redrive(self, job_id: str, where: ItemFilter, job: Job | None, now: float) -> int | None:
        """Hand out matching final items again, from attempt 1: errors, unless `where.statuses` says otherwise. All
        cancelled items of a cancelled job are included. `job` carries another pinned scraper or policy. Returns how
        many; None if the job is unknown, CREATING, CANCELLING or FINISHING."""

    async def ended_since(self, job_id: str, seen: Frontier, limit: int) -> EndedItems:
        """Items whose end `seen` does not know, at most `limit`, whole. Costs a few queries, however large the job is.
        Begin with `Frontier()`. An item that runs again is told again. Nothing new if there is no such job."""

    async def recount(self, job_id: str) -> Counts:
        """Counts computed from the rows, slowly: for tests."""


class Recorded(Struct, frozen=True, kw_only=True):
    """Result of a record. None is returned instead if the record was refused."""

    counts: Counts
    left: int
    """Items of the batch still without a record; 0 if the batch is gone."""


class BatchStore(Protocol):
    """Handing out and recording batches."""

    async def cut(self, batch: Batch, now: float) -> Batch | None:
        """Hand out up to `batch.left` items of its job: waiting ones that are due first, then fresh ones (never both in
        one batch). Returns the batch as written, with its range or list and the actual `left`. None if there were none,
        or the job must not run any more. Repeated with the same id, it returns what was written the first time."""

    async def take(
        self, batch_id: str, worker_id: str, now: float, lease_until: float
    ) -> tuple[Batch, Job, list[BatchItem]] | None:
        """queued → running under this worker. None if it is taken or gone: the delivery must be dropped. Begin the
        items in the order given. Of a batch that was lost before, the first counts as begun; `record` each further one
        before it begins."""

    async def record(
        self,
        batch_id: str,
        worker_id: str,
        part: int,
        outcomes: Sequence[ItemOutcome],
        now: float,
        *,
        begun: int | None = None,
    ) -> Recorded | None:
        """Record outcomes of some of its items, once, and how many of its items have `begun`, in the order that `take`
        gave; None leaves that number as it is. There may be no outcomes. None if refused: the batch is no longer this
        worker's or is at another part. After StoreUnavailable, a repeated call may treat None as "already done".

        The job's breaker is updated in the same transaction: `heard(policy, state, letters(outcomes), now)` of
        model/breaker.py. Its status stays; the dispatcher pauses a job whose breaker opened.
        """

    async def give_back(self, batch_id: str, worker_id: str, now: float) -> None:
        """For a worker that drains or must kill: items without a record wait again at the same attempt, due now."""

    async def renew(self, worker_id: str, batch_ids: Sequence[str], lease_until: float) -> list[str]:
        """Renew leases. Returns the batches to stop: no longer this worker's, or their job is being killed."""

    async def queued(self, queued_before: float, limit: int) -> list[Batch]:
        """Batches published before `queued_before` and not taken, the oldest first."""

    async def requeued(self, batch_ids: Sequence[str], now: float) -> None:
        """Record that they were published again at `now`."""

    async def expire(self, now: float, limit: int) -> list[tuple[str, int, int]]:
        """Take batches from workers whose lease ended. Items without a record wait, due now: at the next attempt if
        they had begun, or they end as LOST_WORKER if none is left; otherwise, and in a killed job, at the same attempt.
        Batches of them are `lost_before`. Returns (job id, waiting, ended) for each batch."""

    async def out(self, job_id: str) -> list[Batch]:
        """Batches handed out and not finished, in no order."""


class JobEvent(Struct, frozen=True, kw_only=True):
    """An event for watchers of a job. `number` counts from 1 within the job."""

    number: int
    at: float
    kind: str
    """A JobEventKind, or one of a later version."""
    data: Raw


class EventStore(Protocol):
    """Events of jobs, for their watchers."""

    async def add(self, job_id: str, kind: JobEventKind, data: Raw, now: float) -> None:
        """Append an event. `BatchStore.record` itself appends `item_failed` for errors, the first 1,000 of a job."""

    async def after(self, job_id: str, after: int, limit: int) -> list[JobEvent]:
        """Events numbered higher than `after`, in order."""


class JobPoint(Struct, frozen=True, kw_only=True):
    """How a job stood at a time."""

    at: float
    counts: Counts
    use: Usage


class PointStore(Protocol):
    """How jobs stood over time. Points go with their job."""

    async def sample(self, now: float) -> None:
        """Write a point for each job that is CREATING, RUNNING, CANCELLING or FINISHING. Points are five seconds apart,
        and farther apart in a long job; a second one of the same time is not written."""

    async def thin(self, now: float) -> None:
        """Remove points between others from jobs that go on and have more than 500."""

    async def of_job(self, job_id: str) -> Sequence[JobPoint]:
        """All points of a job, the oldest first; none if there is no such job."""
