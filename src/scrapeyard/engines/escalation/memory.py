"""What is remembered, in one process."""

import time
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct, field

from scrapeyard.engines.escalation.port import MOST_COUNTED, NOTHING, Remembered, Tried
from scrapeyard.engines.solver.port import Clearance

MAX_SITES = 20_000
MAX_WAYS = 50
MAX_CLEARANCES = 20
FADES = 24
"""Half-lives in the time for which a site is remembered."""
_VIEW_SECONDS = 1.0


class _Site(Struct):
    tried: dict[str, Tried] = field(default_factory=dict)
    clearances: dict[tuple[str, str], Clearance] = field(default_factory=dict)
    touched_at: float = 0.0
    view: Remembered | None = None
    """As it was last recalled; None: something was learnt since."""
    viewed_at: float = 0.0


class MemoryWays:
    """A WayMemory for one process. The site not touched for longest goes when there are too many."""

    def __init__(
        self, remember_seconds: float, *, clock: Callable[[], float] = time.time, max_sites: int = MAX_SITES
    ) -> None:
        self._remember = remember_seconds
        self._half_life = remember_seconds / FADES
        self._clock = clock
        self._max_sites = max_sites
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._claims: dict[tuple[str, str], float] = {}

    async def start(self) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Nothing to do."""

    async def recall(self, site: str, *, fresh: bool = False) -> Remembered:  # noqa: ARG002  it is never old
        """At once."""
        known = self._sites.get(site)
        if known is None:
            return NOTHING
        now = self._clock()
        if known.view is not None and now - known.viewed_at < _VIEW_SECONDS:
            return known.view
        if known.touched_at + self._remember <= now:
            del self._sites[site]
            return NOTHING
        tried = tuple(faded(each, now, self._half_life) for each in known.tried.values())
        settled = frozenset(each.way for each in known.tried.values() if _is_well_known(each, now))
        known.view = Remembered(tried=tried, clearances=self._holding(known, now), settled=settled)
        known.viewed_at = now
        return known.view

    async def note(self, site: str, way: str, *, ok: bool, cost: float) -> None:
        """At once."""
        self.learn(site, way, ok=ok, cost=cost)

    def learn(self, site: str, way: str, *, ok: bool, cost: float) -> bool:
        """Note it; False: it was known so well that nothing changed."""
        now, known = self._clock(), self._sites.get(site)
        before = known.tried.get(way) if known is not None else None
        if ok and before is not None and _is_well_known(before, now):
            return False
        known = self._site(site)
        if before is None and len(known.tried) >= MAX_WAYS:
            return False
        known.tried[way] = counted(before, way, ok=ok, cost=cost, now=now, half_life=self._half_life)
        return True

    async def keep(self, site: str, clearance: Clearance) -> None:
        """The oldest goes when a site has too many."""
        known = self._site(site)
        known.clearances[clearance.host, clearance.exit] = clearance
        if len(known.clearances) > MAX_CLEARANCES:
            del known.clearances[min(known.clearances, key=lambda key: known.clearances[key].got_at)]

    async def drop(self, site: str, clearance: Clearance) -> None:
        """By its id."""
        known = self._sites.get(site)
        key = (clearance.host, clearance.exit)
        if known is not None and (held := known.clearances.get(key)) is not None and held.id == clearance.id:
            del known.clearances[key]
            known.view = None

    async def claim(self, site: str, exit_name: str, seconds: float) -> bool:
        """By this process's clock."""
        now = self._clock()
        if self._claims.get((site, exit_name), 0.0) > now:
            return False
        self._claims[site, exit_name] = now + seconds
        return True

    async def release(self, site: str, exit_name: str) -> None:
        """At once."""
        self._claims.pop((site, exit_name), None)

    async def forget(self, site: str) -> None:
        """At once."""
        self._sites.pop(site, None)

    def adopt(self, site: str, known: Remembered) -> None:
        """This is what is known of a site, from one who knows better."""
        if not known.tried and not known.clearances:
            self._sites.pop(site, None)
            return
        mine = self._site(site)
        mine.tried = {each.way: each for each in known.tried}
        mine.clearances = {(each.host, each.exit): each for each in known.clearances}

    def _site(self, site: str) -> _Site:
        known = self._sites.setdefault(site, _Site())
        known.touched_at = self._clock()
        known.view = None
        self._sites.move_to_end(site)
        if len(self._sites) > self._max_sites:
            self._sites.popitem(last=False)
        return known

    def _holding(self, known: _Site, now: float) -> tuple[Clearance, ...]:
        ended = [key for key, clearance in known.clearances.items() if clearance.expires_at <= now]
        for key in ended:
            del known.clearances[key]
        return tuple(known.clearances.values())


def _is_well_known(tried: Tried, now: float) -> bool:
    """Whether one more success would change nothing: most fetches are such."""
    return not tried.failures and tried.successes >= MOST_COUNTED and 0 <= now - tried.used_at < _VIEW_SECONDS


def faded(tried: Tried, now: float, half_life: float) -> Tried:
    """As it counts now."""
    share = 0.5 ** (max(0.0, now - tried.used_at) / half_life)
    return Tried(
        way=tried.way,
        cost=tried.cost,
        successes=tried.successes * share,
        failures=tried.failures * share,
        used_at=tried.used_at,
    )


def counted(before: Tried | None, way: str, *, ok: bool, cost: float, now: float, half_life: float) -> Tried:
    """With one more try."""
    old = faded(before, now, half_life) if before else None
    successes, failures = (old.successes, old.failures) if old else (0.0, 0.0)
    return Tried(
        way=way,
        cost=cost,
        successes=min(MOST_COUNTED, successes + 1) if ok else successes,
        failures=failures if ok else min(MOST_COUNTED, failures + 1),
        used_at=now,
    )
