"""A job as plain Python: what the store must agree with, after whatever was done to it."""

from dataclasses import dataclass, field

from scrapeyard.model.job import Batch, Counts, ItemOutcome, ItemStatus, JobStatus

MAX_ATTEMPTS = 2
_STOPPED = (JobStatus.CANCELLING, JobStatus.CANCELLED, JobStatus.FAILED)
_ENDS = (ItemStatus.SUCCESS, ItemStatus.ERROR)


@dataclass
class Travelling:
    """A batch that is out."""

    items: dict[int, int]
    """Those without a record, and their attempt."""
    worker: str = ""
    part: int = 0
    lease: float = 0.0
    order: list[int] = field(default_factory=list)
    """All of its items, as they are begun."""
    begun: int = 0
    lost_before: bool = False

    def take(self, worker: str, lease: float) -> None:
        self.worker, self.lease, self.begun = worker, lease, int(self.lost_before)


@dataclass
class ModelJob:
    """Every item is in exactly one of `fresh`, `waiting`, `ends` and the batches."""

    status: JobStatus = JobStatus.CREATING
    reading: bool = True
    kill: bool = False
    files_pending: bool = False
    ended: int = 0
    """How often it was cancelled: files of an earlier time are not those that are pending."""
    keys: list[str] = field(default_factory=list)
    fresh: list[int] = field(default_factory=list)
    waiting: dict[int, tuple[int, float]] = field(default_factory=dict)
    lost_before: set[int] = field(default_factory=set)
    """Those that wait since their worker was lost."""
    ends: dict[int, ItemStatus] = field(default_factory=dict)
    answers: dict[int, int] = field(default_factory=dict)
    """HTTP statuses of those that ended."""
    batches: dict[str, Travelling] = field(default_factory=dict)

    @property
    def stopped(self) -> bool:
        return self.status in _STOPPED

    @property
    def idle(self) -> int:
        return len(self.fresh) + len(self.waiting)

    def counts(self) -> Counts:
        held = [sum(len(b.items) for b in self.batches.values() if bool(b.worker) is taken) for taken in (False, True)]
        ends = [sum(end is wanted for end in self.ends.values()) for wanted in _ENDS]
        return Counts(
            total=len(self.keys),
            pending=0 if self.stopped else self.idle,
            queued=held[0],
            in_progress=held[1],
            success=ends[0],
            error=ends[1],
            cancelled=self.idle if self.stopped else 0,
        )

    def statuses(self) -> list[ItemStatus]:
        found = dict.fromkeys(
            [*self.fresh, *self.waiting], ItemStatus.CANCELLED if self.stopped else ItemStatus.PENDING
        )
        for batch in self.batches.values():
            found |= dict.fromkeys(batch.items, ItemStatus.IN_PROGRESS if batch.worker else ItemStatus.QUEUED)
        assert not found.keys() & self.ends.keys()
        return [status for _, status in sorted((found | self.ends).items())]

    def add(self, keys: list[str]) -> int | None:
        if self.status not in (JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED):
            return None
        new = [key for key in dict.fromkeys(keys) if key not in self.keys]
        self.fresh += range(len(self.keys), len(self.keys) + len(new))
        self.keys += new
        return len(new)

    def cut(self, batch_id: str, left: int, now: float) -> dict[int, int] | None:
        if self.status not in (JobStatus.CREATING, JobStatus.RUNNING):
            return None
        due = sorted((at, seq) for seq, (_, at) in self.waiting.items() if at <= now)[:left]
        items = {seq: self.waiting.pop(seq)[0] for _, seq in due}
        if not items:
            items = dict.fromkeys(self.fresh[:left], 1)
            del self.fresh[:left]
        if items:
            lost = bool(self.lost_before & items.keys())
            self.batches[batch_id] = Travelling(items=dict(items), order=list(items), lost_before=lost)
            self.lost_before -= items.keys()
        return items or None

    def put_back(self, batch_id: str, now: float) -> None:
        batch = self.batches.pop(batch_id)
        self.waiting |= {seq: (attempt, now) for seq, attempt in batch.items.items()}
        self.lost_before |= batch.items.keys() if batch.lost_before else set()

    def record(self, batch_id: str, outcomes: list[ItemOutcome], begun: int | None) -> int:
        batch = self.batches[batch_id]
        batch.begun = batch.begun if begun is None else begun
        for outcome in outcomes:
            if batch.items.pop(outcome.seq, None) is None:
                continue
            if outcome.not_before is not None:
                self.waiting[outcome.seq] = (outcome.attempt + (not outcome.postponed), outcome.not_before)
            else:
                self.ends[outcome.seq] = ItemStatus.ERROR if outcome.error else ItemStatus.SUCCESS
                self.answers |= {} if outcome.http_status is None else {outcome.seq: outcome.http_status}
        batch.part += 1
        if not batch.items:
            del self.batches[batch_id]
        return len(batch.items)

    def expire(self, now: float) -> list[tuple[int, int]]:
        """(waiting, ended) for each."""
        told = []
        for batch_id in [name for name, one in self.batches.items() if one.worker and one.lease < now]:
            batch = self.batches.pop(batch_id)
            items, charged = batch.items, set() if self.kill else set(batch.order[: batch.begun])
            lost = {seq for seq, a in items.items() if seq in charged and a >= MAX_ATTEMPTS}
            self.ends |= dict.fromkeys(lost, ItemStatus.ERROR)
            rest = {seq: (a + (seq in charged), now) for seq, a in items.items() if seq not in lost}
            self.waiting |= rest
            self.lost_before |= rest.keys()
            told.append((len(rest), len(lost)))
        return told

    def cancel(self, kill: bool, now: float) -> None:
        if self.status not in (JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED, JobStatus.CANCELLING):
            return
        self.reading, self.kill = False, kill or self.kill
        if self.kill:
            for batch_id in [name for name, one in self.batches.items() if not one.worker]:
                self.put_back(batch_id, now)
        self._stands(JobStatus.CANCELLING if self.batches else JobStatus.CANCELLED)

    def redrive(self, wanted: set[ItemStatus], now: float) -> int | None:
        if self.status in (JobStatus.CREATING, JobStatus.CANCELLING, JobStatus.FINISHING):
            return None
        back = self.idle if self.stopped else 0
        again = [seq for seq, end in self.ends.items() if end in wanted]
        if not back + len(again):
            return 0
        for seq in again:
            del self.ends[seq]
            self.answers.pop(seq, None)
            self.waiting[seq] = (1, now)
        if self.status not in (JobStatus.RUNNING, JobStatus.PAUSED):
            self._stands(JobStatus.RUNNING)
            self.kill = False
        return back + len(again)

    def move(self, leave: JobStatus, to: JobStatus) -> bool:
        busy = self.batches or (self.idle and not self.stopped) or self.reading
        if self.status is not leave or busy:
            return False
        self._stands(to)
        return True

    def written(self, ended: int) -> bool:
        """The files as they were wanted at that end."""
        if not self.files_pending or ended != self.ended:
            return False
        self.files_pending = False
        return True

    def _stands(self, to: JobStatus) -> None:
        self.status, self.files_pending = to, to is JobStatus.CANCELLED
        self.ended += self.files_pending


def items_of(batch: Batch) -> dict[int, int]:
    return dict(batch.again) or dict.fromkeys(range(batch.first, batch.last + 1), 1)
