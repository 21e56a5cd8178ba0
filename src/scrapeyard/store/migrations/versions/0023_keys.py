"""Keys of callers."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """One table."""
    op.create_table(
        "api_keys",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("scrapers", sa.LargeBinary, nullable=False),
        sa.Column("limits", sa.LargeBinary, nullable=False),
        sa.Column("digest", _ID, nullable=False, unique=True),
        sa.Column("pepper_id", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
        sa.Column("replaced_by", sa.Text, nullable=False),
        sa.Column("last_used_at", sa.Double),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.CheckConstraint("role IN ('client', 'viewer', 'operator', 'admin')", name="api_keys_role"),
    )


def downgrade() -> None:
    """Without it."""
    op.drop_table("api_keys")
