"""Jobs count their redrives: what was listed of a job before its last one may be out of date."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One column, 0 for jobs that are there."""
    op.add_column("jobs", sa.Column("redrives", sa.BigInteger, nullable=False, server_default="0"))


def downgrade() -> None:
    """Without it."""
    op.drop_column("jobs", "redrives")
