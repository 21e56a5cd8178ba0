"""Sites that operators want treated in their own way."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """One table. Null: as the settings say for every site."""
    op.create_table(
        "sites",
        sa.Column("site", _ID, primary_key=True),
        sa.Column("rate", sa.Double),
        sa.Column("burst", sa.Integer),
        sa.Column("concurrency", sa.Integer),
        sa.Column("adapt", sa.Boolean),
        sa.Column("min_rate", sa.Double),
        sa.Column("breaker_failures", sa.Integer),
        sa.Column("breaker_ratio", sa.Double),
        sa.Column("breaker_seconds", sa.Double),
        sa.Column("robots", sa.Text),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.CheckConstraint("rate >= 0 AND burst >= 1 AND concurrency >= 0 AND min_rate > 0", name="sites_limits"),
        sa.CheckConstraint("breaker_failures >= 1 AND breaker_ratio > 0 AND breaker_seconds > 0", name="sites_breaker"),
        sa.CheckConstraint("robots IN ('ignore', 'obey')", name="sites_robots"),
    )


def downgrade() -> None:
    """Without it."""
    op.drop_table("sites")
