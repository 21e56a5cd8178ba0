"""PostgreSQL keeps no statistics of which job a row belongs to.

From those of a few large jobs it concludes that any other job has one row, and then reads a whole new job to find one
item, by whatever index begins with the job. Without them it expects half a percent of the table, and looks for items by
their numbers.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_TABLES = ("items", "outcomes", "waiting")


def upgrade() -> None:
    """What was learned already goes too: a column that is changed forgets it."""
    _each("TYPE bigint", "SET STATISTICS 0")


def downgrade() -> None:
    """As usual."""
    _each("SET STATISTICS -1")


def _each(*changes: str) -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    for table in _TABLES:
        for change in changes:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN job {change}")
