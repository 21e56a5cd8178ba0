"""How busy the cluster was, minute by minute."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One table."""
    op.create_table(
        "load_samples",
        sa.Column("at", sa.Double, primary_key=True),
        sa.Column("sample", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    """Without it."""
    op.drop_table("load_samples")
