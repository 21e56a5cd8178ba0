"""The speed of jobs."""

from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from scrapeyard.model.job import Job, JobStatus

REMEMBERED = 2000
"""Number of jobs whose samples are remembered."""
APART_SECONDS = 1.0
"""Samples closer together than this are not compared."""
FRESH_SECONDS = 60.0
"""An older sample is discarded."""
_GOING = frozenset({JobStatus.CREATING, JobStatus.RUNNING})


class JobPace(Struct, frozen=True, kw_only=True):
    """Speed of a job."""

    items_per_second: float | None = None
    """Recent rate of ended items; None if nothing was handed out yet, or the job is not running."""
    eta_seconds: float | None = None
    """Estimated time until the last item ends; None if it cannot be estimated."""


class _Look(Struct, frozen=True):
    at: float
    done: int


class JobRates:
    """Measures the speed of jobs from samples. With only one sample, it uses the average since the first item."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._looks: OrderedDict[str, tuple[_Look, _Look]] = OrderedDict()
        """By job: the sample to compare with, and the newest."""

    def pace(self, job: Job) -> JobPace:
        """The speed of a job that was read just now."""
        if job.status not in _GOING or job.started_at is None:
            self._looks.pop(job.id, None)
            return JobPace()
        now, done = self._clock(), job.counts.success + job.counts.error
        base = self._base(job.id, _Look(now, done)) or _Look(job.started_at, 0)
        rate = max(0.0, (done - base.done) / max(now - base.at, 0.001))
        left = job.counts.total - job.counts.done
        known = rate > 0 and not job.reading
        return JobPace(items_per_second=round(rate, 3), eta_seconds=round(left / rate, 1) if known else None)

    def _base(self, job_id: str, newest: _Look) -> _Look | None:
        """The sample to compare the newest with; None if none is recent and old enough."""
        before, last = self._looks.pop(job_id, (newest, newest))
        if newest.at - before.at > FRESH_SECONDS or newest.done < before.done:
            before, last = newest, newest
        elif newest.at - last.at >= APART_SECONDS and last.at - before.at >= 5 * APART_SECONDS:
            before = last
        if newest.at - last.at >= APART_SECONDS:
            last = newest
        self._looks[job_id] = (before, last)
        if len(self._looks) > REMEMBERED:
            self._looks.popitem(last=False)
        return before if newest.at - before.at >= APART_SECONDS else None
