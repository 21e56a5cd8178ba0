"""Jobs know the profile they were created with.

Jobs that are there already have none.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A column with a default."""
    op.add_column("jobs", sa.Column("profile", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    """Without it."""
    op.drop_column("jobs", "profile")
