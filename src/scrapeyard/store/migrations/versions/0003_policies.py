"""How a run may fetch, kept with it."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One column. None: nothing but the platform's own."""
    op.add_column("runs", sa.Column("fetching", sa.LargeBinary))


def downgrade() -> None:
    """Without it."""
    op.drop_column("runs", "fetching")
