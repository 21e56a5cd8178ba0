"""Items may end as `gone`, which counts as a success: the checks that tie a success to its exit reason know it.

SQLite cannot change a check. The documented way for a change that leaves every row valid is to edit the schema itself;
copying the table could take minutes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_CHECKS = {
    "outcomes": ("outcomes_ok", "ok = (exit_reason IN ({}))"),
    "runs": ("runs_succeeded", "(status = 'succeeded') = (COALESCE(exit_reason, '') IN ({}))"),
}
_BEFORE = "'succeeded', 'skipped'"
_AFTER = "'succeeded', 'gone', 'skipped'"


def upgrade() -> None:
    """`gone` is a good end."""
    _replace(_BEFORE, _AFTER)


def downgrade() -> None:
    """It is a plain success again; its data still says what the site answered."""
    for table in _CHECKS:
        op.execute(f"UPDATE {table} SET exit_reason = 'succeeded' WHERE exit_reason = 'gone'")  # noqa: S608  our own names
    _replace(_AFTER, _BEFORE)


def _replace(before: str, after: str) -> None:
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        for table, (name, check) in _CHECKS.items():
            op.drop_constraint(name, table, type_="check")
            op.create_check_constraint(name, table, check.format(after))
        return
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    edit = sa.text("UPDATE sqlite_master SET sql = replace(sql, :before, :after) WHERE type = 'table' AND name = :name")
    for table, (_, check) in _CHECKS.items():
        connection.execute(edit, {"before": check.format(before), "after": check.format(after), "name": table})
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
