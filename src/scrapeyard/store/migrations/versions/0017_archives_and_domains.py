"""Jobs know whether their items lie in the database or in an archive, and which site they are about."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Columns with a default, and an index."""
    op.add_column("jobs", sa.Column("archive", sa.Text, nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("archive_key", sa.Text, nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("domain", sa.Text, nullable=False, server_default=""))
    op.create_index("jobs_by_domain", "jobs", ["domain", "number"])


def downgrade() -> None:
    """Without them. The items of archived jobs are not restored by this."""
    op.drop_index("jobs_by_domain", "jobs")
    op.drop_column("jobs", "domain")
    op.drop_column("jobs", "archive_key")
    op.drop_column("jobs", "archive")
