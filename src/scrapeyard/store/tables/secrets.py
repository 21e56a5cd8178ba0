"""The tables of secrets: the keys that seal values, and what operators keep for scrapers."""

from sqlalchemy import Boolean, Column, Double, Integer, LargeBinary, Table, Text, false

from scrapeyard.store.tables.runs import ID, METADATA

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
