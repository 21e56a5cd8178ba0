"""The store on SQLite and PostgreSQL: one implementation."""

from scrapeyard.store.database.database import Database
from scrapeyard.store.jobs.batches import SqlJobBatches
from scrapeyard.store.jobs.control import SqlJobControl
from scrapeyard.store.jobs.create import SqlJobCreate
from scrapeyard.store.jobs.ends import SqlJobEnds
from scrapeyard.store.jobs.exports import SqlExports
from scrapeyard.store.jobs.items import SqlJobItems
from scrapeyard.store.jobs.reads import SqlJobReads
from scrapeyard.store.jobs.records import SqlJobRecords
from scrapeyard.store.jobs.snapshots import SqlSnapshots
from scrapeyard.store.operations import SqlKeys, SqlLeaders, SqlMeters, SqlSessions, SqlWorkers
from scrapeyard.store.overrides import SqlChannels, SqlProxies, SqlSites
from scrapeyard.store.runs.reads import SqlRunReads
from scrapeyard.store.runs.rows import run_statements
from scrapeyard.store.runs.writes import SqlRunWrites
from scrapeyard.store.schedules import SqlSchedules
from scrapeyard.store.webhooks import SqlWebhookDeliveries, SqlWebhooks


class SqlStore(
    SqlRunWrites,
    SqlRunReads,
    SqlWorkers,
    SqlKeys,
    SqlChannels,
    SqlSites,
    SqlProxies,
    SqlMeters,
    SqlSessions,
    SqlLeaders,
    SqlJobCreate,
    SqlJobControl,
    SqlJobEnds,
    SqlJobReads,
    SqlJobBatches,
    SqlJobRecords,
    SqlJobItems,
    SqlExports,
    SqlSnapshots,
    SqlSchedules,
    SqlWebhooks,
    SqlWebhookDeliveries,
):
    """A Store on the database that `url` names: `sqlite:///path`, `postgresql://…` or `postgres://…`.

    Several processes may share either. Raises SettingsInvalid for any other URL.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self._statements = run_statements(self._database.backend.insert)

    async def start(self) -> None:
        """Connect and bring the schema up to date. Safe to run twice, and from two processes at once."""
        await self._database.start()

    async def stop(self) -> None:
        """Close the pool. May be called twice."""
        await self._database.stop()

    async def ping(self) -> float:
        """Round trip to the database in milliseconds."""
        return await self._database.ping()
