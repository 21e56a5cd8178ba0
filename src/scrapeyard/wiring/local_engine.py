"""The worker's engine for a command without a server: every stage, with what they share in this process alone."""

import os
from contextlib import AsyncExitStack
from pathlib import Path

from scrapeyard.engines.cache.disk import DiskPages
from scrapeyard.engines.escalation.memory import MemoryWays
from scrapeyard.engines.http.cookies import MemorySessions
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.ledger import OwnLedgers
from scrapeyard.engines.politeness.memory import MemoryGate
from scrapeyard.engines.politeness.policies import FixedPolicies
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.engines.proxies.stored import adopt_kept
from scrapeyard.errors import StoreUnavailable
from scrapeyard.settings import Settings
from scrapeyard.store.database.written import WrittenOverrides, read_written
from scrapeyard.telemetry.events import get_log
from scrapeyard.wiring.data_folder import DATABASE
from scrapeyard.wiring.pipeline import Engine, Shared, assemble, near_pages

log = get_log("wiring")
_MEGABYTE = 2**20


async def start_local_engine(settings: Settings, pages: Path, stack: AsyncExitStack) -> Engine:
    """The engine, started; `stack` stops it. Cached pages are in the folder `pages`, for one process at a time.

    Raises SettingsInvalid.
    """
    cache = settings.cache
    limit, largest = int(cache.shared_mb * _MEGABYTE), int(cache.max_page_mb * _MEGABYTE)
    written = written_here(settings)
    sessions = MemorySessions()
    shared = Shared(
        sites=Sites(settings.sites.whole_hosts),
        policies=FixedPolicies(settings.sites, written.rules),
        gate=MemoryGate(),
        pages=DiskPages(pages, limit_bytes=limit, max_page_bytes=largest),
        near=near_pages(settings),
        ways=MemoryWays(settings.escalation.remember_seconds),
        pools=ProxyPools(settings.proxies.pools),
        meters=None,
        jobs=OwnLedgers(),
        sessions=sessions,
    )
    adopt_kept(shared.pools, settings.proxies.pools, written.pools)
    engine = assemble(settings, shared, WreqEngine(settings.http, sessions=sessions))
    for part in (shared.gate, shared.pages, shared.ways, engine):
        stack.push_async_callback(part.stop)
        await part.start()
    return engine


def written_here(settings: Settings) -> WrittenOverrides:
    """What operators wrote into the database in the data directory. Nothing if there is none, or if the settings name
    another database, which would have to be asked over the network. Raises SettingsInvalid."""
    file = settings.data_dir.resolve() / DATABASE
    if settings.database_url.get_secret_value() or not os.access(file, os.R_OK):
        return WrittenOverrides()
    from scrapeyard.wiring.backends import make_masters  # noqa: PLC0415 - as for a store

    try:
        return read_written(file, make_masters(settings))
    except StoreUnavailable as error:
        log.warning("sites.settings_unknown", error=error.message)
        return WrittenOverrides()
