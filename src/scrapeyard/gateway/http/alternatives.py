"""Other names of the properties of answers, beside ours: the same values, for clients that know them by these names."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Meta, Struct

from scrapeyard.model import Run, RunError, Usage
from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.job import Job
from scrapeyard.model.schedule import Schedule

MEGABYTE = 2**20
_RESIDENTIAL = ("residential", "unlocker")


def also(ours: str) -> Meta:
    """The description of a property that is another name of ours."""
    return Meta(description=f"Another name of `{ours}`.", extra_json_schema={"deprecated": True})


class _OnlyUrl(Struct, frozen=True):
    url: Any = None


_read_url = msgspec.json.Decoder(_OnlyUrl).decode


def url_in(given: bytes | msgspec.Raw) -> str | None:
    """The address in an input; None if it has none."""
    url = _read_url(given).url
    return url if isinstance(url, str) else None


def _message(error: RunError | None) -> str | None:
    return None if error is None else error.message


def _changed_at(noun: Run | Job) -> float:
    """When it was created, started or finished, whichever was last."""
    return noun.finished_at or noun.started_at or noun.created_at


def _residential(use: Usage) -> float:
    return _megabytes(sum(use.bytes_by_class.get(name, 0) for name in _RESIDENTIAL))


def _megabytes(size: int) -> float:
    return round(size / MEGABYTE, 2)


def _download(export: Export) -> str | None:
    return f"/api/exports/{export.id}/download" if export.state is ExportState.DONE else None


def _scheduled_url(schedule: Schedule) -> str | None:
    return url_in(schedule.template) if schedule.target == "scrape" else None


Values = Mapping[str, Callable[[Any], Any]]
RUN: Values = {
    "url": lambda run: url_in(run.input),
    "error_message": lambda run: _message(run.error),
    "updated_at": _changed_at,
}
JOB: Values = {
    "total_urls": lambda job: job.counts.total,
    "success_urls": lambda job: job.counts.success,
    "failed_urls": lambda job: job.counts.error,
    "traffic_mb_used": lambda job: _megabytes(job.use.bytes_received),
    "residential_mb_used": lambda job: _residential(job.use),
    "error_message": lambda job: _message(job.error),
    "updated_at": _changed_at,
}
EXPORT: Values = {"url": _download, "size_bytes": lambda export: export.bytes}
SCHEDULE: Values = {
    "url": _scheduled_url,
    "interval": lambda schedule: schedule.every_seconds,
    "enabled": lambda schedule: not schedule.paused,
    "next_run": lambda schedule: schedule.next_at,
}
"""For each noun: the property, and its value. Times are Unix seconds."""
TIMES = frozenset({"updated_at", "next_run"})


def alternatives(values: Values, noun: Any, instant: Callable[[Any], Any]) -> dict[str, Any]:
    """The properties of a noun under other names; `instant` shows a time."""
    return {name: instant(value(noun)) if name in TIMES else value(noun) for name, value in values.items()}
