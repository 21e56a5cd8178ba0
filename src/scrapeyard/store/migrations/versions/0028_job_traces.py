"""Whose trace the items of a job link to."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One column."""
    op.add_column("jobs", sa.Column("traceparent", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    """Without it."""
    op.drop_column("jobs", "traceparent")
