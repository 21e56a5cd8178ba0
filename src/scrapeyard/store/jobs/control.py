"""Pausing and cancelling jobs, and their breakers."""

from collections.abc import Callable
from typing import Any

from msgspec import json
from sqlalchemy import select

from scrapeyard.model.breaker import closed
from scrapeyard.model.job import FINAL_JOB, BreakerState, Job, JobPolicy, JobStatus
from scrapeyard.store.database.database import Database
from scrapeyard.store.database.transaction import Script
from scrapeyard.store.jobs.counters import put_back
from scrapeyard.store.jobs.locks import change_job, locked_batch, locked_job, status_values
from scrapeyard.store.jobs.rows import Fields, to_breaker, to_job, to_policy
from scrapeyard.store.runs.writes import is_id
from scrapeyard.store.tables.jobs import BATCHES, JOBS

_GOING = frozenset({JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED, JobStatus.CANCELLING})


class SqlJobControl:
    """The part of JobStore for job control, and set_breaker of BatchStore."""

    _database: Database

    async def set_paused(self, job_id: str, paused: bool, reason: str, now: float) -> Job | None:
        """Pause or resume; a job that is neither being created nor running nor paused stays as it is. Resuming also
        closes its breaker. Pausing a job that its breaker paused makes the caller's reason the pause reason."""

        def values(job: Fields) -> dict[str, Any]:
            if job["status"] not in (JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED):
                return {}
            if job["status"] == JobStatus.CREATING and not paused:
                return {}
            if paused:
                return status_values(JobStatus.PAUSED, now) | {"pause_reason": reason, "breaker_until": None}
            anew = {"pause_reason": "", "breaker_until": None, "breaker": json.encode(closed(to_breaker(job)))}
            return status_values(JobStatus.RUNNING, now) | anew

        return await _changed(self._database, job_id, values)

    async def set_policy(self, job_id: str, policy: JobPolicy) -> Job | None:
        """Apply another policy to items handed out from now on. A final job stays as it is. None if unknown."""

        def values(job: Fields) -> dict[str, Any]:
            return {} if job["status"] in FINAL_JOB else {"policy": json.encode(policy)}

        return await _changed(self._database, job_id, values)

    async def cancel_job(self, job_id: str, kill: bool, now: float) -> Job | None:
        """Count pending items as cancelled; CANCELLING while batches are out, else CANCELLED with its files pending.
        Final jobs stay. With `kill`, batches not yet taken are put back here; workers learn of it from
        `renew_batches`."""
        job = await _changed(self._database, job_id, lambda row: _cancelled(row, kill, now))
        if job is None or job.status is not JobStatus.CANCELLING or not job.kill:
            return job
        await _withdraw(self._database, job_id, now)
        return await _changed(self._database, job_id, lambda row: _cancelled(row, kill, now))

    async def set_breaker(self, job_id: str, state: BreakerState, status: JobStatus | None, reason: str) -> None:
        """Write the breaker's state; with a status, only RUNNING ↔ PAUSED by the breaker: a job paused by a person
        stays paused."""

        def values(job: Fields) -> dict[str, Any]:
            by_breaker = job["status"] == JobStatus.PAUSED and job["breaker_until"] is not None
            written: dict[str, Any] = {"breaker": json.encode(state)}
            if status is JobStatus.PAUSED and (by_breaker or job["status"] == JobStatus.RUNNING):
                until = (state.opened_at or 0.0) + to_policy(job).breaker.cooldown_seconds
                written |= {"status": status.value, "pause_reason": reason, "breaker_until": until}
            elif status is JobStatus.RUNNING and by_breaker:
                written |= {"status": status.value, "pause_reason": "", "breaker_until": None}
            return written

        await _changed(self._database, job_id, values)


async def _withdraw(database: Database, job_id: str, now: float) -> None:
    query = select(BATCHES.c.id).join(JOBS, JOBS.c.number == BATCHES.c.job)
    query = query.where(JOBS.c.id == job_id, BATCHES.c.state == "queued")
    for row in await database.fetch(query):

        def work(batch_id: str = row["id"]) -> Script[None]:
            held = yield from locked_batch(batch_id)
            if held is not None and held.batch.state == "queued":
                yield from put_back(held, now)

        await database.play(work)


def _cancelled(job: Fields, kill: bool, now: float) -> dict[str, Any]:
    if job["status"] not in _GOING:
        return {}
    to = JobStatus.CANCELLING if job["queued"] + job["in_progress"] else JobStatus.CANCELLED
    counts = {"pending": 0, "cancelled": job["cancelled"] + job["pending"]}
    halted = {"reading": False, "breaker_until": None, "pause_reason": "", "kill": kill or job["kill"]}
    return status_values(to, now) | counts | halted


async def _changed(database: Database, job_id: str, values: Callable[[Fields], dict[str, Any]]) -> Job | None:
    """Write `values` of the locked row; {} writes nothing. Returns the job; None if there is no such job."""

    def work() -> Script[Job | None]:
        job = yield from locked_job(job_id)
        if job is None:
            return None
        written = values(job)
        if written:
            yield from change_job(job, written)
        return to_job(dict(job) | written)

    return await database.play(work) if is_id(job_id) else None
