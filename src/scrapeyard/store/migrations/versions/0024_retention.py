"""Runs and jobs know what retention has removed of them, and when it looks at them next."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_RUNS = sa.text("sweep_at IS NOT NULL")
_JOBS = sa.text("finished_at IS NOT NULL")


def upgrade() -> None:
    """Columns with a default, and an index for each table."""
    op.add_column("runs", sa.Column("swept", sa.LargeBinary))
    op.add_column("runs", sa.Column("sweep_at", sa.Double))
    op.create_index("runs_to_sweep", "runs", ["sweep_at"], sqlite_where=_RUNS, postgresql_where=_RUNS)
    op.add_column("jobs", sa.Column("swept", sa.LargeBinary))
    op.add_column("jobs", sa.Column("sweeping", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("jobs", sa.Column("sweep_at", sa.Double, nullable=False, server_default="0"))
    op.create_index("jobs_to_sweep", "jobs", ["sweep_at"], sqlite_where=_JOBS, postgresql_where=_JOBS)


def downgrade() -> None:
    """Without them."""
    op.drop_index("jobs_to_sweep", "jobs")
    for column in ("sweep_at", "sweeping", "swept"):
        op.drop_column("jobs", column)
    op.drop_index("runs_to_sweep", "runs")
    op.drop_column("runs", "sweep_at")
    op.drop_column("runs", "swept")
