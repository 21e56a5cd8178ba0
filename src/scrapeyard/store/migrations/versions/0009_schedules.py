"""Schedules with what became of their times; messages to receivers of webhooks."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Five tables, and an index that finds the jobs with a webhook."""
    _schedules()
    _firings()
    _deliveries()
    op.create_table(
        "webhook_marks",
        sa.Column("job_id", _ID, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("events", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("finished_at", sa.Double),
    )
    op.create_table(
        "run_watches",
        sa.Column("run_id", _ID, primary_key=True),
        sa.Column("webhook", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("run_watches_by_created_at", "run_watches", ["created_at"])
    _partial("jobs_with_webhook", "jobs", "number", "webhook IS NOT NULL")


def downgrade() -> None:
    """Without them."""
    op.drop_index("jobs_with_webhook", "jobs")
    for table in ("run_watches", "webhook_marks", "webhook_deliveries", "firings", "schedules"):
        op.drop_table(table)


def _schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("template", sa.LargeBinary, nullable=False),
        sa.Column("cron", sa.Text, nullable=False),
        sa.Column("every_seconds", sa.Double),
        sa.Column("time_zone", sa.Text, nullable=False),
        sa.Column("jitter_seconds", sa.Double, nullable=False),
        sa.Column("overlap", sa.Text, nullable=False),
        sa.Column("missed", sa.Text, nullable=False),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("anchor", sa.Double, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("next_due", sa.Double),
        sa.Column("next_at", sa.Double),
        sa.Column("last_due", sa.Double),
        sa.Column("last_subject", sa.Text, nullable=False),
        sa.CheckConstraint("target IN ('job', 'scrape')", name="schedules_target"),
        sa.CheckConstraint("overlap IN ('skip', 'queue', 'cancel_previous')", name="schedules_overlap"),
        sa.CheckConstraint("missed IN ('skip', 'run_once', 'run_all')", name="schedules_missed"),
        sa.CheckConstraint("(cron <> '') = (every_seconds IS NULL)", name="schedules_when"),
        sa.CheckConstraint("every_seconds > 0 AND jitter_seconds >= 0", name="schedules_seconds"),
        sa.CheckConstraint("(next_due IS NULL) = (next_at IS NULL)", name="schedules_next"),
        sa.CheckConstraint("NOT paused OR next_due IS NULL", name="schedules_paused"),
    )
    _partial("schedules_due", "schedules", "next_at", "next_at IS NOT NULL")


def _firings() -> None:
    op.create_table(
        "firings",
        sa.Column("schedule_id", _ID, sa.ForeignKey("schedules.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("due_at", sa.Double, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("settled_at", sa.Double),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("lease_until", sa.Double),
        sa.CheckConstraint("kind IN ('scheduled', 'manual')", name="firings_kind"),
        sa.CheckConstraint("state IN ('waiting', 'started', 'skipped', 'failed', 'missed')", name="firings_state"),
        sa.CheckConstraint("(state = 'waiting') = (settled_at IS NULL)", name="firings_settled_at"),
        sa.CheckConstraint("(state = 'started') = (subject <> '')", name="firings_subject"),
        sa.CheckConstraint("state = 'waiting' OR lease_until IS NULL", name="firings_lease"),
    )
    _partial("firings_waiting", "firings", "due_at", "state = 'waiting'")


def _deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("subject", _ID, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("next_at", sa.Double),
        sa.Column("give_up_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double),
        sa.Column("log", sa.LargeBinary, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("lease_until", sa.Double),
        sa.CheckConstraint("state IN ('waiting', 'delivered', 'failed')", name="webhook_deliveries_state"),
        sa.CheckConstraint("(state = 'waiting') = (next_at IS NOT NULL)", name="webhook_deliveries_next_at"),
        sa.CheckConstraint("(state = 'waiting') = (finished_at IS NULL)", name="webhook_deliveries_finished_at"),
        sa.CheckConstraint("state = 'waiting' OR lease_until IS NULL", name="webhook_deliveries_lease"),
        sa.CheckConstraint("attempts >= 0", name="webhook_deliveries_attempts"),
    )
    _partial("webhook_deliveries_due", "webhook_deliveries", "next_at", "state = 'waiting'")
    op.create_index("webhook_deliveries_by_subject", "webhook_deliveries", ["subject", "id"])
    op.create_index("webhook_deliveries_by_state", "webhook_deliveries", ["state", "id"])
    op.create_index("webhook_deliveries_by_finished_at", "webhook_deliveries", ["finished_at"])


def _partial(name: str, table: str, column: str, where: str) -> None:
    only = sa.text(where)
    op.create_index(name, table, [column], sqlite_where=only, postgresql_where=only)
