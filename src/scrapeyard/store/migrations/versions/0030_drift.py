"""Sketches of fields, which tell when a site changed."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """One table."""
    op.create_table(
        "drift",
        sa.Column("subject", _ID, primary_key=True),
        sa.Column("site", _ID, primary_key=True),
        sa.Column("drifted", sa.Integer, nullable=False),
        sa.Column("sketch", sa.LargeBinary, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """Without it."""
    op.drop_table("drift")
