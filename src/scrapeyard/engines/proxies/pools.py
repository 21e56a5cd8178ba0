"""Pools of proxies by name: choosing an exit, and learning from how it did."""

import time
from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from scrapeyard.engines.port import Proxy
from scrapeyard.engines.proxies.pool import ExitPlace, Exits, exits_of
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import ProxyPool
from scrapeyard.telemetry.events import get_log

log = get_log("proxies")


class ProxyPools:
    """The pools of this process. Settings give the first; `adopt` changes them while running."""

    def __init__(self, pools: Sequence[ProxyPool] = (), *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pools: dict[str, ProxyPool] = {}
        self._exits: dict[str, Exits] = {}
        self._warned: set[str] = set()
        self._guarded: frozenset[str] = frozenset()
        self.adopt(pools)

    @property
    def tiers(self) -> tuple[ProxyPool, ...]:
        """Every pool, the cheapest first."""
        return tuple(self._pools.values())

    def adopt(self, pools: Sequence[ProxyPool], guarded: Collection[str] = ()) -> None:
        """These are the pools from now on, the cheapest first. One that has not changed keeps what was learnt. The
        addresses of those named in `guarded` must pass the guard."""
        self._guarded = frozenset(guarded)
        kept = {pool.name: self._exits[pool.name] for pool in pools if self._pools.get(pool.name) == pool}
        self._exits = {pool.name: kept.get(pool.name) or exits_of(pool, self._clock) for pool in pools}
        self._warned &= kept.keys()
        self._pools = {pool.name: pool for pool in pools}

    def choose(
        self, pool_name: str, *, site: str = "", session: str = "", country: str = "", state: str = "", city: str = ""
    ) -> Proxy:
        """An exit of the pool, by its rotation. A place that it cannot serve is left out, with a warning once.

        Raises FetchFailed (`fetch_proxy`) when there is no such pool.
        """
        pool, exits = self._pools.get(pool_name), self._exits.get(pool_name)
        if pool is None or exits is None:
            known = ", ".join(self._pools) or "none"
            message = f"there is no proxy pool {pool_name[:40]!r}; known are: {known}; GET /api/proxies lists them"
            raise FetchFailed(ExitReason.FETCH_PROXY, message)
        place, why = exits.served(ExitPlace.of(country, state, city))
        if why and pool_name not in self._warned:
            self._warned.add(pool_name)
            log.warning("proxies.place_ignored", pool=pool_name, country=country, state=state, city=city, why=why)
        proxy = exits.choose(_key(pool, site, session), place)
        return replace(proxy, guarded=True) if pool_name in self._guarded else proxy

    def report(self, proxy: Proxy, ok: bool | None) -> None:
        """How an exit did: it served, it failed, or (None) nothing was learnt. A pool that is gone is no matter."""
        pool = proxy.name.partition("/")[0]
        exits = self._exits.get(pool)
        if exits is None or ok is None:
            return
        if ok:
            if exits.health.good(proxy.name):
                log.info("proxies.back", proxy=proxy.name)
        elif seconds := exits.health.bad(proxy.name):
            log.warning("proxies.rests", proxy=proxy.name, seconds=round(seconds, 1))

    def standing(self) -> dict[str, tuple[int, list[str]]]:
        """By pool: how many exits there are, and which rest."""
        return {name: (exits.size, exits.health.resting()) for name, exits in self._exits.items()}


def _key(pool: ProxyPool, site: str, session: str) -> str:
    if pool.rotation == "session":
        return f"session {session}" if session else ""
    return f"site {site}" if pool.rotation == "site" and site else ""
