"""Changes by operators: channels, sites, pools of proxies.

Every method raises StoreUnavailable when the database does not answer; nothing is then half done. Times are Unix
seconds (float), given by the caller.
"""

from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.errors import SealBroken
from scrapeyard.model.fetching import RobotsMode
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.telemetry.events import get_log

log = get_log("secrets")


class ChannelMove(Struct, frozen=True, kw_only=True):
    """A move of a channel by an operator. `before` is empty if it was not moved until then, `after` if the move was
    undone and the source decides."""

    scraper_id: str
    channel: str
    before: str
    after: str
    moved_at: float


class ChannelStore(Protocol):
    """Channels moved by operators. They override the source."""

    async def current(self) -> dict[str, dict[str, str]]:
        """By scraper id: channel → version. Only channels that are currently moved."""

    async def move(self, scraper_id: str, channel: str, version: str, now: float) -> ChannelMove | None:
        """Point a channel to a version. None if it already points there; no move is then recorded."""

    async def clear(self, scraper_id: str, channel: str, now: float) -> ChannelMove | None:
        """Undo a move, so that the source decides again. None if the channel was not moved."""

    async def moves(self, scraper_id: str, limit: int) -> tuple[ChannelMove, ...]:
        """The moves of one scraper's channels, newest first."""


class SiteRules(Struct, frozen=True, kw_only=True):
    """Rules of operators for one site. None if the setting for every site applies."""

    site: str
    rate: float | None = None
    """Requests a second; 0: no limit."""
    burst: int | None = None
    concurrency: int | None = None
    """Requests in flight; 0: any number."""
    adapt: bool | None = None
    min_rate: float | None = None
    breaker_failures: int | None = None
    breaker_ratio: float | None = None
    breaker_seconds: float | None = None
    robots: RobotsMode | None = None
    note: str = ""
    updated_at: float = 0.0


class SiteStore(Protocol):
    """Rules of operators for sites."""

    async def rules(self) -> tuple[SiteRules, ...]:
        """All rules, by site."""

    async def mark(self) -> str:
        """A mark that changes whenever any rule does; cheap to read."""

    async def put(self, rules: SiteRules) -> None:
        """Write the rules of a site, replacing existing ones."""

    async def remove(self, site: str) -> bool:
        """Remove the rules of a site, so that the settings apply. False if there were none."""


class KeptPool(Struct, frozen=True, kw_only=True):
    """A pool of proxies created through the API. Its `repr` hides the definition."""

    name: str
    definition: bytes
    """As JSON, passwords included. The database has it sealed."""
    changed_at: float

    def __repr__(self) -> str:
        return f"KeptPool(name={self.name!r}, definition=***, changed_at={self.changed_at!r})"


def pool_place(name: str) -> str:
    """What the seal of a pool is bound to."""
    return f"proxy_pools/{name}"


def opened_pool(pool: KeptPool, sealer: Sealer) -> KeptPool | None:
    """The pool with its definition in clear; None, and logged, if it cannot be opened."""
    try:
        return replace(pool, definition=sealer.open(bytes(pool.definition), pool_place(pool.name)))
    except SealBroken as error:
        log.error("secrets.seal_broken", problem=error.message)
        return None


class PoolStanding(Struct, frozen=True, kw_only=True):
    """State of a pool in one worker."""

    pool: str
    exits: int
    resting: int
    names: tuple[str, ...] = ()
    """Names of resting proxies, at most some dozens."""


class ProxyStore(Protocol):
    """Pools of proxies besides those of the settings, and the state of all."""

    async def pools(self) -> tuple[KeptPool, ...]:
        """Every pool, by name."""

    async def put_pool(self, pool: KeptPool) -> None:
        """Write a pool, replacing one of the same name."""

    async def remove_pool(self, name: str) -> bool:
        """Remove a pool; True if it existed."""

    async def put_standings(self, worker_id: str, standings: tuple[PoolStanding, ...], now: float) -> None:
        """Write the state of a worker's pools, replacing its last report."""

    async def standings(self, seen_after: float) -> dict[str, tuple[PoolStanding, ...]]:
        """Reports since then, by worker."""

    async def forget_standings_before(self, seen_before: float) -> None:
        """Drop reports of workers that have been silent for long."""
