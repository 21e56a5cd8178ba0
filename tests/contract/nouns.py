"""Runs, endings and workers for tests of the store: plain ones, to be varied by keyword."""

from typing import Any

from msgspec import Raw

from scrapeyard.model import ExitReason, LogLine, Outcome, Run, RunStatus, ScraperRef, WorkerInfo, new_id
from scrapeyard.store.ports.runs import Ending
from scrapeyard.store.ports.store import Store

NOW = 1_800_000_000.0


def a_run(**given: Any) -> Run:
    """An accepted run, not in any store yet."""
    plain: dict[str, Any] = {
        "id": new_id("run"),
        "status": RunStatus.QUEUED,
        "scraper": "shop/product@1.4.2",
        "input": Raw(b'{"url": "http://shop.example/1"}'),
        "created_at": NOW,
        "queued_at": NOW,
    }
    return Run(**(plain | given))


def begun(run: Run, worker_id: str = "worker-1", **given: Any) -> Run:
    """The same run as a worker begins it."""
    fields = {name: getattr(run, name) for name in run.__struct_fields__}
    began = {"status": RunStatus.RUNNING, "worker_id": worker_id, "started_at": NOW + 1, "lease_until": NOW + 15}
    return Run(**(fields | began | given))


def an_outcome(run: Run, **given: Any) -> Outcome:
    """A success of this attempt."""
    plain: dict[str, Any] = {
        "run_id": run.id,
        "attempt": run.attempt,
        "exit_reason": ExitReason.SUCCEEDED,
        "scraper": ScraperRef(id="shop/product", version="1.4.2", digest="d1"),
        "result": Raw(b'{"title": "Kettle"}'),
        "result_bytes": 19,
        "logs": (LogLine(at_ms=1.5, stream="stdout", text="one"),),
        "worker_id": run.worker_id or "worker-1",
        "started_at": NOW + 1,
        "finished_at": NOW + 2,
    }
    return Outcome(**(plain | given))


def an_ending(run: Run, **given: Any) -> Ending:
    """The run with its outcome."""
    return Ending(run=run, outcome=an_outcome(run, **given))


def a_worker(**given: Any) -> WorkerInfo:
    """A worker with one heartbeat."""
    plain: dict[str, Any] = {
        "id": "worker-1",
        "host": "node-1",
        "pid": 4711,
        "version": "0.1.0",
        "lanes": ("default",),
        "engines": ("http",),
        "walls": ("landlock",),
        "slots": 8,
        "busy": 0,
        "started_at": NOW,
        "seen_at": NOW,
    }
    return WorkerInfo(**(plain | given))


async def fetched(store: Store, run_id: str) -> Run:
    """A run that must be there."""
    run = await store.runs.get(run_id)
    assert run is not None
    return run
