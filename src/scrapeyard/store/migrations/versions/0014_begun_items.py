"""Batches know which of their items began, items that a worker was lost with are marked, and jobs count HTTP statuses.

A batch that is out during the upgrade has no `begun`: if its worker is lost, all of its items count as begun. Items
that ended before have no HTTP status, and no job counts them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_LOST = ("batches", "waiting")


def upgrade() -> None:
    """Five columns; none needs a value for the rows that are there."""
    begun = sa.CheckConstraint("begun >= 0", name="batches_begun")
    op.add_column("batches", sa.Column("begun", sa.Integer, begun))
    for table in _LOST:
        op.add_column(table, sa.Column("lost_before", sa.Boolean, nullable=False, server_default=sa.false()))
    status = sa.CheckConstraint("http_status BETWEEN 100 AND 999", name="outcomes_http_status")
    op.add_column("outcomes", sa.Column("http_status", sa.Integer, status))
    op.add_column("jobs", sa.Column("http_statuses", sa.LargeBinary))


def downgrade() -> None:
    """Without them; the checks go with their columns."""
    op.drop_column("jobs", "http_statuses")
    op.drop_column("outcomes", "http_status")
    for table in _LOST:
        op.drop_column(table, "lost_before")
    op.drop_column("batches", "begun")
