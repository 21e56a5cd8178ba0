"""Deliveries of jobs to sinks."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """One table, one column."""
    op.add_column("jobs", sa.Column("sinks", sa.LargeBinary))
    op.create_table(
        "job_sinks",
        sa.Column("job_id", _ID, sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("sink", _ID, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("due_at", sa.Double),
        sa.Column("open_until", sa.Double, nullable=False),
        sa.Column("woken_at", sa.Double),
        sa.Column("covered", sa.BigInteger, nullable=False),
        sa.Column("delivered", sa.BigInteger, nullable=False),
        sa.Column("failed", sa.BigInteger, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("failing_since", sa.Double),
        sa.Column("delivered_at", sa.Double),
        sa.Column("last_error", sa.Text, nullable=False),
        sa.Column("progress", sa.LargeBinary, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.CheckConstraint("state IN ('active', 'done', 'failed')", name="job_sinks_state"),
        sa.CheckConstraint("(state = 'active') = (due_at IS NOT NULL)", name="job_sinks_due_at"),
    )
    active = sa.text("state = 'active'")
    op.create_index("job_sinks_due", "job_sinks", ["due_at"], postgresql_where=active, sqlite_where=active)
    op.create_index("job_sinks_by_state", "job_sinks", ["sink", "state"])


def downgrade() -> None:
    """Without them."""
    op.drop_table("job_sinks")
    op.drop_column("jobs", "sinks")
