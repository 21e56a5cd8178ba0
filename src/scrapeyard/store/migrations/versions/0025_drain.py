"""Workers are asked to drain."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One column."""
    op.add_column("workers", sa.Column("drain", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    """Without it."""
    op.drop_column("workers", "drain")
