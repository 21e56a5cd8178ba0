"""Small values that scrapers keep between runs."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """One table."""
    op.create_table(
        "scraper_state",
        sa.Column("scraper_id", _ID, primary_key=True),
        sa.Column("key", _ID, primary_key=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """Without it."""
    op.drop_table("scraper_state")
