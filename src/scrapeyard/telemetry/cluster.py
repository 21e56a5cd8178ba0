"""What one process knows of the whole cluster: the leading dispatcher reads it now and then, and exports it.

Only the leader does, so each value is there once, however many processes run.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct
from prometheus_client.core import GaugeMetricFamily, Metric

PREFIX = "scrapeyard_"
LANES = 50
"""Maximum lanes told apart; the others are `other`, together."""
OTHER = "other"


class ClusterReading(Struct, frozen=True, kw_only=True):
    """The state of the cluster at one moment."""

    queue: Mapping[tuple[str, str], int]
    """Deliveries that wait, by lane and priority."""
    oldest_seconds: Mapping[str, float]
    """Age of the oldest of them, by lane."""
    work_seconds: Mapping[str, float]
    """Queued work, by lane: how long the workers there would need for it."""
    runs: Mapping[str, int]
    """Runs that are not final, by status."""
    jobs: Mapping[str, int]
    """Jobs that are not final, by status."""
    items: Mapping[str, int]
    """Items of those jobs, by state."""
    workers: Mapping[str, int]
    """`alive` and `draining`."""
    slots: int
    busy: int
    breakers: Mapping[tuple[str, ...], int]
    """Breakers that are not closed, by scope and state."""
    stale_schedules: int
    ended: Mapping[str, int] = {}
    """Runs and items that each worker has ended since its start."""


def example_reading() -> ClusterReading:
    """One with a value for each metric, for the docs."""
    return ClusterReading(
        queue={("default", "high"): 0},
        oldest_seconds={"default": 0.0},
        work_seconds={"default": 0.0},
        runs={"queued": 0},
        jobs={"running": 0},
        items={"pending": 0},
        workers={"alive": 0},
        slots=0,
        busy=0,
        breakers={("site", "open"): 0},
        stale_schedules=0,
    )


def cluster_families(reading: ClusterReading) -> Iterator[Metric]:
    """The reading as metrics."""
    names = _lane_names(reading)
    waiting: dict[tuple[str, ...], float] = {}
    for (lane, priority), count in reading.queue.items():
        key = (names[lane], priority)
        waiting[key] = waiting.get(key, 0) + count
    yield _family("queue_size", "Runs and batches that wait in the queue.", ("lane", "priority"), waiting)
    oldest: dict[tuple[str, ...], float] = {}
    for lane, age in reading.oldest_seconds.items():
        oldest[names[lane],] = max(age, oldest.get((names[lane],), 0.0))
    yield _family("queue_oldest_seconds", "Age of the oldest run or batch in the queue.", ("lane",), oldest)
    work: dict[tuple[str, ...], float] = {}
    for lane, seconds in reading.work_seconds.items():
        work[names[lane],] = max(seconds, work.get((names[lane],), 0.0))
    words = "Queued work: seconds that the workers of the lane need for what waits. Scale by it."
    yield _family("queued_work_seconds", words, ("lane",), work)
    yield _family("runs", "Runs that are not final.", ("status",), _by_one(reading.runs))
    yield _family("jobs", "Jobs that are not final.", ("status",), _by_one(reading.jobs))
    yield _family("job_items", "Items of jobs that are not final.", ("state",), _by_one(reading.items))
    yield _family("workers", "Workers with a fresh heartbeat.", ("state",), _by_one(reading.workers))
    yield _family("slots", "Slots of all workers.", (), {(): reading.slots})
    yield _family("busy_slots", "Slots of all workers that are in use.", (), {(): reading.busy})
    words = "Breakers of sites and jobs that are not closed."
    yield _family("breakers", words, ("scope", "state"), dict(reading.breakers))
    words = "Schedules that should have started something more than five minutes ago."
    yield _family("stale_schedules", words, (), {(): reading.stale_schedules})


def _lane_names(reading: ClusterReading) -> dict[str, str]:
    lanes = sorted({lane for lane, _ in reading.queue} | {*reading.oldest_seconds, *reading.work_seconds})
    return {lane: lane if number < LANES else OTHER for number, lane in enumerate(lanes)}


def _by_one(values: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    return {(name,): value for name, value in values.items()}


def _family(
    name: str, words: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(PREFIX + name, words, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family
