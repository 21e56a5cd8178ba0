"""Cancelled jobs get their manifests and exports: those that wait for them are marked.

Jobs that were cancelled before have none, and are not marked: exports on demand serve them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_INDEX = "jobs_with_files_pending"


def upgrade() -> None:
    """One column with its check, and an index that finds the few that are marked."""
    check = sa.CheckConstraint("NOT files_pending OR status = 'cancelled'", name="jobs_files_pending")
    op.add_column("jobs", sa.Column("files_pending", sa.Boolean, check, nullable=False, server_default=sa.false()))
    marked = sa.text("files_pending")
    op.create_index(_INDEX, "jobs", ["id"], sqlite_where=marked, postgresql_where=marked)


def downgrade() -> None:
    """Without them; the check goes with its column."""
    op.drop_index(_INDEX, "jobs")
    op.drop_column("jobs", "files_pending")
