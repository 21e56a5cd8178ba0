"""Learned patterns, and what models used."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_COUNTS = ("ai_tokens", "ai_millionths")


def upgrade() -> None:
    """Two tables, two columns."""
    op.create_table(
        "patterns",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("site", _ID, nullable=False),
        sa.Column("client", _ID, nullable=False),
        sa.Column("key", _ID, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.Column("health", sa.LargeBinary, nullable=False),
        sa.Column("examples", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.CheckConstraint("status IN ('learning', 'ready', 'stale')", name="patterns_status"),
    )
    op.create_index("patterns_by_site", "patterns", ["site", "client", "key"])
    op.create_table(
        "pattern_versions",
        sa.Column("pattern_id", _ID, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("pattern", sa.LargeBinary, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("made_at", sa.Double, nullable=False),
    )
    for name in _COUNTS:
        op.add_column("fetch_meters", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))


def downgrade() -> None:
    """Without them."""
    for name in _COUNTS:
        op.drop_column("fetch_meters", name)
    op.drop_table("pattern_versions")
    op.drop_table("patterns")
