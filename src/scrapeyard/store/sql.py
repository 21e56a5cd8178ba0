"""The store on SQLite and PostgreSQL: one implementation."""

from scrapeyard.store.channels import SqlChannels
from scrapeyard.store.database import Database
from scrapeyard.store.exports import SqlExports
from scrapeyard.store.job_batches import SqlJobBatches
from scrapeyard.store.job_control import SqlJobControl
from scrapeyard.store.job_create import SqlJobCreate
from scrapeyard.store.job_ends import SqlJobEnds
from scrapeyard.store.job_items import SqlJobItems
from scrapeyard.store.job_reads import SqlJobReads
from scrapeyard.store.job_records import SqlJobRecords
from scrapeyard.store.keys import SqlKeys
from scrapeyard.store.leaders import SqlLeaders
from scrapeyard.store.meters import SqlMeters
from scrapeyard.store.proxies import SqlProxies
from scrapeyard.store.run_reads import SqlRunReads
from scrapeyard.store.run_statements import run_statements
from scrapeyard.store.run_writes import SqlRunWrites
from scrapeyard.store.schedules import SqlSchedules
from scrapeyard.store.sessions import SqlSessions
from scrapeyard.store.sites import SqlSites
from scrapeyard.store.snapshots import SqlSnapshots
from scrapeyard.store.webhook_deliveries import SqlWebhookDeliveries
from scrapeyard.store.webhooks import SqlWebhooks
from scrapeyard.store.workers import SqlWorkers


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
