"""The table of keys."""

from sqlalchemy import CheckConstraint, Column, Double, LargeBinary, Table, Text

from scrapeyard.store.tables.runs import ID, METADATA

API_KEYS = Table(
    "api_keys",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("name", Text, nullable=False),
    Column("client", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("scrapers", LargeBinary, nullable=False),
    Column("limits", LargeBinary, nullable=False),
    Column("digest", ID, nullable=False, unique=True),
    Column("pepper_id", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    Column("replaced_by", Text, nullable=False),
    Column("last_used_at", Double),
    Column("changed_at", Double, nullable=False),
    CheckConstraint("role IN ('client', 'viewer', 'operator', 'admin')", name="api_keys_role"),
)
