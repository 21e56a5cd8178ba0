"""Queued work in seconds, and the workers that it needs."""

from typing import Any

import pytest

from scrapeyard.model import Priority, WorkerInfo
from scrapeyard.model.job import BreakerState, Counts, Job, JobPolicy, JobStatus
from scrapeyard.queues.load import LaneLoad, lane_loads, workers_wanted


def worker(name: str = "worker_1", **more: Any) -> WorkerInfo:
    fields: dict[str, Any] = {"lanes": ("default",), "slots": 4, "busy": 0, "run_seconds": 2.0, "item_seconds": 0.5}
    fixed = {"host": "h", "pid": 1, "version": "1", "engines": (), "walls": (), "started_at": 0.0, "seen_at": 0.0}
    return WorkerInfo(id=name, **{**fixed, **fields, **more})


def job(pending: int, **more: Any) -> Job:
    counts = Counts(total=pending, pending=pending)
    fields: dict[str, Any] = {"status": JobStatus.RUNNING, "counts": counts, "policy": JobPolicy(), **more}
    return Job(id="job_1", scraper="a/b", pinned="a/b@1.0.0#d", lane="default", created_at=0.0, **fields)


def wanted(loads: list[LaneLoad], *workers: WorkerInfo, target: float = 10.0) -> int:
    return workers_wanted(loads, workers, target, 4).wanted


def test_runs_and_items_wait_for_the_slots_of_their_lane() -> None:
    depth = {("default", Priority.HIGH): 10, ("default", Priority.LOW): 3, ("other", Priority.NORMAL): 5}
    default, other = lane_loads(depth, [job(40)], [worker()])
    assert (default.runs, default.items) == (10, 40), "low deliveries of a lane with a job are its batches"
    assert (default.slot_seconds, default.seconds, default.measured) == (40.0, 10.0, True)
    assert (other.slot_seconds, other.seconds, other.measured) == (5.0, 5.0, False), "nobody has measured there"


@pytest.mark.parametrize(
    ("change", "items"),
    [
        ({"policy": JobPolicy(rate=0.1)}, 6),
        ({"policy": JobPolicy(concurrency=3)}, 3),
        ({"status": JobStatus.PAUSED}, 0),
        ({"breaker": BreakerState(state="open")}, 0),
    ],
)
def test_more_workers_do_not_help_items_that_may_not_run(change: dict[str, Any], items: int) -> None:
    (load,) = lane_loads({}, [job(1000, **change)], [worker()])
    assert load.items == items


def test_workers_are_wanted_for_what_waits_and_for_what_runs() -> None:
    none = lane_loads({}, [], [worker()])
    assert wanted(none, worker()) == 0
    assert wanted(none, worker(busy=1)) == 1, "what runs is not stopped"
    some = lane_loads({("default", Priority.NORMAL): 1}, [], [worker()])
    assert wanted(some, worker()) == 1
    many = lane_loads({("default", Priority.NORMAL): 100}, [], [worker()])
    assert wanted(many, worker(busy=4)) == 5, "200 s / 10 s / 4 slots"
    assert wanted(many, *(worker(f"worker_{n}", busy=4) for n in range(5))) == 5, "and it stays so with five busy ones"
    assert wanted(many) == 5, "with no worker alive, the slots that are assumed"
