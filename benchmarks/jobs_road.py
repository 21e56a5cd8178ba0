"""One job from the first byte of its list to the last of its files, and when it passed each stage."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from benchmarks.jobs_call import Caller
from benchmarks.jobs_watch import Asking, Times
from benchmarks.load import LoadFailed

EXPORTS = tuple({"type": "records", "format": name} for name in ("csv", "xlsx", "parquet"))
_LOOK_SECONDS = 0.05
_PATIENCE = 3600.0
_FINAL = ("completed", "cancelled", "failed")


class Road(Struct, frozen=True, kw_only=True):
    """Seconds that a job took, whole and by stage. Items are read and run at the same time."""

    items: int
    whole: float
    """From the first byte of the upload to the last of the exports."""
    upload: float
    done: float
    """From the first byte until the last item had ended."""
    ran: float
    """From the first item that was handed out to the last that ended."""
    manifest: float
    exports: dict[str, float]
    seen: dict[str, Times] = field(default_factory=dict)
    """Answers while it went on."""

    def per_second(self, seconds: float) -> float:
        """Items."""
        return self.items / seconds if seconds else float("nan")


def travel(port: int, items: int, scraper: str = "builtin/echo", *, ask: bool = False, **options: Any) -> Road:
    """Make a job, wait for its end. With `ask` others ask meanwhile. Raises LoadFailed when an item fails."""
    with Caller(port) as caller:
        began = time.time()
        job_id = caller.upload(items, scraper, exports=list(EXPORTS), **options)
        uploaded = time.time()
        asking = Asking(port, job_id)
        if ask:
            with asking.going_on():
                done_at, job = _through(caller, job_id)
        else:
            done_at, job = _through(caller, job_id)
        _check(job, items)
        files = caller.ask("GET", f"/api/jobs/{job_id}/exports")[0]["exports"]
    started, finished = _at(job["started_at"]), _at(job["finished_at"])
    return Road(
        items=items,
        whole=finished - began,
        upload=uploaded - began,
        done=done_at - began,
        ran=done_at - started,
        manifest=min(_at(file["created_at"]) for file in files) - done_at,
        exports={file["format"]: _at(file["finished_at"]) - _at(file["started_at"]) for file in files},
        seen=asking.seen,
    )


def drain(port: int, items: int, scraper: str, **options: Any) -> float:
    """Items a second from the moment a job that was read whole may run to its last outcome."""
    with Caller(port) as caller:
        job_id = caller.upload(items, scraper, paused="true", **options)
        _until(caller, job_id, lambda job: not job["reading"])
        began = time.time()
        caller.ask("POST", f"/api/jobs/{job_id}/resume")
        _until(caller, job_id, lambda job: job["counts"]["success"] == items or job["status"] in _FINAL)
        seconds = time.time() - began
        _check(_until(caller, job_id, lambda job: job["status"] in _FINAL), items)
    return items / seconds


def _through(caller: Caller, job_id: str) -> tuple[float, dict[str, Any]]:
    """When its last item had ended, and the job when all is written."""
    _until(caller, job_id, _all_ended)
    done_at = time.time()
    return done_at, _until(caller, job_id, lambda job: job["status"] in _FINAL)


def _all_ended(job: dict[str, Any]) -> bool:
    counts = job["counts"]
    return job["status"] in _FINAL or (not job["reading"] and counts["success"] + counts["error"] == counts["total"])


def _until(caller: Caller, job_id: str, good: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    ends = time.monotonic() + _PATIENCE
    while time.monotonic() < ends:
        job: dict[str, Any] = caller.ask("GET", f"/api/jobs/{job_id}")[0]
        if good(job):
            return job
        time.sleep(_LOOK_SECONDS)
    raise LoadFailed(f"job {job_id} did not end: {job['counts']}")


def _check(job: dict[str, Any], items: int) -> None:
    if job["status"] != "completed" or job["counts"]["success"] != items:
        raise LoadFailed(f"job {job['id']} is {job['status']}: {job['counts']}")


def _at(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()
