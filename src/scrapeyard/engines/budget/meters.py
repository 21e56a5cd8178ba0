"""What was used by day, site, job, proxy, client and scraper; and the stage that counts every request."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime

from scrapeyard.background import Background
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.http.stage import FetchContext, RoutedFetch
from scrapeyard.engines.port import PLAIN, Caller, FetchResponse, Route
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.errors import FetchFailed, ScrapeyardError
from scrapeyard.model import ExitReason, new_id
from scrapeyard.store.ports.operations import Meter, MeterStore, UseFilter
from scrapeyard.telemetry.events import get_log

log = get_log("meters")
EVERY_SECONDS = 5.0
MOST = 20_000
"""Rows held. When there are more, those that are written are let go, and counting begins anew under another name."""
_MILLION = 1_000_000
ELSEWHERE = "*"
"""Stands for the sites beyond MOST while the store is away."""

_Key = tuple[str, str, str, str, str, str, str]
"""Day, job, site, pool, class, client, scraper."""


_NOBODY = Caller()


def day_of(moment: float) -> str:
    """The day of a moment in Unix seconds, in UTC: 2026-01-31."""
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


class Meters:
    """Counts for one process."""

    def __init__(
        self, meters: MeterStore, *, clock: Callable[[], float] = time.time, every_seconds: float = EVERY_SECONDS
    ) -> None:
        self._meters = meters
        self._clock = clock
        self._every = every_seconds
        self._writer = new_id("meter")
        self._rows: dict[_Key, list[int]] = {}
        """Requests, failures, bytes, runs, milliseconds of browsers, tokens of models and their cost in millionths."""
        self._models: dict[str, tuple[float, int, float]] = {}
        """By client: until when it counts, and what models used for it today."""
        self._changed: set[_Key] = set()
        self._one_at_a_time = asyncio.Lock()
        self._background = Background()
        self._away = False
        self._second, self._day = 0, day_of(0)

    async def start(self) -> None:
        """Write now and then. May be called twice."""
        self._background.start(self._keep_writing, name="meters")

    async def stop(self) -> None:
        """Write what is left, if the store answers, and no more. May be called twice."""
        if await self._background.stop():
            await self.flush()

    def count(
        self,
        *,
        site: str,
        caller: Caller | None = None,
        pool: str = "",
        proxy_class: str = "",
        requests: int = 1,
        failures: int = 0,
        size: int = 0,
    ) -> None:
        """Add a request to today's numbers. `pool` and `proxy_class` are empty without a proxy."""
        self.add(caller or _NOBODY, site, pool, proxy_class, (requests, failures, size))

    def add(self, caller: Caller, site: str, pool: str, proxy_class: str, counts: tuple[int, int, int]) -> None:
        """The same in fewer words: `counts` are requests, failures and bytes."""
        row = self._row(caller, site, pool, proxy_class)
        row[0] += counts[0]
        row[1] += counts[1]
        row[2] += counts[2]

    def count_run(self, caller: Caller) -> None:
        """Add a run or item that has ended, and what its browsers took."""
        row = self._row(caller)
        row[3] += 1
        row[4] += round(caller.ledger.browser_ms)

    def count_model(self, caller: Caller, tokens: int, cost: float) -> None:
        """Add what a model used."""
        row = self._row(caller)
        row[5] += tokens
        row[6] += round(_MILLION * cost)
        until, used, paid = self._models.get(caller.client, (0.0, 0, 0.0))
        self._models[caller.client] = (until, used + tokens, paid + cost)

    async def models_today(self, client: str) -> tuple[int, float]:
        """Tokens and money that models used for a client today, in all workers: up to about ten seconds old for the
        others. Raises StoreUnavailable."""
        now = self._clock()
        until, tokens, cost = self._models.get(client, (0.0, 0, 0.0))
        if now >= until:
            await self.flush()
            uses = await self._meters.use(["day"], day_of(now), where=UseFilter(client=client))
            tokens, cost = sum(use.ai_tokens for use in uses), sum(use.ai_millionths for use in uses) / _MILLION
            if len(self._models) > MOST:
                self._models.clear()
            self._models[client] = (now + EVERY_SECONDS, tokens, cost)
        return tokens, cost

    def _row(self, caller: Caller, site: str = "", pool: str = "", proxy_class: str = "") -> list[int]:
        """The numbers that the next write brings to the store."""
        scraper = caller.scraper.ref.id if caller.scraper else ""
        key = (self._today(), caller.job_id, site, pool, proxy_class, caller.client, scraper)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= 2 * MOST:
                key = (key[0], "", ELSEWHERE, pool, proxy_class, caller.client, "")
            row = self._rows.setdefault(key, [0, 0, 0, 0, 0, 0, 0])
        self._changed.add(key)
        return row

    def _today(self) -> str:
        """Writing a date costs more than counting, so it is written once for each second."""
        second = int(self._clock())
        if second != self._second:
            self._second, self._day = second, day_of(second)
        return self._day

    async def flush(self) -> None:
        """Write what changed. While the store is away it is kept, and written later."""
        async with self._one_at_a_time:
            changed, self._changed = self._changed, set()
            try:
                await self._meters.put([self._meter(key) for key in sorted(changed)])
            except ScrapeyardError as error:
                self._changed |= changed
                if not self._away:
                    log.warning("meters.not_written", error=error.message)
                self._away = True
                return
            self._away = False
            self._let_go()

    def _let_go(self) -> None:
        """Under a new name what goes on begins at zero, beside what is written. Not while anything is unwritten."""
        if len(self._rows) > MOST and not self._changed:
            self._rows.clear()
            self._writer = new_id("meter")

    def _meter(self, key: _Key) -> Meter:
        day, job_id, site, pool, proxy_class, client, scraper = key
        requests, failures, size, runs, browser_ms, ai_tokens, ai_millionths = self._rows[key]
        return Meter(
            day=day,
            writer=self._writer,
            job_id=job_id,
            site=site,
            pool=pool,
            proxy_class=proxy_class,
            client=client,
            scraper=scraper,
            requests=requests,
            failures=failures,
            bytes=size,
            runs=runs,
            browser_ms=browser_ms,
            ai_tokens=ai_tokens,
            ai_millionths=ai_millionths,
        )

    async def _keep_writing(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            await self.flush()


class Metered:
    """A RoutedFetch around the client. Tells budgets and meters what was used up, and pools how their exits did.

    An exit failed when the proxy is to blame (`fetch_proxy`), and did well when any answer came through it. Of other
    failures nothing is learnt about it. Without meters, only budgets and pools are told.
    """

    def __init__(
        self,
        inner: RoutedFetch,
        *,
        budgets: Budgets,
        meters: Meters | None,
        pools: ProxyPools,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._inner = inner
        self._budgets = budgets
        self._meters = meters
        self._pools = pools
        self._clock = clock

    async def __call__(self, context: FetchContext, way: Route = PLAIN) -> FetchResponse:
        """As `RoutedFetch`. Raises FetchFailed (`fetch_budget`) when the request must not begin."""
        caller, proxy = context.caller, way.proxy
        proxy_class = proxy.proxy_class if proxy else ""
        is_free = self._budgets.is_unlimited(caller)
        if is_free:
            caller.ledger.begin()
        else:
            await self._budgets.begin(caller, proxy_class)
        began, more, size, ok = self._clock(), 0, 0, None
        try:
            response = await self._inner(context, way)
            more, size, ok = len(response.redirects) + response.repeats, response.bytes_received, True
        except FetchFailed as error:
            size, more = int(error.details.get("bytes_received", 0)), int(error.details.get("repeats", 0))
            ok = False if error.reason is ExitReason.FETCH_PROXY else None
            raise
        finally:
            if proxy is not None:
                self._pools.report(proxy, ok)
            if self._meters is not None:
                pool = proxy.name.partition("/")[0] if proxy else ""
                self._meters.add(caller, context.site, pool, proxy_class, (1 + more, 0 if ok else 1, size))
            seconds = self._clock() - began
            if is_free:
                self._budgets.note(caller, proxy_class, requests=more, size=size, seconds=seconds)
            else:
                await self._budgets.count(caller, proxy_class, requests=more, size=size, seconds=seconds)
        return response
