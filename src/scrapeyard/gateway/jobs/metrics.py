"""`/api/jobs/{job_id}/metrics`: how a job went over time, as series of numbers."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Annotated, Literal, get_args

from fastapi import APIRouter, Query
from msgspec import Meta, Struct

from scrapeyard.gateway.auth.owned import JobId
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.model.instants import instant
from scrapeyard.model.job import Counts, Job
from scrapeyard.store.ports.jobs import JobPoint

MetricName = Literal[
    "items",
    "items_per_second",
    "requests",
    "bytes_received",
    "bytes",
    "bytes_per_second",
    "solver_calls",
    "solver_successes",
    "flaresolverr_success_rate",
]


class MetricPoint(Struct, frozen=True, kw_only=True):
    """A value at a time."""

    timestamp: str
    value: float


class MetricSeries(Struct, frozen=True, kw_only=True):
    """One number over time."""

    name: MetricName
    labels: Annotated[dict[str, str], Meta(description="`state` of `items`, `class` of `bytes`; else none.")]
    points: list[MetricPoint]


class JobMetricsDocument(Struct, frozen=True, kw_only=True):
    """How a job went over time."""

    job_id: str
    series: list[MetricSeries]


_Names = Annotated[
    list[MetricName] | None,
    Query(max_length=len(get_args(MetricName)), description="Only these; may be repeated. Default: all."),
]
router = APIRouter(tags=["jobs"], route_class=AnswerRoute)


@router.get("/api/jobs/{job_id}/metrics", summary="See how a job went over time", responses=refusals(404, 422, 503))
async def get_metrics(gateway: GatewayDep, job_id: JobId, name: _Names = None) -> JobMetricsDocument:
    """About 500 points at most: every 5 seconds, and half as many whenever the job gets longer than that. The last is
    the job as it stands. Counts are sums since it began; rates are those since the point before."""
    job = await gateway.jobs.control.get(job_id)
    points = [*await gateway.jobs.store.points.of_job(job_id), _now(job, gateway.jobs.clock())]
    wanted = frozenset(name or get_args(MetricName))
    return JobMetricsDocument(job_id=job_id, series=[each for each in _series(points) if each.name in wanted])


def _now(job: Job, now: float) -> JobPoint:
    return JobPoint(at=job.finished_at or now, counts=job.counts, use=job.use)


def _series(points: Sequence[JobPoint]) -> Iterator[MetricSeries]:
    for state in Counts.__struct_fields__[1:]:
        yield _of("items", points, attrgetter(f"counts.{state}"), state=state)
    yield _rate("items_per_second", points, lambda point: point.counts.success + point.counts.error)
    yield _of("requests", points, lambda point: point.use.requests)
    yield _of("bytes_received", points, lambda point: point.use.bytes_received)
    for kind in sorted(points[-1].use.bytes_by_class):
        yield _of("bytes", points, _through(kind), **{"class": kind})
    yield _rate("bytes_per_second", points, lambda point: point.use.bytes_received)
    yield _of("solver_calls", points, lambda point: point.use.solver_calls)
    yield _of("solver_successes", points, lambda point: point.use.solver_successes)
    yield _of("flaresolverr_success_rate", points, lambda point: point.use.solver_success_rate)


def _through(kind: str) -> Callable[[JobPoint], float]:
    return lambda point: point.use.bytes_by_class.get(kind, 0)


def _of(
    name: MetricName, points: Sequence[JobPoint], value: Callable[[JobPoint], float | None], **labels: str
) -> MetricSeries:
    """Points without a value are left out."""
    valued = [(point.at, value(point)) for point in points]
    shown = [MetricPoint(timestamp=instant(at), value=number) for at, number in valued if number is not None]
    return MetricSeries(name=name, labels=labels, points=shown)


def _rate(name: MetricName, points: Sequence[JobPoint], value: Callable[[JobPoint], float]) -> MetricSeries:
    """Per second since the point before. A redrive takes back what had ended, which is no rate."""
    rates = [
        MetricPoint(timestamp=instant(new.at), value=round(max(0.0, value(new) - value(old)) / (new.at - old.at), 3))
        for old, new in pairwise(points)
        if new.at > old.at
    ]
    return MetricSeries(name=name, labels={}, points=rates)
