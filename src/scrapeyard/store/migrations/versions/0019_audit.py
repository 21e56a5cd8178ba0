"""The audit: a chain of rows that only grows, and where it begins and ends."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_SQLITE = (
    "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit rows never change'); END",
    "CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit "
    "WHEN OLD.number > coalesce((SELECT removed_number FROM audit_chain), 0) "
    "BEGIN SELECT RAISE(ABORT, 'audit rows are removed by retention alone'); END",
)
_POSTGRES = (
    "CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF TG_OP = 'DELETE' THEN "
    "IF OLD.number <= coalesce((SELECT removed_number FROM audit_chain), 0) THEN RETURN OLD; END IF; END IF; "
    "RAISE EXCEPTION 'audit rows never change, and retention alone removes them'; END $$",
    "CREATE TRIGGER audit_keep BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
    "CREATE TRIGGER audit_keep_all BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
)


def upgrade() -> None:
    """Two tables and their triggers."""
    op.create_table(
        "audit",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("client", "role", "key_id", "address", "action", "resource")
        ),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("before", sa.LargeBinary),
        sa.Column("after", sa.LargeBinary),
        sa.Column("hash", sa.Text, nullable=False),
    )
    op.create_index("audit_by_at", "audit", ["at"])
    op.create_index("audit_by_client", "audit", ["client", "number"])
    op.create_table(
        "audit_chain",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("last_number", sa.BigInteger, nullable=False),
        sa.Column("last_hash", sa.Text, nullable=False),
        sa.Column("removed_number", sa.BigInteger, nullable=False),
        sa.Column("removed_hash", sa.Text, nullable=False),
        sa.CheckConstraint("id = 1", name="audit_chain_has_one_row"),
    )
    for statement in _POSTGRES if op.get_context().dialect.name == "postgresql" else _SQLITE:
        op.execute(statement)


def downgrade() -> None:
    """Without them."""
    op.drop_table("audit")
    op.drop_table("audit_chain")
    if op.get_context().dialect.name == "postgresql":
        op.execute("DROP FUNCTION audit_refuse()")
