"""Jobs: their items, the batches that travel, what waits, what became of each."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_FINAL = "status IN ('completed', 'cancelled', 'failed')"
_STOPPED = "status IN ('cancelling', 'cancelled', 'failed')"


def upgrade() -> None:
    """Seven tables."""
    _jobs()
    _items()
    _item_blocks()
    _batches()
    _waiting()
    _outcomes()
    _job_events()


def downgrade() -> None:
    """Without them."""
    for name in ("job_events", "outcomes", "waiting", "batches", "item_blocks", "items", "jobs"):
        op.drop_table(name)


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("id", _ID, nullable=False, unique=True),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("scraper", sa.Text, nullable=False),
        sa.Column("scraper_id", sa.Text, nullable=False),
        sa.Column("pinned", sa.Text, nullable=False),
        sa.Column("lane", sa.Text, nullable=False),
        sa.Column("priority", sa.Text, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("pending", sa.BigInteger, nullable=False),
        sa.Column("queued", sa.BigInteger, nullable=False),
        sa.Column("in_progress", sa.BigInteger, nullable=False),
        sa.Column("success", sa.BigInteger, nullable=False),
        sa.Column("error", sa.BigInteger, nullable=False),
        sa.Column("cancelled", sa.BigInteger, nullable=False),
        sa.Column("cursor", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("reading", sa.Boolean, nullable=False),
        sa.Column("kill", sa.Boolean, nullable=False),
        sa.Column("deleting", sa.Boolean, nullable=False),
        sa.Column("skipped_rows", sa.BigInteger, nullable=False),
        sa.Column("breaker_until", sa.Double),
        sa.Column("pause_reason", sa.Text, nullable=False),
        sa.Column("schedule_id", sa.Text, nullable=False),
        sa.Column("events", sa.BigInteger, nullable=False),
        sa.Column("failures_told", sa.Integer, nullable=False),
        sa.Column("policy", sa.LargeBinary, nullable=False),
        sa.Column("exports", sa.LargeBinary, nullable=False),
        sa.Column("webhook", sa.LargeBinary),
        sa.Column("source", sa.LargeBinary, nullable=False),
        sa.Column("fault", sa.LargeBinary),
        sa.Column("breaker", sa.LargeBinary, nullable=False),
        sa.Column("use", sa.LargeBinary, nullable=False),
        sa.CheckConstraint(
            "status IN ('creating', 'running', 'paused', 'cancelling', 'finishing',"
            " 'completed', 'cancelled', 'failed')",
            name="jobs_status",
        ),
        sa.CheckConstraint("priority IN ('high', 'normal', 'low')", name="jobs_priority"),
        sa.CheckConstraint(
            "total = pending + queued + in_progress + success + error + cancelled"
            " AND pending >= 0 AND queued >= 0 AND in_progress >= 0 AND success >= 0 AND error >= 0 AND cancelled >= 0",
            name="jobs_counts",
        ),
        sa.CheckConstraint("cursor >= 0 AND cursor <= total", name="jobs_cursor"),
        sa.CheckConstraint(f"({_FINAL}) = (finished_at IS NOT NULL)", name="jobs_finished_at"),
        sa.CheckConstraint(f"NOT ({_STOPPED}) OR pending = 0", name="jobs_stopped"),
        sa.CheckConstraint(f"({_STOPPED}) OR (cancelled = 0 AND NOT kill)", name="jobs_going"),
        sa.CheckConstraint(
            "status NOT IN ('finishing', 'completed', 'cancelled') OR pending + queued + in_progress = 0",
            name="jobs_done",
        ),
        sa.CheckConstraint("status = 'paused' OR breaker_until IS NULL", name="jobs_breaker_until"),
        sa.CheckConstraint(f"NOT deleting OR ({_FINAL})", name="jobs_deleting"),
        sqlite_autoincrement=True,
    )
    op.create_index("jobs_by_status", "jobs", ["status", "number"])
    op.create_index("jobs_by_scraper", "jobs", ["scraper_id", "id"])
    op.create_index("jobs_by_schedule", "jobs", ["schedule_id", "id"])
    op.create_index("jobs_by_finished_at", "jobs", ["finished_at"])


def _items() -> None:
    op.create_table(
        "items",
        sa.Column("job", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("key", _ID, nullable=False),
        sa.Column("input", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("job", "key", name="items_by_key"),
        sa.CheckConstraint("seq >= 0", name="items_seq"),
        sqlite_with_rowid=False,
    )


def _item_blocks() -> None:
    op.create_table(
        "item_blocks",
        sa.Column("job", _NUMBER, sa.ForeignKey("jobs.number"), primary_key=True, autoincrement=False),
        sa.Column("source", _ID, primary_key=True),
        sa.Column("block", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("added", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )


def _batches() -> None:
    op.create_table(
        "batches",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("job", _NUMBER, sa.ForeignKey("jobs.number"), nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("again", sa.LargeBinary),
        sa.Column("left", sa.Integer, nullable=False),
        sa.Column("part", sa.Integer, nullable=False),
        sa.Column("done", sa.LargeBinary, nullable=False),
        sa.Column("lane", sa.Text, nullable=False),
        sa.Column("priority", sa.Text, nullable=False),
        sa.Column("queued_at", sa.Double, nullable=False),
        sa.Column("worker_id", sa.Text, nullable=False),
        sa.Column("lease_until", sa.Double),
        sa.CheckConstraint("state IN ('queued', 'running')", name="batches_state"),
        sa.CheckConstraint("priority IN ('high', 'normal', 'low')", name="batches_priority"),
        sa.CheckConstraint('"left" > 0 AND part >= 0', name="batches_left"),
        sa.CheckConstraint("(again IS NULL) = (first <= last)", name="batches_items"),
        sa.CheckConstraint("(state = 'running') = (lease_until IS NOT NULL)", name="batches_lease"),
        sa.CheckConstraint("(state = 'running') = (worker_id <> '')", name="batches_worker"),
    )
    op.create_index("batches_by_job", "batches", ["job"])
    op.create_index(
        "batches_published",
        "batches",
        ["queued_at"],
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_index(
        "batches_leased",
        "batches",
        ["lease_until"],
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )


def _waiting() -> None:
    op.create_table(
        "waiting",
        sa.Column("job", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("not_before", sa.Double, nullable=False),
        sa.CheckConstraint("attempt >= 1", name="waiting_attempt"),
        sqlite_with_rowid=False,
    )
    op.create_index("waiting_due", "waiting", ["job", "not_before", "seq"])


def _outcomes() -> None:
    op.create_table(
        "outcomes",
        sa.Column("job", _NUMBER, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("ok", sa.Boolean, nullable=False),
        sa.Column("exit_reason", sa.Text, nullable=False),
        sa.Column("site", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double, nullable=False),
        sa.Column("result_key", sa.Text, nullable=False),
        sa.Column("result_bytes", sa.BigInteger, nullable=False),
        sa.Column("result", sa.LargeBinary),
        sa.Column("error", sa.LargeBinary),
        sa.Column("usage", sa.LargeBinary),
        sa.Column("artifacts", sa.LargeBinary),
        sa.Column("logs", sa.LargeBinary),
        sa.CheckConstraint("attempt >= 1", name="outcomes_attempt"),
        sa.CheckConstraint("ok = (exit_reason IN ('succeeded', 'skipped'))", name="outcomes_ok"),
        sa.CheckConstraint("exit_reason <> 'cancelled'", name="outcomes_cancelled"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "outcomes_failed",
        "outcomes",
        ["job", "seq"],
        sqlite_where=sa.text("ok = false"),
        postgresql_where=sa.text("ok = false"),
    )
    op.create_index(
        "outcomes_failed_by_reason",
        "outcomes",
        ["job", "exit_reason", "seq"],
        sqlite_where=sa.text("ok = false"),
        postgresql_where=sa.text("ok = false"),
    )


def _job_events() -> None:
    op.create_table(
        "job_events",
        sa.Column("job", _NUMBER, sa.ForeignKey("jobs.number"), primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
