"""How quickly jobs go, as far as this gateway has looked."""

from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from scrapeyard.model.job import Job, JobStatus

REMEMBERED = 2000
"""Jobs looked at last."""
APART_SECONDS = 1.0
"""Two looks nearer than this tell nothing."""
FRESH_SECONDS = 60.0
"""A look that is older tells how it was, not how it is."""
_GOING = frozenset({JobStatus.CREATING, JobStatus.RUNNING})


class Pace(Struct, frozen=True, kw_only=True):
    """How quickly a job goes."""

    items_per_second: float | None = None
    """Ended lately; None: nothing was handed out yet, or it does not run."""
    eta_seconds: float | None = None
    """Until the last item ends, if it goes on like this; None: that cannot be told."""


class _Look(Struct, frozen=True):
    at: float
    done: int


class JobRates:
    """Compares looks at a job. With only one, the average since its first item was handed out has to do."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._looks: OrderedDict[str, tuple[_Look, _Look]] = OrderedDict()
        """By job: the look to compare with, and the newest."""

    def pace(self, job: Job) -> Pace:
        """How a job goes, which was read just now."""
        if job.status not in _GOING or job.started_at is None:
            self._looks.pop(job.id, None)
            return Pace()
        now, done = self._clock(), job.counts.success + job.counts.error
        base = self._base(job.id, _Look(now, done)) or _Look(job.started_at, 0)
        rate = max(0.0, (done - base.done) / max(now - base.at, 0.001))
        left = job.counts.total - job.counts.done
        known = rate > 0 and not job.reading
        return Pace(items_per_second=round(rate, 3), eta_seconds=round(left / rate, 1) if known else None)

    def _base(self, job_id: str, newest: _Look) -> _Look | None:
        """What the newest look is compared with; None: nothing that is fresh and old enough."""
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
