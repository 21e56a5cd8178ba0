"""Items may end as `gone`, which counts as a success: the check that ties `ok` to the exit reason knows it.

SQLite cannot change a check. The documented way for a change that leaves every row valid is to edit the schema itself;
copying the table could take minutes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_NAME = "outcomes_ok"
_BEFORE = "ok = (exit_reason IN ('succeeded', 'skipped'))"
_AFTER = "ok = (exit_reason IN ('succeeded', 'gone', 'skipped'))"


def upgrade() -> None:
    """`gone` is a good end."""
    _replace(_BEFORE, _AFTER)


def downgrade() -> None:
    """It is a plain success again; its data still says what the site answered."""
    op.execute("UPDATE outcomes SET exit_reason = 'succeeded' WHERE exit_reason = 'gone'")
    _replace(_AFTER, _BEFORE)


def _replace(before: str, after: str) -> None:
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        op.drop_constraint(_NAME, "outcomes", type_="check")
        op.create_check_constraint(_NAME, "outcomes", after)
        return
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    edit = "UPDATE sqlite_master SET sql = replace(sql, :before, :after) WHERE type = 'table' AND name = 'outcomes'"
    connection.execute(sa.text(edit), {"before": before, "after": after})
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
