"""The stage right before the client: every request is counted here, whatever way it takes and however it ends."""

import time
from collections.abc import Callable

from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.politeness.site import Sites
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.engines.route import PLAIN, FetchBy, Way
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason


class Metered:
    """A FetchBy around the client. Tells budgets and meters what was used up, and pools how their exits did.

    An exit failed when the proxy is to blame (`fetch_proxy`), and did well when any answer came through it. Of other
    failures nothing is learnt about it.
    """

    def __init__(
        self,
        inner: FetchBy,
        *,
        budgets: Budgets,
        meters: Meters,
        pools: ProxyPools,
        sites: Sites,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._inner = inner
        self._budgets = budgets
        self._meters = meters
        self._pools = pools
        self._sites = sites
        self._clock = clock

    async def __call__(self, request: FetchRequest, caller: Caller, way: Way = PLAIN) -> FetchResponse:
        """As `FetchBy`. Raises FetchFailed (`fetch_budget`) when the request must not begin."""
        site = self._sites.of(parse_target(request.url).host)
        proxy_class = way.proxy.proxy_class if way.proxy else ""
        await self._budgets.begin(caller, proxy_class)
        began, redirects, size, ok = self._clock(), 0, 0, None
        try:
            response = await self._inner(request, caller, way)
            redirects, size, ok = len(response.redirects), response.bytes_received, True
        except FetchFailed as error:
            size = int(error.details.get("bytes_received", 0))
            ok = False if error.reason is ExitReason.FETCH_PROXY else None
            raise
        finally:
            if way.proxy is not None:
                self._pools.report(way.proxy, ok)
            self._meter(site, caller, way, requests=1 + redirects, failures=0 if ok else 1, size=size)
            seconds = self._clock() - began
            await self._budgets.count(caller, proxy_class, requests=redirects, size=size, seconds=seconds)
        return response

    def _meter(self, site: str, caller: Caller, way: Way, *, requests: int, failures: int, size: int) -> None:
        proxy = way.proxy
        self._meters.count(
            site=site,
            job_id=caller.job_id,
            pool=proxy.name.partition("/")[0] if proxy else "",
            proxy_class=proxy.proxy_class if proxy else "",
            requests=requests,
            failures=failures,
            size=size,
        )
