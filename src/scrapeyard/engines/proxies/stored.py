"""Pools that operators keep by the API: in the store, and in force in every process beside those of the settings."""

import json
import time
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from pydantic import ValidationError

from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.errors import ScrapeyardError
from scrapeyard.settings import ProxyPool
from scrapeyard.store.ports.followed import FollowedTable
from scrapeyard.store.ports.overrides import KeptPool, PoolStanding, ProxyStore
from scrapeyard.telemetry.events import get_log

log = get_log("proxies")
EVERY_SECONDS = 5.0
MAX_NAMES = 50
"""Of exits that rest, told of each pool."""
_COST = ("datacenter", "residential", "unlocker")


class PoolSecrets(Struct, frozen=True, kw_only=True):
    """What of a pool is never shown."""

    password: str = ""
    urls: tuple[str, ...] = ()


class StoredPools:
    """Brings what is kept into `pools`: at the start, and every EVERY_SECONDS. While the store is away what was last
    known stays in force; a process that starts then has the pools of the settings alone.

    With a `worker_id` it also tells the store how the pools do.
    """

    def __init__(
        self,
        proxies: ProxyStore,
        own: Sequence[ProxyPool],
        pools: ProxyPools,
        *,
        worker_id: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`own` are the pools of the settings."""
        self._proxies = proxies
        self._own = tuple(own)
        self._pools = pools
        self._worker_id = worker_id
        self._clock = clock
        self._kept: dict[str, KeptPool] = {}
        self._untold = False
        self._table = FollowedTable[Sequence[KeptPool]](
            "kept-pools",
            EVERY_SECONDS,
            read=lambda: proxies.pools(),  # noqa: PLW0108  a store may be put in place later
            adopt=self._adopt,
            on_away=lambda error: log.warning("proxies.pools_unknown", error=error.message),
            after_read=self._report if worker_id else None,
        )

    @property
    def pools(self) -> ProxyPools:
        """What it keeps up to date."""
        return self._pools

    @property
    def count(self) -> int:
        """How many are kept."""
        return len(self._kept)

    def is_own(self, name: str) -> bool:
        """Whether the settings have a pool of this name, which the API cannot change."""
        return any(pool.name == name for pool in self._own)

    def changed_at(self, name: str) -> float | None:
        """When a pool was last written by the API; None: it is none of those."""
        return self._kept[name].changed_at if name in self._kept else None

    async def start(self) -> None:
        """A first look, then keep looking. May be called twice."""
        await self._table.start()

    async def stop(self) -> None:
        """Look no more. May be called twice."""
        await self._table.stop()

    async def put(self, pool: ProxyPool) -> None:
        """Keep a pool, over one of its name; in force here on return. Raises StoreUnavailable."""
        kept = KeptPool(name=pool.name, definition=write_pool(pool), changed_at=self._clock())
        async with self._table.lock:
            await self._proxies.put_pool(kept)
            self._adopt([*(each for each in self._kept.values() if each.name != pool.name), kept])

    async def remove(self, name: str) -> bool:
        """Keep it no more; gone here on return. False when it was not kept. Raises StoreUnavailable."""
        async with self._table.lock:
            there = await self._proxies.remove_pool(name)
            self._adopt([each for each in self._kept.values() if each.name != name])
        return there

    async def refresh(self) -> None:
        """Read the store now, and tell it how the pools do."""
        await self._table.refresh()

    async def _report(self) -> None:
        try:
            await self._proxies.put_standings(self._worker_id, standings(self._pools), self._clock())
            self._untold = False
        except ScrapeyardError as error:
            if not self._untold:
                log.warning("proxies.standing_untold", error=error.message)
            self._untold = True

    def _adopt(self, kept: Sequence[KeptPool]) -> None:
        known = {each.name: each for each in kept if not self.is_own(each.name)}
        if known == self._kept:
            return
        self._kept = known
        adopt_kept(self._pools, self._own, tuple(known.values()))


def adopt_kept(pools: ProxyPools, own: Sequence[ProxyPool], kept: Sequence[KeptPool]) -> None:
    """Put what is kept in force beside `own`, the pools of the settings, which keep their names."""
    names = {pool.name for pool in own}
    known = {each.name: each for each in kept if each.name not in names}
    tiers = in_tiers(own, _readable(sorted(known.values(), key=lambda each: each.name)))
    pools.adopt(tiers, guarded=known)


def standings(pools: ProxyPools) -> tuple[PoolStanding, ...]:
    """How the pools of this process do."""
    return tuple(
        PoolStanding(pool=name, exits=exits, resting=len(resting), names=tuple(resting[:MAX_NAMES]))
        for name, (exits, resting) in pools.standing().items()
    )


def in_tiers(own: Sequence[ProxyPool], kept: Iterable[ProxyPool]) -> list[ProxyPool]:
    """The cheapest first: the settings' own in their order, each of the others behind the last that is no dearer."""
    tiers = list(own)
    for pool in kept:
        cost = _COST.index(pool.proxy_class)
        places = [place for place, each in enumerate(tiers, 1) if _COST.index(each.proxy_class) <= cost]
        tiers.insert(max(places, default=0), pool)
    return tiers


def write_pool(pool: ProxyPool) -> bytes:
    """As JSON, with its secrets."""
    fields = pool.model_dump(mode="json", exclude_defaults=True)
    hidden = secrets_of(pool)
    return json.dumps({**fields, "password": hidden.password, "urls": hidden.urls}).encode()


def read_pool(kept: KeptPool) -> ProxyPool:
    """Raises pydantic's ValidationError, or ValueError, when it was written by another version or hand."""
    return ProxyPool.model_validate(json.loads(kept.definition))


def secrets_of(pool: ProxyPool) -> PoolSecrets:
    """In clear."""
    return PoolSecrets(
        password=pool.password.get_secret_value(), urls=tuple(url.get_secret_value() for url in pool.urls)
    )


def _readable(kept: Iterable[KeptPool]) -> Iterable[ProxyPool]:
    for each in kept:
        try:
            yield read_pool(each)
        except ValidationError as error:
            faults = "; ".join(str(fault["msg"]) for fault in error.errors()[:3])
            log.warning("proxies.pool_unreadable", pool=each.name, error=faults)
        except ValueError:
            log.warning("proxies.pool_unreadable", pool=each.name, error="not JSON")
