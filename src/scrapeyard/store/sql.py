"""The store on SQLite and PostgreSQL: one implementation."""

from scrapeyard.store.channels import SqlChannels
from scrapeyard.store.database import Database
from scrapeyard.store.keys import SqlKeys
from scrapeyard.store.leaders import SqlLeaders
from scrapeyard.store.meters import SqlMeters
from scrapeyard.store.proxies import SqlProxies
from scrapeyard.store.run_reads import SqlRunReads
from scrapeyard.store.run_statements import RunStatements
from scrapeyard.store.run_writes import SqlRunWrites
from scrapeyard.store.sessions import SqlSessions
from scrapeyard.store.sites import SqlSites
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
):
    """A Store on the database that `url` names: `sqlite:///path`, `postgresql://…` or `postgres://…`.

    Several processes may share either. Raises SettingsInvalid for any other URL.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self._statements = RunStatements(self._database.insert)

    async def start(self) -> None:
        """Connect and bring the schema up to date. Safe to run twice, and from two processes at once."""
        await self._database.start()

    async def stop(self) -> None:
        """Close the pool. May be called twice."""
        await self._database.stop()

    async def ping(self) -> float:
        """Round trip to the database in milliseconds."""
        return await self._database.ping()
