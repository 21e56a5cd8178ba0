"""The store on SQLite and PostgreSQL: one implementation."""

import time
from typing import Final

from sqlalchemy import delete, update
from sqlalchemy.ext.asyncio import AsyncConnection

from scrapeyard.sealing.data_keys import load_keys
from scrapeyard.sealing.port import Masters
from scrapeyard.store.alerts import SqlAlerts
from scrapeyard.store.api_keys import SqlApiKeys
from scrapeyard.store.audit import SqlAudit
from scrapeyard.store.database.database import Database
from scrapeyard.store.forgetting import SqlForgetting
from scrapeyard.store.jobs.archives import SqlArchives
from scrapeyard.store.jobs.batches import SqlBatches
from scrapeyard.store.jobs.events import SqlEvents
from scrapeyard.store.jobs.exports import EXPORTS, SqlExports
from scrapeyard.store.jobs.items import SqlItems
from scrapeyard.store.jobs.jobs import SqlJobs
from scrapeyard.store.jobs.points import SqlPoints
from scrapeyard.store.jobs.snapshots import SqlSnapshots
from scrapeyard.store.lifecycle import SqlLifecycle
from scrapeyard.store.operations import SqlKeys, SqlLeaders, SqlLoad, SqlMeters, SqlSessions, SqlState, SqlWorkers
from scrapeyard.store.overrides import SqlChannels, SqlProxies, SqlSites
from scrapeyard.store.patterns import SqlDrift, SqlPatterns
from scrapeyard.store.ports.store import DurableStore
from scrapeyard.store.retention import SqlSweeps
from scrapeyard.store.runs.runs import SqlRuns
from scrapeyard.store.schedules import SqlFirings, SqlSchedules
from scrapeyard.store.sealed import ClearValues, SqlDataKeys, SqlScraperSecrets
from scrapeyard.store.sinks import SqlSinks
from scrapeyard.store.tables.jobs import BATCHES
from scrapeyard.store.tables.runs import LEADERS, RUNS
from scrapeyard.store.tables.schedules import DELIVERIES, FIRINGS
from scrapeyard.store.webhooks import SqlDeliveries, SqlWebhooks
from scrapeyard.telemetry.events import get_log
from scrapeyard.telemetry.metrics import Metrics

log = get_log("secrets")

_PROBE: Final = "probe"
"""A role that nobody leads in, written to see whether the database takes anything."""

_DATED_BACK: Final = 60.0
"""Seconds. Younger queued work may still be on its way to a worker; older work that the queue does not hold is lost."""


class SqlStore(DurableStore):
    """A Store on the database that `url` names: `sqlite:///path`, `postgresql://…` or `postgres://…`.

    Several processes may share either. A `temporary` SQLite file may be damaged if the machine fails. `masters` wrap
    the keys that seal secrets; if None, secrets are stored in clear. With `encrypts`, inputs, results, logs and other
    content are sealed, too. Raises SettingsInvalid for any other URL.
    """

    def __init__(
        self,
        url: str,
        *,
        temporary: bool = False,
        encrypts: bool = False,
        masters: Masters | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._database = database = Database(url, temporary=temporary, encrypts=encrypts, metrics=metrics)
        self._masters = masters
        self.sealer = database.sealer
        self.data_keys = SqlDataKeys(database)
        self.scraper_secrets = SqlScraperSecrets(database)
        self.runs = SqlRuns(database)
        self.keys = SqlKeys(database)
        self.api_keys = SqlApiKeys(database)
        self.workers = SqlWorkers(database)
        self.leaders = SqlLeaders(database)
        self.load = SqlLoad(database)
        self.sessions = SqlSessions(database)
        self.state = SqlState(database)
        self.meters = SqlMeters(database)
        self.patterns = SqlPatterns(database)
        self.drift = SqlDrift(database)
        self.channels = SqlChannels(database)
        self.sites = SqlSites(database)
        self.proxies = SqlProxies(database)
        self.jobs = SqlJobs(database)
        self.items = SqlItems(database)
        self.batches = SqlBatches(database)
        self.events = SqlEvents(database)
        self.archives = SqlArchives(database)
        self.points = SqlPoints(database)
        self.exports = SqlExports(database)
        self.snapshots = SqlSnapshots(database)
        self.sinks = SqlSinks(database)
        self.schedules = SqlSchedules(database)
        self.firings = SqlFirings(database)
        self.webhooks = SqlWebhooks(database)
        self.lifecycle = SqlLifecycle(database)
        self.deliveries = SqlDeliveries(database)
        self.alerts = SqlAlerts(database)
        self.audit = SqlAudit(database)
        self.sweeps = SqlSweeps(database)
        self.forgetting = SqlForgetting(database)

    async def start(self) -> None:
        """Connect and bring the schema up to date. Safe to run twice, and from two processes at once. Raises
        SettingsInvalid if secrets are sealed under another master key."""
        await self._database.start()
        if self._masters is not None and not self.sealer.has_keys:
            try:
                await self._load_keys(self._masters)
            except BaseException:
                await self._database.stop()
                raise

    async def stop(self) -> None:
        """Close the pool. May be called twice."""
        await self._database.stop()

    async def _load_keys(self, masters: Masters) -> None:
        """Learn the data keys, and seal what an older version stored in clear, once."""
        keys = await load_keys(self.data_keys, masters, self.sealer, time.time())
        if all(key.swept for key in keys):
            return
        count = await ClearValues(self._database).seal()
        if count:
            await self._database.compact()
            log.info("secrets.sealed", count=count)
        await self.data_keys.mark_swept()

    async def end_leases(self, now: float) -> None:
        """End every lease, and date back what is queued, so that it counts as lost. Call it only where no other process
        uses the database, before anything here does: whoever held the leases was killed, and the queue is gone too."""
        long_ago = now - _DATED_BACK

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(delete(LEADERS))
            for leased in (RUNS, BATCHES, EXPORTS, FIRINGS, DELIVERIES):
                await connection.execute(update(leased).where(leased.c.lease_until > now).values(lease_until=now))
            for queued, state in ((RUNS, RUNS.c.status), (BATCHES, BATCHES.c.state)):
                late = update(queued).where(state == "queued", queued.c.queued_at > long_ago)
                await connection.execute(late.values(queued_at=long_ago))

        await self._database.write(work)

    async def ping(self) -> float:
        """Round trip of a small write in milliseconds: a database that is locked or full can still be read."""
        began, now = time.perf_counter(), time.time()
        await self.leaders.claim(_PROBE, _PROBE, now, now)
        return (time.perf_counter() - began) * 1000
