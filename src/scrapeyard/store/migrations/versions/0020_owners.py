"""Runs, schedules and deliveries know the client that owns them, as jobs do."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_TABLES = ("runs", "schedules", "webhook_deliveries")


def upgrade() -> None:
    """A column with a default in each, and an index to list by it."""
    for table in _TABLES:
        op.add_column(table, sa.Column("owner", sa.Text, nullable=False, server_default=""))
        op.create_index(f"{table}_by_owner", table, ["owner", "id"])
    op.create_index("jobs_by_owner", "jobs", ["owner", "number"])


def downgrade() -> None:
    """Without them."""
    op.drop_index("jobs_by_owner", "jobs")
    for table in _TABLES:
        op.drop_index(f"{table}_by_owner", table)
        op.drop_column(table, "owner")
