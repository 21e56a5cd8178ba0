"""Alerts."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """One table."""
    op.create_table(
        "alerts",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("open_key", _ID, unique=True),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("value", sa.Double, nullable=False),
        sa.Column("threshold", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("told_at", sa.Double, nullable=False),
        sa.Column("tells", sa.Integer, nullable=False),
        sa.Column("resolved_at", sa.Double),
        sa.CheckConstraint("state IN ('firing', 'resolved')", name="alerts_state"),
        sa.CheckConstraint("(state = 'firing') = (open_key IS NOT NULL)", name="alerts_open_key"),
        sa.CheckConstraint("(state = 'firing') = (resolved_at IS NULL)", name="alerts_resolved_at"),
    )
    op.create_index("alerts_by_state", "alerts", ["state", "id"])
    op.create_index("alerts_by_resolved_at", "alerts", ["resolved_at"])


def downgrade() -> None:
    """Without it."""
    op.drop_table("alerts")
