"""The routes that policy allows for a request, and the order in which they are tried."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from scrapeyard.engines.escalation.port import Remembered, Tried
from scrapeyard.engines.ledger import RESIDENTIAL
from scrapeyard.engines.port import Caller, FetchRequest, Proxy, Route, RouteEngine
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import EscalationSettings, ProxyPool

_ENOUGH = 3
_SECONDS = 3600.0
_MAX_SITES = 10_000


class SoftBlockHistory:
    """Counts, for each site, how often other ways were tried on a mere suspicion and changed nothing."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sites: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def worth_it(self, site: str) -> bool:
        """Whether to try again; after three times in vain, not for an hour."""
        count, since = self._sites.get(site, (0, 0.0))
        return count < _ENOUGH or self._clock() - since > _SECONDS

    def in_vain(self, site: str) -> None:
        """Other ways gave the same answer."""
        count, since = self._sites.get(site, (0, 0.0))
        if self._clock() - since > _SECONDS:
            count = 0
        self._sites[site] = (count + 1, self._clock())
        self._sites.move_to_end(site)
        if len(self._sites) > _MAX_SITES:
            self._sites.popitem(last=False)

    def helped(self, site: str) -> None:
        """Another way got the page."""
        self._sites.pop(site, None)


NO_POOL = "none"
SOLVER_COST = 50.0
_BROWSER_COST = 20.0
_LIGHT_COST = 5.0
_CLASS_COST = {"datacenter": 2.0, "residential": 10.0, "unlocker": 25.0}
_PROFILE_COST = 0.1
"""Between equals the one that comes first in the settings is cheaper."""

Kind = Literal["first", "profile", "tier", "browser", "light", "solver"]


class Pools(Protocol):
    """Where exits come from. `engines.proxies.pools.ProxyPools` is one."""

    @property
    def tiers(self) -> tuple[ProxyPool, ...]:
        """Every pool, the cheapest first."""

    def choose(
        self, pool_name: str, *, site: str = "", session: str = "", country: str = "", state: str = "", city: str = ""
    ) -> Proxy:
        """An exit. Raises FetchFailed (`fetch_proxy`) when there is no such pool."""


class RouteOption(Struct, frozen=True, kw_only=True):
    """One way, before an exit is chosen for it."""

    kind: Kind
    profile: str = ""
    """Empty: as the settings say."""
    pool: str = NO_POOL
    cost: float = 1.0
    engine: RouteEngine = "http"
    """What makes the request; set by itself."""
    name: str = ""
    """As it is remembered and shown; set by itself."""

    def __post_init__(self) -> None:
        if self.kind in ("browser", "light"):
            force_setattr(self, "engine", self.kind)
        face = self.kind if self.kind in ("solver", "browser", "light") else self.profile or "plain"
        force_setattr(self, "name", face if self.pool == NO_POOL else f"{face} via {self.pool}")


@lru_cache(maxsize=256)
def _straight(profile: str) -> RouteOption:
    """The first rung of most requests, which share it."""
    return RouteOption(kind="first", profile=profile)


@lru_cache(maxsize=256)
def _without_exit(profile: str, engine: RouteEngine) -> Route:
    return Route(profile=profile, engine=engine)


def _none_residential(caller: Caller) -> bool:
    """Whether a budget of 0 forbids residential and unlocking proxies."""
    return any(budget.residential_megabytes == 0 for budget in (caller.policy.budget, caller.job_budget))


class RoutePlanner:
    """Makes the rungs for a request. What the request or its policy fixes is the same on all of them."""

    def __init__(
        self,
        settings: EscalationSettings,
        pools: Pools,
        *,
        profile: str,
        default_pool: str,
        solver: bool = False,
        browser: bool = False,
    ) -> None:
        """`profile` and `default_pool` are what a request gets that asks for none. `solver` and `browser`: whether
        there is one."""
        self._settings = settings
        self._profile = profile
        self._pools = pools
        self._default_pool = default_pool
        self._solver = solver
        self._browser = browser and settings.browser
        self._solver_browses = self._browser and solver and not settings.solver_url
        """Whether the solver is our own browser. It passes what the browser passes, and leaves a clearance with which
        plain HTTP goes on; so it is tried first where a page was challenged."""

    def escalates(self, caller: Caller) -> bool:
        """Whether a block leads to another way."""
        asked = caller.policy.escalate
        return self._settings.enabled if asked is None else asked

    def allows(self, proxy_class: str, caller: Caller) -> bool:
        """Whether policy lets the caller use proxies of this class."""
        return proxy_class not in RESIDENTIAL or caller.policy.allow_residential is not False

    def first(self, request: FetchRequest, caller: Caller) -> RouteOption:
        """What is tried where nothing is known of the site."""
        pool = request.proxy or caller.policy.proxy or self._default_pool
        profile = request.profile or caller.policy.profile or self._profile
        if pool == NO_POOL:
            return _straight(profile)
        return RouteOption(kind="first", profile=profile, pool=pool, cost=self._cost(pool))

    def rungs(self, request: FetchRequest, caller: Caller, known: Remembered) -> tuple[RouteOption, ...]:
        """The best first, at most `max_ways`. One rung where nothing may be escalated."""
        every = self._every(request, caller)
        if not self.escalates(caller):
            return order(every, known)[:1]
        # For one page, our own browser is tried as a solver or as it is: both together count as one.
        return order(trim(every, self._settings.max_ways + self._solver_browses), known)

    def may_browse(self, request: FetchRequest, caller: Caller) -> bool:
        """Whether a browser may be tried where plain HTTP does not do."""
        if not self._browser or request.engine != "auto" or request.body or request.keep is not None:
            return False
        return request.method.upper() == "GET" and self.escalates(caller)

    def browsing(self, request: FetchRequest, caller: Caller) -> RouteOption:
        """The browser, by the request's own exit."""
        pool = self.first(request, caller).pool
        if request.engine == "light":
            return RouteOption(kind="light", pool=pool, cost=_LIGHT_COST)
        return RouteOption(kind="browser", pool=pool, cost=_BROWSER_COST)

    def route(self, rung: RouteOption, caller: Caller, *, site: str, session: str) -> Route:
        """How a rung's request is made. Raises FetchFailed if it has no exit."""
        if rung.pool == NO_POOL:
            return _without_exit(rung.profile, rung.engine)
        proxy = self.exit(rung, caller, site=site, session=session)
        return Route(profile=rung.profile, proxy=proxy, engine=rung.engine)

    def exit(self, rung: RouteOption, caller: Caller, *, site: str = "", session: str = "") -> Proxy | None:
        """The exit of a rung; None: none. Raises FetchFailed."""
        if rung.pool == NO_POOL:
            return None
        policy = caller.policy
        place = {"country": policy.country, "state": policy.state, "city": policy.city}
        proxy = self._pools.choose(rung.pool, site=site, session=session, **place)
        if not self.allows(proxy.proxy_class, caller):
            message = (
                f"the pool {rung.pool} is {proxy.proxy_class}, and policy.allow_residential is false; allow it, or "
                "name another pool"
            )
            raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, message)
        return proxy

    def solving(self, request: FetchRequest, caller: Caller) -> RouteOption:
        """The solver, by the request's own exit."""
        first = self.first(request, caller)
        return RouteOption(kind="solver", pool=first.pool, cost=SOLVER_COST + first.cost)

    def _every(self, request: FetchRequest, caller: Caller) -> tuple[RouteOption, ...]:
        first = self.first(request, caller)
        found = [first, *self._profiles(request, caller, first), *self._tiers(request, caller, first)]
        if self.may_browse(request, caller):
            found.append(self.browsing(request, caller))
        if self._solver and request.engine != "http" and self.escalates(caller):
            found.append(self.solving(request, caller))
        if self._solver_browses and found[-2:-1] == [self.browsing(request, caller)]:
            found[-2:] = reversed(found[-2:])
        return tuple(found)

    def _profiles(self, request: FetchRequest, caller: Caller, first: RouteOption) -> list[RouteOption]:
        if request.profile or caller.policy.profile:
            return []
        others = [profile for profile in self._settings.profiles if profile != first.profile]
        return [
            RouteOption(kind="profile", profile=profile, pool=first.pool, cost=first.cost + _PROFILE_COST * place)
            for place, profile in enumerate(others, 1)
        ]

    def _tiers(self, request: FetchRequest, caller: Caller, first: RouteOption) -> list[RouteOption]:
        if request.proxy or caller.policy.proxy:
            return []
        names = [pool.name for pool in self._pools.tiers if self.allows(pool.proxy_class, caller)]
        dearer = names[names.index(first.pool) + 1 :] if first.pool in names else names
        if _none_residential(caller):
            dear = {pool.name for pool in self._pools.tiers if pool.proxy_class in RESIDENTIAL}
            dearer = [name for name in dearer if name not in dear]
        return [RouteOption(kind="tier", profile=first.profile, pool=name, cost=self._cost(name)) for name in dearer]

    def _cost(self, pool_name: str) -> float:
        if pool_name == NO_POOL:
            return 1.0
        found = (pool for pool in self._pools.tiers if pool.name == pool_name)
        return next((_CLASS_COST[pool.proxy_class] for pool in found), 1.0)


def trim(rungs: Sequence[RouteOption], most: int) -> tuple[RouteOption, ...]:
    """The first so many, but one of each kind before two of any: a fourth browser helps less than a first proxy."""
    left = list(rungs)
    for kind in ("profile", "tier"):
        same = [rung for rung in left if rung.kind == kind]
        for rung in reversed(same[1:]):
            if len(left) > most:
                left.remove(rung)
    return tuple(left[:most])


def order(rungs: Sequence[RouteOption], known: Remembered) -> tuple[RouteOption, ...]:
    """What worked lately first, the cheapest of it; then what nobody tried; last what failed lately.

    The first rung of all is the cheapest there is, so it is tried again as soon as its failures have faded.
    """
    if not known.tried:
        return tuple(rungs)
    by_name = {each.way: each for each in known.tried}
    ranked = [(_rank(rung, by_name.get(rung.name)), place, rung) for place, rung in enumerate(rungs)]
    return tuple(rung for _, _, rung in sorted(ranked, key=lambda each: each[:2]))


def _rank(rung: RouteOption, tried: Tried | None) -> tuple[int, float]:
    if tried is None or not tried.is_known:
        return (0, rung.cost) if rung.kind == "first" else (1, 0.0)
    return (0, rung.cost) if tried.works else (2, rung.cost)
