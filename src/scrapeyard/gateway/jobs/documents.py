"""Jobs, items and exports as the API shows them, and the speed of jobs."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from scrapeyard.gateway.runs.documents import instant
from scrapeyard.inputs.spool import ListSummary
from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.job import Item, Job, JobStatus

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


_NULL = Raw(b"null")


def job_document(job: Job, pace: JobPace) -> dict[str, Any]:
    """A job, with its speed."""
    scraper_id, _, version = job.pinned.partition("@")
    return {
        "id": job.id,
        "status": job.status,
        "name": job.name,
        "owner": job.owner,
        "scraper": scraper_id,
        "version": version or None,
        "asked_for": job.scraper,
        "lane": job.lane,
        "priority": job.priority,
        "counts": job.counts,
        "progress": _share(job),
        "items_per_second": pace.items_per_second,
        "eta_seconds": pace.eta_seconds,
        "reading": job.reading,
        "skipped_rows": job.skipped_rows,
        "source": job.source,
        "policy": job.policy,
        "breaker": _breaker(job),
        "pause_reason": job.pause_reason,
        "error": job.error,
        "usage": job.use,
        "exports": job.exports,
        "files_pending": job.files_pending or job.status is JobStatus.FINISHING,
        "webhook": _webhook(job),
        "schedule_id": job.schedule_id or None,
        "created_at": instant(job.created_at),
        "started_at": instant(job.started_at),
        "finished_at": instant(job.finished_at),
        "links": job_links(job.id),
    }


def created_document(job: Job, pace: JobPace, summary: ListSummary | None) -> dict[str, Any]:
    """A job just created; `rows` describes the list that came with it."""
    rows = None
    if summary is not None:
        rows = {"taken": summary.rows, "bad": summary.bad, "first_bad": bad_rows(summary)}
    return {**job_document(job, pace), "rows": rows}


def bad_rows(summary: ListSummary) -> list[dict[str, Any]]:
    """The first rows of a list that could not be used."""
    return [{"line": row.line, "reason": row.reason, "file": row.file} for row in summary.first]


def job_links(job_id: str) -> dict[str, str]:
    """Links to the rest of a job."""
    here = f"/api/jobs/{job_id}"
    return {"self": here, **{name: f"{here}/{name}" for name in ("items", "results", "exports", "stream", "ws")}}


def item_document(job_id: str, item: Item, *, whole: bool = True) -> dict[str, Any]:
    """An item; with `whole` its logs too."""
    shown = {
        "id": item.key,
        "number": item.seq,
        "status": item.status,
        "input": item.input,
        "attempt": item.attempt,
        "not_before": instant(item.not_before),
        "exit_reason": item.exit_reason,
        "error": item.error,
        "site": item.site or None,
        "usage": item.usage,
        "started_at": instant(item.started_at),
        "finished_at": instant(item.finished_at),
        "result": item.result if item.result is not None else _NULL,
        "result_bytes": item.result_bytes,
        "artifacts": [artifact_document(job_id, item.key, name, kind, size) for name, kind, size in artifacts_of(item)],
        "links": {"self": item_place(job_id, item.key), "job": f"/api/jobs/{job_id}"},
    }
    return shown | {"logs": item.logs} if whole else shown


def artifacts_of(item: Item) -> list[tuple[str, str, int]]:
    """Name, content type and size of everything that can be downloaded of an item."""
    found = [(kept.name, kept.content_type, kept.size) for kept in item.artifacts]
    has_data = item.result is not None or bool(item.result_key)
    if has_data and not any(name == "data.json" for name, _, _ in found):
        found.insert(0, ("data.json", "application/json", item.result_bytes or _size(item.result)))
    return found


def artifact_document(job_id: str, key: str, name: str, content_type: str, size: int) -> dict[str, Any]:
    """One artifact of an item, without its blob key."""
    href = f"{item_place(job_id, key)}/download?artifact={quote(name, safe='')}"
    return {"name": name, "content_type": content_type, "size": size, "href": href}


def item_place(job_id: str, key: str) -> str:
    """URL of an item."""
    return f"/api/jobs/{job_id}/items/{quote(key, safe='')}"


def export_document(export: Export) -> dict[str, Any]:
    """An export, without its blob key."""
    here = f"/api/exports/{export.id}"
    download = f"{here}/download" if export.state is ExportState.DONE else None
    return {
        "id": export.id,
        "job_id": export.job_id,
        "type": export.wish.type,
        "format": export.wish.format,
        "bom": export.wish.bom,
        "state": export.state,
        "progress": round(export.progress, 4),
        "rows": export.rows,
        "bytes": export.bytes,
        "sha256": export.digest or None,
        "filename": export.name,
        "error": export.error or None,
        "created_at": instant(export.created_at),
        "started_at": instant(export.started_at),
        "finished_at": instant(export.finished_at),
        "links": {"self": here, "job": f"/api/jobs/{export.job_id}", "download": download},
    }


def _share(job: Job) -> float:
    """Share of the items known so far that have ended."""
    return round(job.counts.done / job.counts.total, 4) if job.counts.total else 0.0


def _breaker(job: Job) -> dict[str, Any]:
    state = job.breaker
    until = None
    if state.state == "open" and state.opened_at is not None:
        until = instant(state.opened_at + job.policy.breaker.cooldown_seconds)
    return {
        "state": state.state,
        "reason": state.reason,
        "in_a_row": state.in_a_row,
        "recent_failures": state.recent.count("e"),
        "recent": len(state.recent),
        "trips": state.trips,
        "opened_at": instant(state.opened_at),
        "probes_at": until,
    }


def _webhook(job: Job) -> dict[str, Any] | None:
    """The webhook without its secret."""
    if job.webhook is None:
        return None
    kept: dict[str, Any] = msgspec.json.decode(job.webhook)
    return {"url": kept.get("url"), "events": kept.get("events"), "signed": bool(kept.get("secret"))}


def _size(raw: Raw | None) -> int:
    return 0 if raw is None else len(bytes(raw))
