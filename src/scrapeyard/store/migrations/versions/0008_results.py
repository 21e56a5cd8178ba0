"""Exports of jobs, and what is remembered of pages between crawls."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Two tables."""
    op.create_table(
        "exports",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("job_id", _ID, sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
        sa.Column("wish", sa.LargeBinary, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("progress", sa.Double, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("lease_until", sa.Double),
        sa.CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", name="exports_state"),
        sa.CheckConstraint("(state = 'running') = (lease_until IS NOT NULL)", name="exports_lease"),
        sa.CheckConstraint("(state IN ('done', 'failed')) = (finished_at IS NOT NULL)", name="exports_finished_at"),
        sa.CheckConstraint("(state = 'done') = (key <> '')", name="exports_key"),
        sa.CheckConstraint("(state = 'failed') = (error <> '')", name="exports_error"),
    )
    op.create_index("exports_by_job", "exports", ["job_id", "created_at"])
    op.create_index("exports_by_state", "exports", ["state", "created_at"])
    op.create_table(
        "snapshots",
        sa.Column("scope", _ID, primary_key=True),
        sa.Column("page", _ID, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("job_id", _ID, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
        sa.Column("before", sa.LargeBinary),
    )


def downgrade() -> None:
    """Without them."""
    op.drop_table("snapshots")
    op.drop_table("exports")
