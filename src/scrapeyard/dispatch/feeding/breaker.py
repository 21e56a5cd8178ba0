"""Acting on the breaker of a job: it is paused while the breaker is open, and probed when the cooldown is over.

The store itself folds what is recorded into the breaker (model/breaker.py); here its state is only read, so a new
leader goes on where the last one was.
"""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from scrapeyard.model.breaker import closed, half_opened
from scrapeyard.model.job import BreakerState, Job, JobStatus
from scrapeyard.store.ports.jobs import BatchStore, ItemStore
from scrapeyard.telemetry.events import get_log

log = get_log("jobs")
REASON = "breaker"
"""`pause_reason` of a job that its breaker paused."""
_NO_LIMIT = 2**62


class BreakerStore(BatchStore, ItemStore, Protocol):
    """What is needed of the store."""


class JobBreakers:
    """One leader's view of every breaker. An event is written before the step it tells of, so that a crash may repeat
    but never swallow it; that a breaker closed is told only by who led while it was half open."""

    def __init__(self, store: BreakerStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._told: dict[str, tuple[str, int]] = {}

    async def allow(self, job: Job) -> int:
        """How many items may be handed out now as far as the breaker goes."""
        breaker, policy = job.breaker, job.policy.breaker
        if not policy.enabled:
            return await self._without(job)
        if breaker.state == "closed":
            await self._tell_closed(job)
            return _NO_LIMIT
        if breaker.state == "half_open":
            self._told[job.id] = ("half_open", breaker.trips)
            return max(0, policy.probes - breaker.in_a_row - _out(job))
        return await self._while_open(job)

    def forget(self, job_id: str) -> None:
        """The job has nothing to hand out any more."""
        self._told.pop(job_id, None)

    async def _while_open(self, job: Job) -> int:
        """Before it is probed, all that was handed out earlier must have ended: it would be taken for probes."""
        breaker, policy = job.breaker, job.policy.breaker
        opened_at = breaker.opened_at or 0.0
        if self._clock() < opened_at + policy.cooldown_seconds or _out(job):
            await self._pause(job)
            return 0
        probed = half_opened(policy, breaker)
        await self._say(job, probed)
        await self._store.set_breaker(job.id, probed, _unless_creating(job, JobStatus.RUNNING), "")
        return policy.probes

    async def _pause(self, job: Job) -> None:
        """A job that is still being read cannot be paused; it is only handed nothing."""
        if job.status is JobStatus.PAUSED or self._told.get(job.id) == ("open", job.breaker.trips):
            return
        await self._say(job, job.breaker)
        await self._store.set_breaker(job.id, job.breaker, _unless_creating(job, JobStatus.PAUSED), REASON)

    async def _without(self, job: Job) -> int:
        """The policy was changed while the breaker was open."""
        if job.breaker.state != "closed":
            await self._store.set_breaker(job.id, closed(job.breaker), _unless_creating(job, JobStatus.RUNNING), "")
        return _NO_LIMIT

    async def _tell_closed(self, job: Job) -> None:
        if self._told.get(job.id, ("", 0))[0] == "half_open":
            await self._say(job, job.breaker)
        self._told.pop(job.id, None)

    async def _say(self, job: Job, breaker: BreakerState) -> None:
        told: dict[str, Any] = {"state": breaker.state, "reason": breaker.reason, "trips": breaker.trips}
        if breaker.state == "open":
            told["until"] = (breaker.opened_at or 0.0) + job.policy.breaker.cooldown_seconds
            log.warning("jobs.breaker_opened", job=job.id, reason=breaker.reason)
        else:
            log.info("jobs.breaker_moved", job=job.id, state=breaker.state)
        await self._store.add_event(job.id, "breaker", Raw(msgspec.json.encode(told)), self._clock())
        self._told[job.id] = (breaker.state, breaker.trips)


def _out(job: Job) -> int:
    return job.counts.queued + job.counts.in_progress


def _unless_creating(job: Job, status: JobStatus) -> JobStatus | None:
    return None if job.status is JobStatus.CREATING else status
