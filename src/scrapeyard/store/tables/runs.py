"""The tables. The state machine of a run is enforced here by CHECK constraints.

JSON is stored as the original bytes (LargeBinary), so that it is returned exactly as given and a NUL within a string is
no error in PostgreSQL. Migrations repeat these definitions; a test compares both.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

from scrapeyard.store.tables.content import Sealed

METADATA = MetaData()

ID = Text().with_variant(Text(collation="C"), "postgresql")
"""Ids sort by bytes, whatever the server's locale: paging depends on it."""


def index_where(condition: str, name: str, *columns: Any) -> Index:
    """An index of the rows for which the condition is true. PostgreSQL's condition stands in the migrations alone: to
    name it here would load the dialect, which a file does not need."""
    return Index(name, *columns, sqlite_where=text(condition))


_UNFINISHED = "status IN ('queued', 'running')"

# The partial indexes name the status again: without it SQLite prefers runs_by_status, which does not sort by time.

RUNS = Table(
    "runs",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("status", Text, nullable=False),
    Column("scraper", Text, nullable=False),
    Column("scraper_id", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("priority", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("max_attempts", Integer, nullable=False),
    Column("timeout_seconds", Double),
    Column("created_at", Double, nullable=False),
    Column("queued_at", Double, nullable=False),
    Column("not_before", Double),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("lease_until", Double),
    Column("worker_id", Text, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("exit_reason", Text),
    Column("reply_to", Text, nullable=False),
    Column("traceparent", Text, nullable=False),
    Column("result_key", Text, nullable=False),
    Column("result_bytes", BigInteger, nullable=False),
    Column("logs_cut", Boolean, nullable=False),
    Column("input", Sealed("runs.input"), nullable=False),
    Column("fetching", LargeBinary),
    Column("resolved", LargeBinary),
    Column("error", Sealed("runs.error")),
    Column("report", Sealed("runs.report")),
    Column("result", Sealed("runs.result")),
    Column("logs", Sealed("runs.logs")),
    Column("owner", Text, nullable=False, server_default=""),
    Column("swept", LargeBinary),
    Column("sweep_at", Double),
    CheckConstraint("status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name="runs_status"),
    CheckConstraint("priority IN ('high', 'normal', 'low')", name="runs_priority"),
    CheckConstraint("attempt >= 1 AND max_attempts >= 1", name="runs_attempt"),
    CheckConstraint(f"({_UNFINISHED}) = (exit_reason IS NULL)", name="runs_exit_reason"),
    CheckConstraint(f"({_UNFINISHED}) = (finished_at IS NULL)", name="runs_finished_at"),
    CheckConstraint("(status = 'cancelled') = (COALESCE(exit_reason, '') = 'cancelled')", name="runs_cancelled"),
    CheckConstraint(
        "(status = 'succeeded') = (COALESCE(exit_reason, '') IN ('succeeded', 'gone', 'skipped'))",
        name="runs_succeeded",
    ),
    CheckConstraint("(status = 'running') = (lease_until IS NOT NULL)", name="runs_lease"),
    CheckConstraint("status <> 'running' OR (worker_id <> '' AND started_at IS NOT NULL)", name="runs_running"),
    CheckConstraint("status <> 'queued' OR (worker_id = '' AND NOT cancel_requested)", name="runs_queued"),
    CheckConstraint("status = 'queued' OR not_before IS NULL", name="runs_not_before"),
    Index("runs_by_status", "status", "id"),
    Index("runs_by_scraper", "scraper_id", "id"),
    Index("runs_by_exit_reason", "exit_reason", "id"),
    Index("runs_by_owner", "owner", "id"),
    Index("runs_by_created_at", "created_at"),
    Index("runs_by_finished_at", "finished_at"),
    index_where("status = 'queued' AND not_before IS NOT NULL", "runs_waiting", "status", "not_before"),
    index_where("status = 'queued' AND not_before IS NULL", "runs_published", "status", "queued_at"),
    index_where("status = 'running'", "runs_leased", "status", "lease_until"),
    index_where("sweep_at IS NOT NULL", "runs_to_sweep", "sweep_at"),
)

WORKERS = Table(
    "workers",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("seen_at", Double, nullable=False),
    Column("info", LargeBinary, nullable=False),
    Column("drain", Text, nullable=False, server_default=""),
)

KEYS = Table(
    "idempotency_keys",
    METADATA,
    Column("key", ID, primary_key=True),
    Column("body_digest", Text, nullable=False),
    Column("run_ids", LargeBinary, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("idempotency_keys_by_created_at", "created_at"),
)

CHANNELS = Table(
    "channels",
    METADATA,
    Column("scraper_id", ID, primary_key=True),
    Column("channel", ID, primary_key=True),
    Column("version", Text, nullable=False),
    Column("moved_at", Double, nullable=False),
)

CHANNEL_MOVES = Table(
    "channel_moves",
    METADATA,
    Column("id", ID, primary_key=True),
    Column("scraper_id", ID, nullable=False),
    Column("channel", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
    Column("moved_at", Double, nullable=False),
    Index("channel_moves_by_scraper", "scraper_id", "moved_at"),
)

SITES = Table(
    "sites",
    METADATA,
    Column("site", ID, primary_key=True),
    Column("rate", Double),
    Column("burst", Integer),
    Column("concurrency", Integer),
    Column("adapt", Boolean),
    Column("min_rate", Double),
    Column("breaker_failures", Integer),
    Column("breaker_ratio", Double),
    Column("breaker_seconds", Double),
    Column("robots", Text),
    Column("note", Text, nullable=False),
    Column("updated_at", Double, nullable=False),
    CheckConstraint("rate >= 0 AND burst >= 1 AND concurrency >= 0 AND min_rate > 0", name="sites_limits"),
    CheckConstraint("breaker_failures >= 1 AND breaker_ratio > 0 AND breaker_seconds > 0", name="sites_breaker"),
    CheckConstraint("robots IN ('ignore', 'obey')", name="sites_robots"),
)

PROXY_POOLS = Table(
    "proxy_pools",
    METADATA,
    Column("name", ID, primary_key=True),
    Column("definition", LargeBinary, nullable=False),
    Column("changed_at", Double, nullable=False),
)

PROXY_STANDINGS = Table(
    "proxy_standings",
    METADATA,
    Column("worker_id", ID, primary_key=True),
    Column("seen_at", Double, nullable=False),
    Column("pools", LargeBinary, nullable=False),
)

FETCH_METERS = Table(
    "fetch_meters",
    METADATA,
    Column("day", ID, primary_key=True),
    Column("writer", ID, primary_key=True),
    Column("job_id", ID, primary_key=True),
    Column("site", ID, primary_key=True),
    Column("pool", ID, primary_key=True),
    Column("proxy_class", ID, primary_key=True),
    Column("client", ID, primary_key=True),
    Column("scraper", ID, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("runs", BigInteger, nullable=False),
    Column("browser_ms", BigInteger, nullable=False),
    Column("ai_tokens", BigInteger, nullable=False, server_default="0"),
    Column("ai_millionths", BigInteger, nullable=False, server_default="0"),
    Index("fetch_meters_by_site", "site", "day"),
    Index("fetch_meters_by_job", "job_id", "day"),
    Index("fetch_meters_by_client", "client", "day"),
)

LEADERS = Table(
    "leaders",
    METADATA,
    Column("role", ID, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until", Double, nullable=False),
)
