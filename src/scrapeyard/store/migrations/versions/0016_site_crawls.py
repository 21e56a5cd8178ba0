"""Jobs know the profile they were created with, when their time is over, and whether they were cancelled before their
source had ended. How they stand is noted over time.

Jobs that are there already have no profile. Those that were cancelled are resumed without the rest of their source.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_COUNTS = ("total", "pending", "queued", "in_progress", "success", "error", "cancelled")


def upgrade() -> None:
    """Columns that are empty or have a default, and a table."""
    op.add_column("jobs", sa.Column("profile", sa.Text, nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("unread", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("jobs", sa.Column("deadline", sa.Double))
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "job_points",
        sa.Column(
            "job", number, sa.ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
        ),
        sa.Column("tick", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in _COUNTS),
        sa.Column("use", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Without them."""
    op.drop_table("job_points")
    op.drop_column("jobs", "deadline")
    op.drop_column("jobs", "unread")
    op.drop_column("jobs", "profile")
