"""Keys that seal secrets, and secrets that operators grant to scrapers."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Two tables."""
    op.create_table(
        "data_keys",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("wrapped", sa.LargeBinary, nullable=False),
        sa.Column("master", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("swept", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_table(
        "scraper_secrets",
        sa.Column("scrapers", _ID, primary_key=True),
        sa.Column("name", _ID, primary_key=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """Without them."""
    op.drop_table("scraper_secrets")
    op.drop_table("data_keys")
