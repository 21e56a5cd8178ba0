"""Channels that operators moved, and every move."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Two tables."""
    op.create_table(
        "channels",
        sa.Column("scraper_id", _ID, primary_key=True),
        sa.Column("channel", _ID, primary_key=True),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("moved_at", sa.Double, nullable=False),
    )
    op.create_table(
        "channel_moves",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("scraper_id", _ID, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("before", sa.Text, nullable=False),
        sa.Column("after", sa.Text, nullable=False),
        sa.Column("moved_at", sa.Double, nullable=False),
    )
    op.create_index("channel_moves_by_scraper", "channel_moves", ["scraper_id", "moved_at"])


def downgrade() -> None:
    """Without them."""
    for table in ("channel_moves", "channels"):
        op.drop_table(table)
