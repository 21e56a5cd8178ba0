"""How each site is to be treated: the settings, over them what operators wrote for a site, in every process alike.

Kept in memory, so that asking costs nothing. An edit is in force here when it returns and everywhere else a moment
later, by a signal; a process that missed the signal finds it within EVERY_SECONDS.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from scrapeyard.engines.politeness.port import SiteLimits
from scrapeyard.errors import QueueUnavailable
from scrapeyard.model import SitesChanged, new_id
from scrapeyard.model.fetching import RobotsMode
from scrapeyard.queues import messages
from scrapeyard.queues.port import Queue
from scrapeyard.queues.signals import Signals
from scrapeyard.settings import SiteSettings
from scrapeyard.store.ports.followed import FollowedTable
from scrapeyard.store.ports.overrides import SiteRules, SiteStore
from scrapeyard.telemetry.events import get_log

log = get_log("sites")
EVERY_SECONDS = 5.0
_OVERRIDES = (
    "rate",
    "burst",
    "concurrency",
    "adapt",
    "min_rate",
    "breaker_failures",
    "breaker_ratio",
    "breaker_seconds",
)
MAX_CRAWL_RATES = 10_000


class FixedPolicies:
    """The settings and the rules that were given, in this process alone."""

    def __init__(self, settings: SiteSettings, rules: Iterable[SiteRules] = ()) -> None:
        self._settings = settings
        self.wait_seconds = settings.wait_seconds
        """The longest that a fetch waits for its turn."""
        self._usual = SiteLimits(**{name: getattr(settings, name) for name in _OVERRIDES})
        self._for_jobs = SiteLimits(rate=settings.job_rate, adapt=False)
        self._rules: Mapping[str, SiteRules] = {each.site: each for each in rules}
        self._limits: dict[str, SiteLimits] = {}
        """Of sites with rules, or whose robots.txt asks for a delay."""
        self._crawl: dict[str, float] = {}
        self._reckon()

    def limits(self, site: str) -> SiteLimits:
        """In force now."""
        return self._limits.get(site, self._usual)

    def robots(self, site: str, *, for_job: bool = False) -> RobotsMode:
        """What the site's robots.txt means, unless the call says; `for_job` to a job on a public host."""
        rules = self._rules.get(site)
        usual = self._settings.job_robots if for_job and self._settings.robots == "ignore" else self._settings.robots
        return (rules.robots if rules else None) or usual

    def job_limits(self, site: str) -> SiteLimits | None:
        """What holds for all jobs on a public site together, beside `limits`; None if operators set its rate, or want
        no limit."""
        rules = self._rules.get(site)
        is_set = self._usual.rate or (rules is not None and rules.rate is not None)
        return None if is_set or not self._settings.job_rate else self._for_jobs

    def rules(self, site: str) -> SiteRules | None:
        """What operators wrote for this site; None: nothing."""
        return self._rules.get(site)

    def written(self) -> Mapping[str, SiteRules]:
        """All that operators wrote."""
        return self._rules

    def note_crawl_delay(self, site: str, rate: float) -> None:
        """The site's robots.txt asks for no more than so many requests a second; 0: it does not."""
        if self._crawl.get(site, 0.0) == rate:
            return
        self._crawl.pop(site, None)
        if rate:
            self._crawl[site] = rate
        while len(self._crawl) > MAX_CRAWL_RATES:
            self._crawl.pop(next(iter(self._crawl)))
        self._reckon()

    def _reckon(self) -> None:
        self.may_obey_robots = self._settings.robots == "obey" or any(rules.robots for rules in self._rules.values())
        """Whether robots.txt may be obeyed without a call or a job that asks for it."""
        self._limits = {site: self._of(site) for site in {*self._rules, *self._crawl}}

    def _of(self, site: str) -> SiteLimits:
        rules = self._rules.get(site)
        given: dict[str, Any] = {name: getattr(rules, name) for name in _OVERRIDES} if rules else {}
        set_here = {name: value for name, value in given.items() if value is not None}
        return msgspec.structs.replace(self._usual, crawl_rate=self._crawl.get(site, 0.0), **set_here)


class SitePolicies(FixedPolicies):
    """The rules of the store. While it is away those last known stay in force; before that, the settings alone."""

    def __init__(
        self, settings: SiteSettings, sites: SiteStore, queue: Queue, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(settings)
        self._sites = sites
        self._queue = queue
        self._clock = clock
        self._me = new_id("sites")
        self._mark = ""
        self._table = FollowedTable[Mapping[str, SiteRules]](
            "site-policies",
            EVERY_SECONDS,
            read=self._read,
            adopt=self._adopt,
            on_away=lambda error: log.warning("sites.settings_unknown", error=error.message),
        )
        self._signals = Signals(queue, "site-policies-signals", on_listening=self._table.refresh_soon)
        self._signals.subscribe(SitesChanged, self._receive)

    async def start(self) -> None:
        """A first look, then keep looking. May be called twice."""
        await self._table.start()
        await self._signals.start()

    async def stop(self) -> None:
        """Look no more. May be called twice."""
        await self._signals.stop()
        await self._table.stop()

    async def put(self, rules: SiteRules) -> SiteRules:
        """Write a site's rules, whole. In force here on return. Raises StoreUnavailable."""
        rules = msgspec.structs.replace(rules, updated_at=self._clock())
        async with self._table.lock:
            await self._sites.put(rules)
            self._adopt({**self._rules, rules.site: rules})
        await self._report(rules.site)
        return rules

    async def remove(self, site: str) -> bool:
        """The settings decide again. False when there was nothing. Raises StoreUnavailable."""
        async with self._table.lock:
            found = await self._sites.remove(site)
            self._adopt({name: rules for name, rules in self._rules.items() if name != site})
        await self._report(site)
        return found

    async def _read(self) -> Mapping[str, SiteRules]:
        """Those known already, unless the store's mark says that they changed."""
        mark = await self._sites.mark()
        if mark == self._mark:
            return self._rules
        rules = {rules.site: rules for rules in await self._sites.rules()}
        self._mark = mark
        return rules

    def _adopt(self, rules: Mapping[str, SiteRules]) -> None:
        if rules is not self._rules:
            self._rules = rules
            self._reckon()

    async def _report(self, site: str) -> None:
        """The other processes. One that does not hear it looks by itself."""
        try:
            await self._queue.send(messages.SIGNALS, messages.encode(SitesChanged(sender=self._me)))
        except QueueUnavailable as error:
            log.warning("sites.settings_untold", site=site, error=error.message)

    def _receive(self, signal: SitesChanged) -> None:
        if signal.sender != self._me:
            self._table.refresh_soon()
