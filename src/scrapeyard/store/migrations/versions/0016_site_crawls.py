"""Jobs know the profile they were created with, when their time is over, and whether they were cancelled before their
source had ended.

Jobs that are there already have no profile. Those that were cancelled are resumed without the rest of their source.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Columns that are empty or have a default."""
    op.add_column("jobs", sa.Column("profile", sa.Text, nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("unread", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("jobs", sa.Column("deadline", sa.Double))


def downgrade() -> None:
    """Without them."""
    op.drop_column("jobs", "deadline")
    op.drop_column("jobs", "unread")
    op.drop_column("jobs", "profile")
