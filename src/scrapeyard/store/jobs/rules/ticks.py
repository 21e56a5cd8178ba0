"""When a job gets a point of how it stood: fewer as it gets longer. The same on every database."""

from typing import Final

from scrapeyard.model.job import Counts, JobStatus

TICK_SECONDS: Final = 5.0
MAX_POINTS: Final = 500
SAMPLED: Final = tuple(
    status.value for status in (JobStatus.CREATING, JobStatus.RUNNING, JobStatus.CANCELLING, JobStatus.FINISHING)
)
"""Statuses of jobs that get points."""
COPIED: Final = (*Counts.__struct_fields__, "use")
"""Columns of a job that a point copies."""


def ticks_apart(age: float) -> int:
    """Ticks from one point to the next: 1, and doubled whenever a job of this age would have more than MAX_POINTS."""
    step = 1
    while age >= MAX_POINTS * TICK_SECONDS * step:
        step *= 2
    return step


def tick_of(age: float) -> int:
    """The tick of a point that is taken at this age of the job."""
    tick = int(age / TICK_SECONDS)
    return tick - tick % ticks_apart(age)
