"""The whole store, by its nouns."""

from typing import Protocol

from scrapeyard.sealing.data_keys import DataKeys
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.store.ports.archives import ArchiveStore
from scrapeyard.store.ports.audit import AuditStore
from scrapeyard.store.ports.exports import ExportStore, SinkStore, SnapshotStore
from scrapeyard.store.ports.forgetting import ForgetStore
from scrapeyard.store.ports.jobs import BatchStore, EventStore, ItemStore, JobStore, PointStore
from scrapeyard.store.ports.keys import ApiKeyStore, ScraperSecretStore
from scrapeyard.store.ports.lifecycle import LifecycleStore
from scrapeyard.store.ports.operations import (
    DriftStore,
    LeaderStore,
    LoadStore,
    MeterStore,
    PatternStore,
    SessionStore,
    StateStore,
    WorkerStore,
)
from scrapeyard.store.ports.overrides import ChannelStore, ProxyStore, SiteStore
from scrapeyard.store.ports.retention import SweepStore
from scrapeyard.store.ports.runs import KeyStore, RunStore
from scrapeyard.store.ports.schedules import FiringStore, ScheduleStore
from scrapeyard.store.ports.webhooks import AlertStore, DeliveryStore, WebhookStore


class Store(Protocol):
    """The nouns of one database. A service takes the noun that it uses, or the store if it uses several."""

    sealer: Sealer
    """Seals secrets that callers store inside other values, such as those of webhooks."""
    scraper_secrets: ScraperSecretStore
    runs: RunStore
    keys: KeyStore
    api_keys: ApiKeyStore
    workers: WorkerStore
    leaders: LeaderStore
    load: LoadStore
    sessions: SessionStore
    state: StateStore
    meters: MeterStore
    patterns: PatternStore
    drift: DriftStore
    channels: ChannelStore
    sites: SiteStore
    proxies: ProxyStore
    jobs: JobStore
    items: ItemStore
    batches: BatchStore
    events: EventStore
    archives: ArchiveStore
    points: PointStore
    exports: ExportStore
    snapshots: SnapshotStore
    sinks: SinkStore
    schedules: ScheduleStore
    firings: FiringStore
    webhooks: WebhookStore
    deliveries: DeliveryStore
    alerts: AlertStore
    audit: AuditStore
    sweeps: SweepStore
    forgetting: ForgetStore

    async def start(self) -> None:
        """Connect and migrate the schema. Safe to run twice, and from two processes at once."""

    async def stop(self) -> None:
        """Close the pool. May be called twice."""

    async def ping(self) -> float:
        """Round trip of a small write in milliseconds."""


class DurableStore(Store, Protocol):
    """A store that the processes of a platform open: it has the keys of its seals, too."""

    data_keys: DataKeys
    lifecycle: LifecycleStore | None
    """None: this database has no feed of changes."""
