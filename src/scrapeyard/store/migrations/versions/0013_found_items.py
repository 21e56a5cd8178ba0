"""Items know where they were found, and exports what a reader must know of them.

Items that are there already have neither depth nor referrer.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Three columns that may be empty."""
    op.add_column("items", sa.Column("depth", sa.Integer))
    op.add_column("items", sa.Column("referrer", sa.Text))
    op.add_column("exports", sa.Column("notes", sa.LargeBinary))


def downgrade() -> None:
    """Without them."""
    op.drop_column("exports", "notes")
    op.drop_column("items", "referrer")
    op.drop_column("items", "depth")
