"""How much work waits in each lane, in seconds of the workers that take it, and how many workers it needs."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from scrapeyard.model.job import Job, JobStatus
from scrapeyard.model.run import Priority
from scrapeyard.model.worker import WorkerInfo

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
    slot_seconds: float
    """What waits, in seconds of one slot."""
    seconds_per_run: float
    seconds_per_item: float
    measured: bool
    """False if something waits of which no worker has measured how long it takes: UNKNOWN_SECONDS are assumed."""
    slots: int
    workers: int


def lane_loads(
    depth: Mapping[tuple[str, Priority], int],
    jobs: Sequence[Job],
    workers: Sequence[WorkerInfo],
    only: Sequence[str] = (),
) -> list[LaneLoad]:
    """Every lane that has work or workers, or those named in `only`, by name. Low-priority deliveries of a lane with
    jobs are taken for batches, whose items are counted with their jobs."""
    items: Counter[str] = Counter()
    for job in jobs:
        if job.status in (JobStatus.CREATING, JobStatus.RUNNING):
            items[job.lane] += _items(job)
    runs: Counter[str] = Counter()
    for (lane, priority), count in depth.items():
        if priority is not Priority.LOW or not items[lane]:
            runs[lane] += count
    able = [worker for worker in workers if not worker.draining]
    lanes = set(only) or {lane for worker in able for lane in worker.lanes} | {*runs, *(+items)}
    return [_load(lane, runs[lane], items[lane], able) for lane in sorted(lanes)]


def _load(lane: str, runs: int, items: int, workers: Sequence[WorkerInfo]) -> LaneLoad:
    here = [worker for worker in workers if lane in worker.lanes]
    slots = sum(worker.slots for worker in here)
    per_run = _mean([worker.run_seconds for worker in here])
    per_item = _mean([worker.item_seconds for worker in here])
    slot_seconds = runs * per_run + items * per_item
    return LaneLoad(
        lane=lane,
        seconds=round(slot_seconds / max(1, slots), 3),
        runs=runs,
        items=items,
        slot_seconds=round(slot_seconds, 3),
        seconds_per_run=round(per_run, 4),
        seconds_per_item=round(per_item, 4),
        measured=_measured(runs, items, here),
        slots=slots,
        workers=len(here),
    )


def _measured(runs: int, items: int, workers: Sequence[WorkerInfo]) -> bool:
    known_runs = any(worker.run_seconds is not None for worker in workers)
    known_items = any(worker.item_seconds is not None for worker in workers)
    return (not runs or known_runs) and (not items or known_items)


class WorkersWanted(Struct, frozen=True, kw_only=True):
    """How many workers some lanes need together."""

    workers: int
    """Workers that take one of the lanes and do not drain."""
    slots: int
    busy: int
    slots_per_worker: float
    wanted: int


def workers_wanted(
    loads: Sequence[LaneLoad], workers: Sequence[WorkerInfo], target_seconds: float, slots_if_none: int
) -> WorkersWanted:
    """Enough for what waits in these lanes to begin within `target_seconds`, and for what runs now; at least one while
    anything waits. `slots_if_none` is the number of slots that a worker has, where none is alive to tell."""
    lanes = {load.lane for load in loads}
    here = [worker for worker in workers if not worker.draining and lanes.intersection(worker.lanes)]
    slots, busy = sum(worker.slots for worker in here), sum(worker.busy for worker in here)
    each = slots / len(here) if slots else slots_if_none
    # The larger of the two, not the sum: with a backlog every slot is busy, so a sum would grow with each new worker.
    needed = max(float(busy), sum(load.slot_seconds for load in loads) / target_seconds)
    # One worker for the smallest need, but none more for what rounding added.
    wanted = math.ceil(round(needed / each, 6)) or int(needed > 0)
    return WorkersWanted(workers=len(here), slots=slots, busy=busy, slots_per_worker=round(each, 2), wanted=wanted)


def _items(job: Job) -> int:
    if job.breaker.state == "open":
        return 0
    waiting = job.counts.pending + job.counts.queued
    if job.policy.rate is not None:
        waiting = min(waiting, max(1, int(job.policy.rate * AHEAD_SECONDS)))
    if job.policy.concurrency is not None:
        waiting = min(waiting, max(0, job.policy.concurrency - job.counts.in_progress))
    return waiting


def _mean(measured: Sequence[float | None]) -> float:
    known = [one for one in measured if one is not None]
    return sum(known) / len(known) if known else UNKNOWN_SECONDS
