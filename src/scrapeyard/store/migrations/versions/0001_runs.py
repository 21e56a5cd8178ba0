"""Runs, workers, idempotency keys and leaders."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_UNFINISHED = "status IN ('queued', 'running')"


def upgrade() -> None:
    """From nothing."""
    _create_runs()
    _create_indexes()
    op.create_table(
        "workers",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("info", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("key", _ID, primary_key=True),
        sa.Column("body_digest", sa.Text, nullable=False),
        sa.Column("run_ids", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("idempotency_keys_by_created_at", "idempotency_keys", ["created_at"])
    op.create_table(
        "leaders",
        sa.Column("role", _ID, primary_key=True),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """To nothing."""
    for table in ("leaders", "idempotency_keys", "workers", "runs"):
        op.drop_table(table)


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("scraper", sa.Text, nullable=False),
        sa.Column("scraper_id", sa.Text, nullable=False),
        sa.Column("lane", sa.Text, nullable=False),
        sa.Column("priority", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("max_attempts", sa.Integer, nullable=False),
        sa.Column("timeout_seconds", sa.Double),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("queued_at", sa.Double, nullable=False),
        sa.Column("not_before", sa.Double),
        sa.Column("started_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("lease_until", sa.Double),
        sa.Column("worker_id", sa.Text, nullable=False),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("exit_reason", sa.Text),
        sa.Column("reply_to", sa.Text, nullable=False),
        sa.Column("traceparent", sa.Text, nullable=False),
        sa.Column("result_key", sa.Text, nullable=False),
        sa.Column("result_bytes", sa.BigInteger, nullable=False),
        sa.Column("logs_cut", sa.Boolean, nullable=False),
        sa.Column("input", sa.LargeBinary, nullable=False),
        sa.Column("resolved", sa.LargeBinary),
        sa.Column("error", sa.LargeBinary),
        sa.Column("report", sa.LargeBinary),
        sa.Column("result", sa.LargeBinary),
        sa.Column("logs", sa.LargeBinary),
        *_checks(),
    )


def _checks() -> list[sa.CheckConstraint]:
    rules = {
        "runs_status": "status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')",
        "runs_priority": "priority IN ('high', 'normal', 'low')",
        "runs_attempt": "attempt >= 1 AND max_attempts >= 1",
        "runs_exit_reason": f"({_UNFINISHED}) = (exit_reason IS NULL)",
        "runs_finished_at": f"({_UNFINISHED}) = (finished_at IS NULL)",
        "runs_cancelled": "(status = 'cancelled') = (COALESCE(exit_reason, '') = 'cancelled')",
        "runs_succeeded": "(status = 'succeeded') = (COALESCE(exit_reason, '') IN ('succeeded', 'skipped'))",
        "runs_lease": "(status = 'running') = (lease_until IS NOT NULL)",
        "runs_running": "status <> 'running' OR (worker_id <> '' AND started_at IS NOT NULL)",
        "runs_queued": "status <> 'queued' OR (worker_id = '' AND NOT cancel_requested)",
        "runs_not_before": "status = 'queued' OR not_before IS NULL",
    }
    return [sa.CheckConstraint(rule, name=name) for name, rule in rules.items()]


def _create_indexes() -> None:
    op.create_index("runs_by_status", "runs", ["status", "id"])
    op.create_index("runs_by_scraper", "runs", ["scraper_id", "id"])
    op.create_index("runs_by_exit_reason", "runs", ["exit_reason", "id"])
    op.create_index("runs_by_created_at", "runs", ["created_at"])
    op.create_index("runs_by_finished_at", "runs", ["finished_at"])
    partial = {
        "runs_waiting": ("not_before", "status = 'queued' AND not_before IS NOT NULL"),
        "runs_published": ("queued_at", "status = 'queued' AND not_before IS NULL"),
        "runs_leased": ("lease_until", "status = 'running'"),
    }
    for name, (column, rule) in partial.items():
        op.create_index(name, "runs", ["status", column], sqlite_where=sa.text(rule), postgresql_where=sa.text(rule))
