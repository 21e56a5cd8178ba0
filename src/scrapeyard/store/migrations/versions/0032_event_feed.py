"""Events of jobs in the order of time, for the stream of lifecycle events."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_TOLD = sa.text("kind IN ('status', 'archive')")


def upgrade() -> None:
    """One index."""
    op.create_index("job_events_by_at", "job_events", ["at"], sqlite_where=_TOLD, postgresql_where=_TOLD)


def downgrade() -> None:
    """The index goes."""
    op.drop_index("job_events_by_at", "job_events")
