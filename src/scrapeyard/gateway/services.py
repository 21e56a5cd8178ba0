"""What the gateway receives, and the parts it builds from that for its routes."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapeyard.blobs.port import Blobs
from scrapeyard.engines.budget.clients import ClientBudgets
from scrapeyard.engines.cache.port import PageStore
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.politeness.policies import SitePolicies
from scrapeyard.engines.politeness.port import SiteGate
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.engines.proxies.stored import StoredPools
from scrapeyard.errors import SettingsInvalid
from scrapeyard.extras import missing
from scrapeyard.gateway.audit.log import AuditLog
from scrapeyard.gateway.auth.credentials import Authenticator, Credentials
from scrapeyard.gateway.auth.keys import KeyRing
from scrapeyard.gateway.auth.links import SignedLinks
from scrapeyard.gateway.auth.sessions import SignedSessions
from scrapeyard.gateway.cache import Caching
from scrapeyard.gateway.forgetting import Forgetting
from scrapeyard.gateway.jobs.service import JobService
from scrapeyard.gateway.limits.middleware import HandedOut
from scrapeyard.gateway.limits.port import ClientLimiter
from scrapeyard.gateway.operations.health import Health
from scrapeyard.gateway.proxies import UseOfSites
from scrapeyard.gateway.runs.admission import Lanes, RunBuilder
from scrapeyard.gateway.runs.answers import Cancelling, Lookup
from scrapeyard.gateway.runs.receivers import WebhookValidator
from scrapeyard.gateway.runs.submit import Scraping
from scrapeyard.gateway.runs.waiting import Waiters
from scrapeyard.gateway.schedules.service import ScheduleService
from scrapeyard.gateway.scrapers.refresh import Refreshing
from scrapeyard.gateway.sites import MoreOfSites, SiteService
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.model.identity import Pepper
from scrapeyard.queues.port import Queue
from scrapeyard.repository.catalogue.channels import ChannelOverrides
from scrapeyard.repository.port import Catalogue
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import Store
from scrapeyard.store.recorder import Recorder
from scrapeyard.telemetry.metrics import Metrics, SourceReading
from scrapeyard.telemetry.traces import TraceExporter

if TYPE_CHECKING:
    from scrapeyard.gateway.auth.sign_in import ProviderSignIn
    from scrapeyard.gateway.auth.tokens import IssuerTokens


@dataclass(frozen=True, kw_only=True)
class GatewayServices:
    """Everything a gateway needs. The caller starts and stops these services."""

    settings: Settings
    queue: Queue
    store: Store
    recorder: Recorder
    blobs: Blobs
    catalogue: Catalogue
    intake: ItemImporter
    gateway_id: str
    limiter: ClientLimiter
    """Counts the calls of clients. The gateway starts and stops it: nobody else uses it."""
    pepper: Pepper
    """Under which keys are hashed."""
    pages: PageStore | None = None
    """The shared tier of the page cache; None if this gateway does not use it."""
    gate: SiteGate | None = None
    """Where workers queue their requests to sites; None if the state of sites is unknown here."""
    more_of_sites: tuple[MoreOfSites, ...] = ()
    """More fields for sites in `/api/sites`."""
    clock: Callable[[], float] = time.time
    metrics: Metrics = field(default_factory=Metrics)
    """Of the whole process."""
    traces: TraceExporter | None = None
    """Where traces go; None: nowhere."""


def _provider(services: GatewayServices) -> "tuple[IssuerTokens | None, ProviderSignIn | None]":
    """The tokens of the identity provider, and the sign-in there; None where the settings name none. Raises
    SettingsInvalid if a package is missing."""
    oidc = services.settings.oidc
    if not oidc.issuer:
        return None, None
    if words := missing("oidc"):
        raise SettingsInvalid(f"oidc.issuer: {words}")
    from scrapeyard.gateway.auth.issuer import IssuerKeys  # noqa: PLC0415 - an extra
    from scrapeyard.gateway.auth.sign_in import ProviderSignIn  # noqa: PLC0415 - an extra
    from scrapeyard.gateway.auth.tokens import IssuerTokens  # noqa: PLC0415 - an extra

    keys = IssuerKeys(oidc)
    tokens = IssuerTokens(oidc, keys)
    return tokens, ProviderSignIn(oidc, keys, tokens, services.pepper, services.clock) if oidc.client_id else None


class Gateway:
    """The gateway's own parts, made once and passed to its routes."""

    def __init__(self, services: GatewayServices) -> None:
        settings = services.settings
        self.services = services
        self.client_budgets = ClientBudgets(services.store.meters, services.clock)
        self.handed_out = HandedOut(services.limiter, services.store.runs)
        self.trace_share = settings.telemetry.trace_share if services.traces is not None else 0.0
        self.audit = AuditLog(services.store.audit, services.clock)
        self.keys = KeyRing(services.store.api_keys, services.pepper, services.clock)
        self.links = SignedLinks(self.keys, services.pepper, services.clock)
        self.sessions = SignedSessions(
            self.keys,
            services.pepper,
            services.clock,
            seconds=settings.auth.session_hours * 3600,
            issuer=settings.oidc.issuer,
        )
        tokens, self.sign_in = _provider(services)
        kinds: tuple[Credentials, ...] = (self.keys, self.links, self.sessions, *((tokens,) if tokens else ()))
        self.authenticator = Authenticator(kinds, settings.auth.mode)
        self.metrics = services.metrics
        self.metrics.watch_sources(self._read_sources)
        self.metrics.watch("gateway_waiting_calls", lambda: self.waiters.count)
        self.waiters = Waiters(
            services.queue,
            services.store.runs,
            services.gateway_id,
            settings.gateway.max_waiting,
            on_end=self.metrics.ended,
        )
        self.channels = ChannelOverrides(
            services.store.channels, services.queue, services.catalogue, services.gateway_id, services.clock
        )
        self.refreshing = Refreshing(
            services.catalogue, services.queue, self.channels, self.metrics, services.gateway_id
        )
        self.lookup = Lookup(services.store.runs, services.recorder, self.waiters)
        self.cancelling = Cancelling(services.store.runs, services.queue, services.recorder)
        self.health = Health(services.queue, services.store, services.blobs, services.recorder, settings)
        self.scraping = Scraping(
            settings=settings,
            queue=services.queue,
            store=services.store,
            recorder=services.recorder,
            blobs=services.blobs,
            catalogue=services.catalogue,
            gateway_id=services.gateway_id,
            clock=services.clock,
            waiters=self.waiters,
            lookup=self.lookup,
            cancelling=self.cancelling,
            traces=services.traces,
        )
        self.proxies = StoredPools(
            services.store.proxies, settings.proxies.pools, ProxyPools(settings.proxies.pools), clock=services.clock
        )
        self.jobs = JobService(
            settings=settings,
            store=services.store,
            queue=services.queue,
            blobs=services.blobs,
            catalogue=services.catalogue,
            intake=services.intake,
            clock=services.clock,
            traces=services.traces,
        )
        self.schedules = ScheduleService(
            store=services.store,
            creation=self.jobs.creation,
            builder=RunBuilder(
                services.catalogue,
                Lanes(services.store.workers, settings),
                settings.repository.default,
                services.queue,
            ),
            receivers=WebhookValidator(settings.webhooks, services.store.sealer),
            clock=services.clock,
        )
        self.caching = Caching(settings, services.queue, services.pages, self.scraping)
        self.forgetting = Forgetting(services.store, services.blobs, services.recorder, self.caching, services.clock)
        self._site_policies = SitePolicies(settings.sites, services.store.sites, services.queue, services.clock)
        self.sites = SiteService(
            self._site_policies,
            services.gate,
            Sites(settings.sites.whole_hosts),
            (UseOfSites(services.store.meters, services.clock), *services.more_of_sites),
        )
        self._serving = False

    @property
    def serving(self) -> bool:
        """Started and not stopping."""
        return self._serving

    async def start(self) -> None:
        """Subscribe to replies and signals. May be called twice."""
        await asyncio.gather(
            self.audit.start(),
            self.services.limiter.start(),
            self.handed_out.start(),
            self.keys.start(),
            self.waiters.start(),
            self.refreshing.start(),
            self.channels.start(),
            self._site_policies.start(),
            self.proxies.start(),
        )
        self._serving = True

    def close(self) -> None:
        """Become not ready, and answer waiting calls now."""
        self._serving = False
        self.refreshing.close()
        self.jobs.close()
        self.waiters.close()

    async def stop(self) -> None:
        """Close and end the background tasks. May be called twice."""
        self.close()
        await self.refreshing.stop()
        await self.channels.stop()
        await self.proxies.stop()
        await self._site_policies.stop()
        await self.waiters.stop()
        await self.handed_out.stop()
        await self.services.limiter.stop()
        await self.keys.stop()
        await self.audit.stop()

    def _read_sources(self) -> Iterator[SourceReading]:
        for state in self.services.catalogue.sources():
            yield SourceReading(
                name=state.name, stale=bool(state.stale), scrapers=state.scrapers, checked_at=state.checked_at
            )
