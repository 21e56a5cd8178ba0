"""Jobs know whether their items lie in the database or in an archive."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Columns with a default."""
    op.add_column("jobs", sa.Column("archive", sa.Text, nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("archive_key", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    """Without them. The items of archived jobs are not restored by this."""
    op.drop_column("jobs", "archive_key")
    op.drop_column("jobs", "archive")
