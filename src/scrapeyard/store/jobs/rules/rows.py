"""A job as a row, and back."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Raw, Struct, json, msgpack
from msgspec.structs import asdict

from scrapeyard.model import Priority, RunError, Usage
from scrapeyard.model.export import SinkDelivery, SinkState
from scrapeyard.model.job import ArchiveState, BreakerState, Counts, ExportWish, ItemOutcome, Job, JobPolicy, JobStatus
from scrapeyard.store.runs.rows import packed

Row = dict[str, Any]
Fields = Mapping[Any, Any]
"""A row as the database returns it, or a modified copy."""

_COUNTED: Final = Counts.__struct_fields__
_PLAIN: Final = (
    "id",
    "name",
    "owner",
    "scraper",
    "lane",
    "cursor",
    "created_at",
    "started_at",
    "finished_at",
    "skipped_rows",
    "redrives",
    "pause_reason",
    "schedule_id",
    "traceparent",
    "profile",
    "archive_key",
    "deadline",
)
"""Fields stored unchanged as columns."""

_POLICY: Final = json.Decoder(JobPolicy)
_EXPORTS: Final = json.Decoder(tuple[ExportWish, ...])
_SOURCE: Final = json.Decoder(dict[str, Any])
_ERROR: Final = json.Decoder(RunError)
_BREAKER: Final = json.Decoder(BreakerState)
_USAGE: Final = json.Decoder(Usage)
_SINKS: Final = json.Decoder(tuple[str, ...])
_SWEPT: Final = json.Decoder(dict[str, float])
_STATUSES: Final = json.Decoder(dict[int, int])


class _Used(Struct, frozen=True, array_like=True):
    """Usage, and how the last page was had, without field names, since millions of rows have one. Append new fields at
    the end."""

    wall_ms: float = 0.0
    cpu_ms: float = 0.0
    memory_mb: float = 0.0
    fetches: int = 0
    requests: int = 0
    bytes_received: int = 0
    bytes_by_class: dict[str, int] = {}
    output_bytes: int = 0
    log_bytes: int = 0
    records: int = 0
    strategy: str = ""
    proxy: str = ""
    solver_calls: int = 0
    solver_successes: int = 0


_USED: Final = msgpack.Decoder(_Used)
_PACK: Final = msgpack.Encoder()
_NO_USAGE: Final = Usage()


def source_values(source: Mapping[str, Any]) -> Row:
    """The columns of a source; its domain has one of its own, since jobs are listed by it."""
    return {"source": json.encode(source), "domain": source.get("domain", "")}


def job_row(job: Job) -> Row:
    """A new job, without items."""
    return {
        "archive": job.archive.value,
        **{name: getattr(job, name) for name in _PLAIN},
        **dict.fromkeys(_COUNTED, 0),
        "status": job.status.value,
        "scraper_id": job.scraper.partition("@")[0],
        "pinned": pinned_text(job),
        "priority": job.priority.value,
        "cursor": 0,
        "reading": job.reading,
        "unread": False,
        "kill": False,
        "deleting": False,
        "files_pending": False,
        "breaker_until": None,
        "events": 0,
        "failures_told": 0,
        "policy": json.encode(job.policy),
        "exports": json.encode(job.exports),
        "sinks": json.encode(job.sinks) if job.sinks else None,
        "webhook": None if job.webhook is None else bytes(job.webhook),
        **source_values(job.source),
        "fault": packed(job.error),
        "breaker": json.encode(job.breaker),
        "use": json.encode(job.use),
        "http_statuses": None,
        "swept": None,
        "sweeping": False,
        "sweep_at": 0.0,
    }


def pinned_text(job: Job) -> str:
    """The column `pinned`: the version, then # and the digest if the job has one."""
    return f"{job.pinned}#{job.digest}" if job.digest else job.pinned


def to_job(row: Fields) -> Job:
    """A job from its row."""
    pinned, _, digest = row["pinned"].partition("#")
    return Job(
        pinned=pinned,
        digest=digest,
        status=JobStatus(row["status"]),
        priority=Priority(row["priority"]),
        policy=to_policy(row),
        exports=_EXPORTS.decode(row["exports"]),
        sinks=to_sinks(row),
        webhook=None if row["webhook"] is None else Raw(row["webhook"]),
        source=_SOURCE.decode(row["source"]),
        counts=to_counts(row),
        error=_ERROR.decode(row["fault"]) if row["fault"] else None,
        breaker=to_breaker(row),
        use=to_use(row),
        http_statuses=to_statuses(row),
        reading=bool(row["reading"]),
        unread=bool(row["unread"]),
        kill=bool(row["kill"]),
        deleting=bool(row["deleting"]),
        files_pending=bool(row["files_pending"]),
        archive=ArchiveState(row["archive"]),
        swept=to_swept(row),
        sweeping=bool(row["sweeping"]),
        **{name: row[name] for name in _PLAIN},
    )


def to_sinks(row: Fields) -> tuple[str, ...]:
    """The names of a job's sinks."""
    return _SINKS.decode(row["sinks"]) if row["sinks"] else ()


def new_sink_row(job_id: str, sink: str, now: float) -> Row:
    """A delivery that begins now."""
    row = asdict(SinkDelivery(job_id=job_id, sink=sink, created_at=now, due_at=now))
    return row | {"state": SinkState.ACTIVE.value}


def to_swept(row: Fields) -> dict[str, float]:
    """What retention removed of a job, by kind."""
    return _SWEPT.decode(row["swept"]) if row["swept"] else {}


def to_counts(row: Fields) -> Counts:
    """The counters of a job's row."""
    return Counts(**{name: row[name] for name in _COUNTED})


def to_policy(row: Fields) -> JobPolicy:
    """The policy of a job's row."""
    return _POLICY.decode(row["policy"])


def to_breaker(row: Fields) -> BreakerState:
    """The breaker of a job's row."""
    return _BREAKER.decode(row["breaker"])


def to_use(row: Fields) -> Usage:
    """What the items of a job's row have used."""
    return _USAGE.decode(row["use"])


def to_statuses(row: Fields) -> dict[int, int]:
    """Final items of a job's row by HTTP status."""
    return _STATUSES.decode(row["http_statuses"]) if row["http_statuses"] else {}


def counted_statuses(row: Fields, statuses: Iterable[int | None], sign: int) -> Row:
    """The column `http_statuses` after items with these statuses ended (`sign` 1) or run again (-1). Empty if none of
    them has a status."""
    changed = Counter(status for status in statuses if status is not None)
    if not changed:
        return {}
    known = to_statuses(row)
    known |= {status: known.get(status, 0) + sign * count for status, count in changed.items()}
    return {"http_statuses": json.encode({status: count for status, count in sorted(known.items()) if count})}


def pack_used(outcome: ItemOutcome) -> bytes | None:
    """What one item used and how its page was had, packed; None if it used nothing."""
    usage = outcome.usage
    if usage == _NO_USAGE and not outcome.strategy:
        return None
    return _PACK.encode(
        (
            usage.wall_ms,
            usage.cpu_ms,
            usage.memory_mb,
            usage.fetches,
            usage.requests,
            usage.bytes_received,
            usage.bytes_by_class,
            usage.output_bytes,
            usage.log_bytes,
            usage.records,
            outcome.strategy,
            outcome.proxy,
            usage.solver_calls,
            usage.solver_successes,
        )
    )


def unpack_used(value: bytes | None) -> tuple[Usage, str, str]:
    """Unpack one item's usage, and the strategy and proxy of its last page."""
    if value is None:
        return _NO_USAGE, "", ""
    used = _USED.decode(value)
    usage = Usage(
        wall_ms=used.wall_ms,
        cpu_ms=used.cpu_ms,
        memory_mb=used.memory_mb,
        fetches=used.fetches,
        requests=used.requests,
        bytes_received=used.bytes_received,
        bytes_by_class=used.bytes_by_class,
        output_bytes=used.output_bytes,
        log_bytes=used.log_bytes,
        records=used.records,
        solver_calls=used.solver_calls,
        solver_successes=used.solver_successes,
    )
    return usage, used.strategy, used.proxy
