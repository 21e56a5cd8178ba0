"""How much work waits in each lane, in seconds of the workers that take it."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from scrapeyard.model.job import Job, JobStatus
from scrapeyard.model.run import Priority, WorkerInfo

UNKNOWN_SECONDS = 1.0
"""What a run or an item is taken to need where none has been measured."""
AHEAD_SECONDS = 60.0
"""A job with a rate counts with the items that the rate allows in this time: more workers would not help beyond."""


class LaneLoad(Struct, frozen=True, kw_only=True):
    """What waits in one lane."""

    lane: str
    seconds: float
    """What waits, divided among the slots; as for one slot if there are none."""
    runs: int
    """Runs in the queue."""
    items: int
    """Items of jobs that wait and may run now."""
    seconds_per_run: float
    seconds_per_item: float
    slots: int
    workers: int


def lane_loads(
    depth: Mapping[tuple[str, Priority], int], jobs: Sequence[Job], workers: Sequence[WorkerInfo]
) -> list[LaneLoad]:
    """Every lane that has work or workers, by name. Low-priority deliveries of a lane with jobs are taken for batches,
    whose items are counted with their jobs."""
    items: Counter[str] = Counter()
    for job in jobs:
        if job.status in (JobStatus.CREATING, JobStatus.RUNNING):
            items[job.lane] += _items(job)
    runs: Counter[str] = Counter()
    for (lane, priority), count in depth.items():
        if priority is not Priority.LOW or not items[lane]:
            runs[lane] += count
    able = [worker for worker in workers if not worker.draining]
    lanes = {lane for worker in able for lane in worker.lanes} | {
        *runs,
        *(lane for lane, count in items.items() if count),
    }
    return [_load(lane, runs[lane], items[lane], able) for lane in sorted(lanes)]


def _load(lane: str, runs: int, items: int, workers: Sequence[WorkerInfo]) -> LaneLoad:
    here = [worker for worker in workers if lane in worker.lanes]
    slots = sum(worker.slots for worker in here)
    per_run = _mean([worker.run_seconds for worker in here])
    per_item = _mean([worker.item_seconds for worker in here])
    seconds = (runs * per_run + items * per_item) / max(1, slots)
    return LaneLoad(
        lane=lane,
        seconds=round(seconds, 3),
        runs=runs,
        items=items,
        seconds_per_run=round(per_run, 4),
        seconds_per_item=round(per_item, 4),
        slots=slots,
        workers=len(here),
    )


def _items(job: Job) -> int:
    waiting = job.counts.pending + job.counts.queued
    if job.policy.rate is not None:
        waiting = min(waiting, max(1, int(job.policy.rate * AHEAD_SECONDS)))
    if job.policy.concurrency is not None:
        waiting = min(waiting, max(0, job.policy.concurrency - job.counts.in_progress))
    return waiting


def _mean(measured: Sequence[float | None]) -> float:
    known = [one for one in measured if one is not None]
    return sum(known) / len(known) if known else UNKNOWN_SECONDS
