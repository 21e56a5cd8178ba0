"""Meters tell whose use it was, by which scraper, and count runs and browsers as well."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_OLD_KEY = ("day", "writer", "job_id", "site", "pool", "proxy_class")
_OLD_COUNTS = ("requests", "failures", "bytes")


def upgrade() -> None:
    """A new table, since SQLite cannot change a primary key. What was counted is kept."""
    op.rename_table("fetch_meters", "old_fetch_meters")
    for name in ("fetch_meters_by_site", "fetch_meters_by_job"):
        op.drop_index(name, "old_fetch_meters")
    op.create_table(
        "fetch_meters",
        *(sa.Column(name, _ID, nullable=False) for name in (*_OLD_KEY, "client", "scraper")),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in (*_OLD_COUNTS, "runs", "browser_ms")),
        sa.PrimaryKeyConstraint(*_OLD_KEY, "client", "scraper", name="fetch_meters_key"),
    )
    columns = ", ".join((*_OLD_KEY, *_OLD_COUNTS))
    op.execute(
        f"INSERT INTO fetch_meters ({columns}, client, scraper, runs, browser_ms) "  # noqa: S608  our own names
        f"SELECT {columns}, '', '', 0, 0 FROM old_fetch_meters"
    )
    op.drop_table("old_fetch_meters")
    op.create_index("fetch_meters_by_site", "fetch_meters", ["site", "day"])
    op.create_index("fetch_meters_by_job", "fetch_meters", ["job_id", "day"])
    op.create_index("fetch_meters_by_client", "fetch_meters", ["client", "day"])


def downgrade() -> None:
    """Without them."""
    op.drop_index("fetch_meters_by_client", "fetch_meters")
    with op.batch_alter_table("fetch_meters") as table:
        for name in ("client", "scraper", "runs", "browser_ms"):
            table.drop_column(name)
