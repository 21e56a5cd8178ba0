"""Cookies of named sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """One table."""
    op.create_table(
        "sessions",
        sa.Column("scraper_id", _ID, primary_key=True),
        sa.Column("name", _ID, primary_key=True),
        sa.Column("cookies", sa.LargeBinary, nullable=False),
        sa.Column("saved_at", sa.Double, nullable=False),
    )
    op.create_index("sessions_by_saved_at", "sessions", ["saved_at"])


def downgrade() -> None:
    """Without it."""
    op.drop_table("sessions")
