"""The store on Amazon DynamoDB: one table, written by conditions and transactions."""

import re
import time
from typing import Any, Final

from scrapeyard.aws import aws_service
from scrapeyard.errors import SettingsInvalid
from scrapeyard.sealing.data_keys import load_keys
from scrapeyard.sealing.port import Masters
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.store.dynamo.alerts import DynamoAlerts
from scrapeyard.store.dynamo.audit import DynamoAudit
from scrapeyard.store.dynamo.forgetting import DynamoForgetting
from scrapeyard.store.dynamo.items.items import DynamoItems
from scrapeyard.store.dynamo.jobs.archives import DynamoArchives
from scrapeyard.store.dynamo.jobs.batches import DynamoBatches
from scrapeyard.store.dynamo.jobs.events import DynamoEvents
from scrapeyard.store.dynamo.jobs.exports import DynamoExports
from scrapeyard.store.dynamo.jobs.forgetting import JobForgetting
from scrapeyard.store.dynamo.jobs.jobs import DynamoJobs
from scrapeyard.store.dynamo.jobs.points import DynamoPoints
from scrapeyard.store.dynamo.jobs.sinks import DynamoSinks
from scrapeyard.store.dynamo.jobs.snapshots import DynamoSnapshots
from scrapeyard.store.dynamo.jobs.sweeps import JobSweeps
from scrapeyard.store.dynamo.keys import DynamoApiKeys, DynamoDataKeys, DynamoKeys, DynamoScraperSecrets
from scrapeyard.store.dynamo.operations import DynamoLeaders, DynamoLoad, DynamoMeters, DynamoWorkers
from scrapeyard.store.dynamo.overrides import DynamoChannels, DynamoProxies, DynamoSites
from scrapeyard.store.dynamo.patterns import DynamoDrift, DynamoPatterns
from scrapeyard.store.dynamo.retention import DynamoSweeps
from scrapeyard.store.dynamo.rows.job_rows import DynamoJobRows
from scrapeyard.store.dynamo.runs import DynamoRuns
from scrapeyard.store.dynamo.schedules import DynamoFirings, DynamoSchedules
from scrapeyard.store.dynamo.sessions import DynamoSessions, DynamoState
from scrapeyard.store.dynamo.table.calls import DynamoCalls
from scrapeyard.store.dynamo.table.part import DynamoBase
from scrapeyard.store.dynamo.table.table import DynamoTable
from scrapeyard.store.dynamo.webhooks import DynamoDeliveries, DynamoWebhooks
from scrapeyard.store.ports.store import DurableStore
from scrapeyard.telemetry.metrics import Metrics

_TABLE: Final = "scrapeyard"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_HOW: Final = (
    "database_url: write dynamodb://REGION/TABLE, such as dynamodb://eu-west-1/scrapeyard, or "
    "dynamodb+https://KEY:SECRET@HOST:PORT/REGION/TABLE for a server that speaks as DynamoDB; percent-encode special "
    "characters in the secret"
)


def dynamo_options(url: str) -> tuple[dict[str, Any], str]:
    """What botocore's `create_client` takes, and the name of the table. Raises SettingsInvalid, without the secret."""
    try:
        options, table = aws_service(url, "dynamodb")
    except ValueError:
        raise SettingsInvalid(_HOW) from None
    if table and not _NAME.fullmatch(table):
        raise SettingsInvalid(_HOW)
    return options, table or _TABLE


class DynamoStore(DurableStore):
    """A Store on the table that `url` names. Several processes may share it. `masters`, `encrypts`: as in SqlStore.
    Raises SettingsInvalid for any other URL."""

    def __init__(
        self,
        url: str,
        *,
        encrypts: bool = False,
        masters: Masters | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        options, table = dynamo_options(url)
        self._calls = DynamoCalls(options, table, metrics=metrics)
        self._masters = masters
        self.sealer = Sealer()
        self.table = DynamoTable(self._calls)
        base = DynamoBase(table=self.table, sealer=self.sealer, encrypts=encrypts)
        self.data_keys = DynamoDataKeys(base)
        self.lifecycle = None
        self.scraper_secrets = DynamoScraperSecrets(base)
        self.runs = runs = DynamoRuns(base)
        self.keys = DynamoKeys(base)
        self.api_keys = DynamoApiKeys(base)
        self.workers = DynamoWorkers(base)
        self.leaders = DynamoLeaders(base)
        self.load = DynamoLoad(base)
        self.sessions = DynamoSessions(base)
        self.state = DynamoState(base)
        self.meters = DynamoMeters(base)
        self.patterns = DynamoPatterns(base)
        self.drift = DynamoDrift(base)
        self.channels = DynamoChannels(base)
        self.sites = DynamoSites(base)
        self.proxies = DynamoProxies(base)
        rows = DynamoJobRows(base)
        self.batches = batches = DynamoBatches(base, rows)
        self.jobs = DynamoJobs(base, rows, batches)
        self.items = DynamoItems(base, rows)
        self.events = DynamoEvents(base, rows)
        self.archives = DynamoArchives(base, rows)
        self.points = DynamoPoints(base, rows)
        self.exports = DynamoExports(base, rows)
        self.sinks = DynamoSinks(base, rows)
        self.snapshots = DynamoSnapshots(base)
        self.schedules = schedules = DynamoSchedules(base)
        self.firings = DynamoFirings(base)
        self.webhooks = webhooks = DynamoWebhooks(base, rows)
        self.deliveries = DynamoDeliveries(base)
        self.alerts = DynamoAlerts(base)
        self.audit = DynamoAudit(base)
        self.sweeps = DynamoSweeps(base, runs, JobSweeps(base), schedules)
        self.forgetting = DynamoForgetting(base, webhooks, JobForgetting(base))

    async def start(self) -> None:
        """Connect, and create the table if it is missing. Safe to run twice, and from two processes at once. Raises
        SettingsInvalid if secrets are sealed under another master key."""
        await self._calls.start()
        if self._masters is not None and not self.sealer.has_keys:
            try:
                await load_keys(self.data_keys, self._masters, self.sealer, time.time())
            except BaseException:
                await self._calls.stop()
                raise

    async def table_status(self) -> str:
        """How the table stands, such as ACTIVE; empty if there is none. Creates nothing; start and stop are not needed.
        Raises StoreUnavailable, and SettingsInvalid if the table is not ours."""
        return await self._calls.status()

    async def stop(self) -> None:
        """Close every connection. May be called twice."""
        await self._calls.stop()

    async def ping(self) -> float:
        """Round trip of a small write in milliseconds."""
        began, now = time.perf_counter(), time.time()
        await self.leaders.claim("probe", "probe", now, now)
        return (time.perf_counter() - began) * 1000
