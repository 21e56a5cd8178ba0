"""Pools of proxies that operators keep by the API, how they do, and what was received through what."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Three tables."""
    op.create_table(
        "proxy_pools",
        sa.Column("name", _ID, primary_key=True),
        sa.Column("definition", sa.LargeBinary, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
    )
    op.create_table(
        "proxy_standings",
        sa.Column("worker_id", _ID, primary_key=True),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("pools", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "fetch_meters",
        sa.Column("day", _ID, primary_key=True),
        sa.Column("writer", _ID, primary_key=True),
        sa.Column("job_id", _ID, primary_key=True),
        sa.Column("site", _ID, primary_key=True),
        sa.Column("pool", _ID, primary_key=True),
        sa.Column("proxy_class", _ID, primary_key=True),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("failures", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
    )
    op.create_index("fetch_meters_by_site", "fetch_meters", ["site", "day"])
    op.create_index("fetch_meters_by_job", "fetch_meters", ["job_id", "day"])


def downgrade() -> None:
    """Without them."""
    for table in ("fetch_meters", "proxy_standings", "proxy_pools"):
        op.drop_table(table)
