"""The tables of jobs. docs/design/jobs.md explains which row is written when.

`job` is the number of a job's row: ids are long, and millions of rows carry it. Only batches, blocks and events refer
to the job by a foreign key, since a check for each item would cost more than its row; `JobStore.delete` removes the
others.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from scrapeyard.store.tables.content import Sealed, SealedText
from scrapeyard.store.tables.runs import ID, METADATA, index_where

NUMBER = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite auto-increments only columns of type INTEGER."""

_FINAL = "status IN ('completed', 'cancelled', 'failed')"
_STOPPED = "status IN ('cancelling', 'cancelled', 'failed')"

JOBS = Table(
    "jobs",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", ID, nullable=False, unique=True),
    Column("status", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("scraper", Text, nullable=False),
    Column("scraper_id", Text, nullable=False),
    Column("pinned", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("priority", Text, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("pending", BigInteger, nullable=False),
    Column("queued", BigInteger, nullable=False),
    Column("in_progress", BigInteger, nullable=False),
    Column("success", BigInteger, nullable=False),
    Column("error", BigInteger, nullable=False),
    Column("cancelled", BigInteger, nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("deadline", Double),
    Column("reading", Boolean, nullable=False),
    Column("unread", Boolean, nullable=False, server_default=false()),
    Column("kill", Boolean, nullable=False),
    Column("deleting", Boolean, nullable=False),
    Column("files_pending", Boolean, nullable=False, server_default=false()),
    Column("skipped_rows", BigInteger, nullable=False),
    Column("redrives", BigInteger, nullable=False, server_default="0"),
    Column("breaker_until", Double),
    Column("pause_reason", Text, nullable=False),
    Column("schedule_id", Text, nullable=False),
    Column("profile", Text, nullable=False, server_default=""),
    Column("traceparent", Text, nullable=False, server_default=""),
    Column("events", BigInteger, nullable=False),
    Column("failures_told", Integer, nullable=False),
    Column("policy", LargeBinary, nullable=False),
    Column("exports", LargeBinary, nullable=False),
    Column("webhook", LargeBinary),
    Column("source", Sealed("jobs.source"), nullable=False),
    Column("fault", Sealed("jobs.fault")),
    Column("breaker", LargeBinary, nullable=False),
    Column("use", LargeBinary, nullable=False),
    Column("http_statuses", LargeBinary),
    Column("domain", Text, nullable=False, server_default=""),
    Column("archive", Text, nullable=False, server_default=""),
    Column("archive_key", Text, nullable=False, server_default=""),
    Column("swept", LargeBinary),
    Column("sweeping", Boolean, nullable=False, server_default=false()),
    Column("sweep_at", Double, nullable=False, server_default="0"),
    CheckConstraint(
        "status IN ('creating', 'running', 'paused', 'cancelling', 'finishing', 'completed', 'cancelled', 'failed')",
        name="jobs_status",
    ),
    CheckConstraint("priority IN ('high', 'normal', 'low')", name="jobs_priority"),
    CheckConstraint(
        "total = pending + queued + in_progress + success + error + cancelled"
        " AND pending >= 0 AND queued >= 0 AND in_progress >= 0 AND success >= 0 AND error >= 0 AND cancelled >= 0",
        name="jobs_counts",
    ),
    CheckConstraint("cursor >= 0 AND cursor <= total", name="jobs_cursor"),
    CheckConstraint(f"({_FINAL}) = (finished_at IS NOT NULL)", name="jobs_finished_at"),
    CheckConstraint(f"NOT ({_STOPPED}) OR pending = 0", name="jobs_stopped"),
    CheckConstraint(f"({_STOPPED}) OR (cancelled = 0 AND NOT kill)", name="jobs_going"),
    CheckConstraint(
        "status NOT IN ('finishing', 'completed', 'cancelled') OR pending + queued + in_progress = 0", name="jobs_done"
    ),
    CheckConstraint("status = 'paused' OR breaker_until IS NULL", name="jobs_breaker_until"),
    CheckConstraint(f"NOT deleting OR ({_FINAL})", name="jobs_deleting"),
    CheckConstraint("NOT files_pending OR status = 'cancelled'", name="jobs_files_pending"),
    Index("jobs_by_status", "status", "number"),
    Index("jobs_by_scraper", "scraper_id", "id"),
    Index("jobs_by_owner", "owner", "number"),
    Index("jobs_by_domain", "domain", "number"),
    Index("jobs_by_schedule", "schedule_id", "id"),
    Index("jobs_by_finished_at", "finished_at"),
    index_where("files_pending", "jobs_with_files_pending", "id"),
    index_where("finished_at IS NOT NULL", "jobs_to_sweep", "sweep_at"),
    sqlite_autoincrement=True,
)

ITEMS = Table(
    "items",
    METADATA,
    Column("job", NUMBER, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("key", ID, nullable=False),
    Column("input", Sealed("items.input"), nullable=False),
    Column("depth", Integer),
    Column("referrer", SealedText("items.referrer")),
    UniqueConstraint("job", "key", name="items_by_key"),
    CheckConstraint("seq >= 0", name="items_seq"),
    sqlite_with_rowid=False,
)

BLOCKS = Table(
    "item_blocks",
    METADATA,
    Column("job", NUMBER, ForeignKey("jobs.number"), primary_key=True, autoincrement=False),
    Column("source", ID, primary_key=True),
    Column("block", BigInteger, primary_key=True, autoincrement=False),
    Column("added", Integer, nullable=False),
    sqlite_with_rowid=False,
)

BATCHES = Table(
    "batches",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("job", NUMBER, ForeignKey("jobs.number"), nullable=False),
    Column("state", Text, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("again", LargeBinary),
    Column("left", Integer, nullable=False),
    Column("part", Integer, nullable=False),
    Column("done", LargeBinary, nullable=False),
    Column("lane", Text, nullable=False),
    Column("priority", Text, nullable=False),
    Column("queued_at", Double, nullable=False),
    Column("worker_id", Text, nullable=False),
    Column("lease_until", Double),
    Column("begun", Integer),
    Column("lost_before", Boolean, nullable=False, server_default=false()),
    CheckConstraint("state IN ('queued', 'running')", name="batches_state"),
    CheckConstraint("priority IN ('high', 'normal', 'low')", name="batches_priority"),
    CheckConstraint('"left" > 0 AND part >= 0', name="batches_left"),
    CheckConstraint("(again IS NULL) = (first <= last)", name="batches_items"),
    CheckConstraint("(state = 'running') = (lease_until IS NOT NULL)", name="batches_lease"),
    CheckConstraint("(state = 'running') = (worker_id <> '')", name="batches_worker"),
    CheckConstraint("begun >= 0", name="batches_begun"),
    Index("batches_by_job", "job"),
    index_where("state = 'queued'", "batches_published", "queued_at"),
    index_where("state = 'running'", "batches_leased", "lease_until"),
)

WAITING = Table(
    "waiting",
    METADATA,
    Column("job", NUMBER, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("not_before", Double, nullable=False),
    Column("lost_before", Boolean, nullable=False, server_default=false()),
    CheckConstraint("attempt >= 1", name="waiting_attempt"),
    Index("waiting_due", "job", "not_before", "seq"),
    sqlite_with_rowid=False,
)

OUTCOMES = Table(
    "outcomes",
    METADATA,
    Column("job", NUMBER, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("ok", Boolean, nullable=False),
    Column("exit_reason", Text, nullable=False),
    Column("site", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double, nullable=False),
    Column("result_key", Text, nullable=False),
    Column("result_bytes", BigInteger, nullable=False),
    Column("result", Sealed("outcomes.result")),
    Column("error", Sealed("outcomes.error")),
    Column("usage", LargeBinary),
    Column("artifacts", Sealed("outcomes.artifacts")),
    Column("logs", Sealed("outcomes.logs")),
    Column("http_status", Integer),
    CheckConstraint("attempt >= 1", name="outcomes_attempt"),
    CheckConstraint("ok = (exit_reason IN ('succeeded', 'gone', 'skipped'))", name="outcomes_ok"),
    CheckConstraint("exit_reason <> 'cancelled'", name="outcomes_cancelled"),
    CheckConstraint("http_status BETWEEN 100 AND 999", name="outcomes_http_status"),
    index_where("ok = false", "outcomes_failed", "job", "seq"),
    index_where("ok = false", "outcomes_failed_by_reason", "job", "exit_reason", "seq"),
    sqlite_with_rowid=False,
)

JOB_EVENTS = Table(
    "job_events",
    METADATA,
    Column("job", NUMBER, ForeignKey("jobs.number"), primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("data", Sealed("job_events.data"), nullable=False),
    sqlite_with_rowid=False,
)

JOB_POINTS = Table(
    "job_points",
    METADATA,
    Column("job", NUMBER, ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("tick", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("pending", BigInteger, nullable=False),
    Column("queued", BigInteger, nullable=False),
    Column("in_progress", BigInteger, nullable=False),
    Column("success", BigInteger, nullable=False),
    Column("error", BigInteger, nullable=False),
    Column("cancelled", BigInteger, nullable=False),
    Column("use", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
