"""Budgets of whole jobs: a warning, then a pause until somebody raises the budget and resumes the job."""

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec
from msgspec import Raw

from scrapeyard.model import BudgetLimits, Usage
from scrapeyard.model.job import Job, JobStatus
from scrapeyard.store.ports.jobs import ItemStore, JobStore
from scrapeyard.telemetry.events import get_log

log = get_log("jobs")
REASON = "budget"
"""`pause_reason` of a job whose budget is used up."""
_NO_LIMITS = BudgetLimits()
_MEGABYTE = 2**20
_RESIDENTIAL = ("residential", "unlocker")
_PAGE = 1000


class BudgetStore(JobStore, ItemStore, Protocol):
    """What is needed of the store."""


class JobBudgets:
    """Compares what the recorded items of a job used with what it may use.

    What is out when the budget ends is not stopped here: workers refuse its requests by themselves. `seconds` is
    compared with the time that items ran, since that is what is summed; time spent in fetches alone is less.
    """

    def __init__(self, store: BudgetStore, warn_share: float, clock: Callable[[], float]) -> None:
        self._store = store
        self._warn_share = warn_share
        self._clock = clock
        self._told: dict[str, set[tuple[str, str, float]]] = {}

    async def allows(self, job: Job) -> bool:
        """Whether it may go on. Told are a first warning and the end, each once for a budget of that size."""
        if job.policy.budget == _NO_LIMITS:
            return True
        for name, used, allowed in spending(job.use, job.policy.budget):
            if used >= allowed:
                await self._end(job, name, used, allowed)
                return False
            if used >= self._warn_share * allowed:
                await self._tell(job, "nearly_used", name, used, allowed)
        return True

    def forget(self, job_id: str) -> None:
        """The job has nothing to hand out any more."""
        self._told.pop(job_id, None)

    async def _end(self, job: Job, name: str, used: float, allowed: float) -> None:
        await self._tell(job, "used_up", name, used, allowed)
        if job.status in (JobStatus.CREATING, JobStatus.RUNNING):
            await self._store.set_paused(job.id, True, REASON, self._clock())

    async def _tell(self, job: Job, state: str, name: str, used: float, allowed: float) -> None:
        told = self._told.get(job.id)
        if told is None:
            told = self._told[job.id] = await self._told_before(job.id)
        if (state, name, allowed) in told:
            return
        log.warning("jobs.budget", job=job.id, state=state, budget=name, used=round(used, 3), allowed=allowed)
        words = {"state": state, "budget": name, "used": round(used, 3), "allowed": allowed}
        await self._store.add_event(job.id, "budget", Raw(msgspec.json.encode(words)), self._clock())
        told.add((state, name, allowed))

    async def _told_before(self, job_id: str) -> set[tuple[str, str, float]]:
        """By whoever led before."""
        told, after = set(), 0
        while events := await self._store.events(job_id, after, _PAGE):
            after = events[-1].number
            for event in events:
                if event.kind == "budget":
                    words = msgspec.json.decode(event.data)
                    told.add((words["state"], words["budget"], float(words["allowed"])))
        return told


def spending(use: Usage, limits: BudgetLimits) -> Iterator[tuple[str, float, float]]:
    """Name, used and allowed of each budget that is set."""
    residential = sum(use.bytes_by_class.get(name, 0) for name in _RESIDENTIAL)
    used = {
        "requests": float(use.requests),
        "megabytes": use.bytes_received / _MEGABYTE,
        "residential_megabytes": residential / _MEGABYTE,
        "seconds": use.wall_ms / 1000,
    }
    for name, amount in used.items():
        if (allowed := getattr(limits, name)) is not None:
            yield name, amount, float(allowed)
