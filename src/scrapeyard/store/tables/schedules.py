"""The tables of schedules and webhooks."""

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
)

from scrapeyard.store.tables.content import Sealed
from scrapeyard.store.tables.jobs import JOBS
from scrapeyard.store.tables.runs import ID, METADATA, index_where

_WAITING = "state = 'waiting'"

SCHEDULES = Table(
    "schedules",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("name", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("template", Sealed("schedules.template"), nullable=False),
    Column("cron", Text, nullable=False),
    Column("every_seconds", Double),
    Column("time_zone", Text, nullable=False),
    Column("jitter_seconds", Double, nullable=False),
    Column("overlap", Text, nullable=False),
    Column("missed", Text, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("anchor", Double, nullable=False),
    Column("version", Integer, nullable=False),
    Column("next_due", Double),
    Column("next_at", Double),
    Column("last_due", Double),
    Column("last_subject", Text, nullable=False),
    Column("owner", Text, nullable=False, server_default=""),
    CheckConstraint("target IN ('job', 'scrape')", name="schedules_target"),
    CheckConstraint("overlap IN ('skip', 'queue', 'cancel_previous')", name="schedules_overlap"),
    CheckConstraint("missed IN ('skip', 'run_once', 'run_all')", name="schedules_missed"),
    CheckConstraint("(cron <> '') = (every_seconds IS NULL)", name="schedules_when"),
    CheckConstraint("every_seconds > 0 AND jitter_seconds >= 0", name="schedules_seconds"),
    CheckConstraint("(next_due IS NULL) = (next_at IS NULL)", name="schedules_next"),
    CheckConstraint("NOT paused OR next_due IS NULL", name="schedules_paused"),
    index_where("next_at IS NOT NULL", "schedules_due", "next_at"),
    Index("schedules_by_owner", "owner", "id"),
)

FIRINGS = Table(
    "firings",
    METADATA,
    Column("schedule_id", ID, ForeignKey("schedules.id", ondelete="CASCADE"), primary_key=True),
    Column("due_at", Double, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("settled_at", Double),
    Column("holder", Text, nullable=False),
    Column("lease_until", Double),
    CheckConstraint("kind IN ('scheduled', 'manual')", name="firings_kind"),
    CheckConstraint("state IN ('waiting', 'started', 'skipped', 'failed', 'missed')", name="firings_state"),
    CheckConstraint("(state = 'waiting') = (settled_at IS NULL)", name="firings_settled_at"),
    CheckConstraint("(state = 'started') = (subject <> '')", name="firings_subject"),
    CheckConstraint("state = 'waiting' OR lease_until IS NULL", name="firings_lease"),
    index_where(_WAITING, "firings_waiting", "due_at"),
)

DELIVERIES = Table(
    "webhook_deliveries",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("subject", ID, nullable=False),
    Column("event", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("body", Sealed("webhook_deliveries.body"), nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("next_at", Double),
    Column("give_up_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("log", Sealed("webhook_deliveries.log"), nullable=False),
    Column("holder", Text, nullable=False),
    Column("lease_until", Double),
    Column("owner", Text, nullable=False, server_default=""),
    CheckConstraint("state IN ('waiting', 'delivered', 'failed')", name="webhook_deliveries_state"),
    CheckConstraint("(state = 'waiting') = (next_at IS NOT NULL)", name="webhook_deliveries_next_at"),
    CheckConstraint("(state = 'waiting') = (finished_at IS NULL)", name="webhook_deliveries_finished_at"),
    CheckConstraint("state = 'waiting' OR lease_until IS NULL", name="webhook_deliveries_lease"),
    CheckConstraint("attempts >= 0", name="webhook_deliveries_attempts"),
    index_where(_WAITING, "webhook_deliveries_due", "next_at"),
    Index("webhook_deliveries_by_subject", "subject", "id"),
    Index("webhook_deliveries_by_owner", "owner", "id"),
    Index("webhook_deliveries_by_state", "state", "id"),
    Index("webhook_deliveries_by_finished_at", "finished_at"),
)

MARKS = Table(
    "webhook_marks",
    METADATA,
    Column("job_id", ID, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("events", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("finished_at", Double),
)

RUN_WATCHES = Table(
    "run_watches",
    METADATA,
    Column("run_id", ID, primary_key=True),
    Column("webhook", LargeBinary, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("run_watches_by_created_at", "created_at"),
)

WEBHOOK_JOBS = index_where("webhook IS NOT NULL", "jobs_with_webhook", JOBS.c.number)
