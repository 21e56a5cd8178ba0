"""The tables of keys and secrets: keys of clients, keys that seal values, and what operators keep for scrapers."""

from sqlalchemy import Boolean, CheckConstraint, Column, Double, Integer, LargeBinary, Table, Text, false

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

DATA_KEYS = Table(
    "data_keys",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("wrapped", LargeBinary, nullable=False),
    Column("master", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("swept", Boolean, nullable=False, server_default=false()),
)

SCRAPER_SECRETS = Table(
    "scraper_secrets",
    METADATA,
    Column("scrapers", ID, primary_key=True),
    Column("name", ID, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("changed_at", Double, nullable=False),
)
