"""An engine obtains a page by a route. The child asks by message; policy is enforced here."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from scrapeyard.engines.ledger import Ledger
from scrapeyard.model import BudgetLimits, FetchPolicy, Scraper
from scrapeyard.settings import hide_user

Keep = Callable[[AsyncIterator[bytes], str], Awaitable[int]]
"""Takes a page's pieces and its content type, and returns how many bytes it has kept. It is called again when the page
is fetched again, and what it kept before is then void."""


class BrowserWish(Struct, frozen=True, kw_only=True):
    """What a fetch asks of a browser."""

    wait_for: str = ""
    """Selector of an element that must be there; empty: none."""
    wait_until: Literal["load", "domcontentloaded", "networkidle", "commit"] = "load"
    scroll: int = 0
    """Times that the page is scrolled to its end, at most, while it grows."""
    screenshot: bool = False
    full_page: bool = False
    """Of the screenshot."""
    device: str = ""
    locale: str = ""
    timezone: str = ""
    block: tuple[str, ...] = ()
    """Kinds of requests that are not made: image, media, font, stylesheet, tracker."""


class FetchRequest(Struct, frozen=True, kw_only=True):
    """One request, as a script asks for it. Checked at the edge where it arrives. Empty and None: as policy says."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout_seconds: float | None = None
    follow_redirects: bool = True
    max_bytes: int | None = None
    max_age_seconds: float | None = None
    """A kept page not older than this serves; 0: none."""
    session: str = ""
    """Cookies are kept under this name, for the scraper, across fetches and runs."""
    profile: str = ""
    """Browser to look like."""
    proxy: str = ""
    """Name of a pool; `none` for no proxy."""
    engine: Literal["auto", "http", "browser", "light", "solver"] = "auto"
    """`http`: never more than plain HTTP; the others: at once."""
    browser: BrowserWish | None = None
    """How a browser opens it; None: as a person would who only looks."""
    via: "Via | None" = None
    """Opens the page in a browser's context that is already there. Every stage around the client holds for it."""
    certificate: str = ""
    """PEM of a client certificate and its key, where the operator lets scrapers present one."""
    keep: Keep | None = None
    """A page of a good status goes here piece by piece, as it comes, and not into `body`. Such a request is nobody
    else's: it is neither kept for others nor answered from what was kept."""


Via = Callable[[], Awaitable["FetchResponse"]]
"""Raises FetchFailed."""
Strategy = Literal["http", "clearance", "browser", "light", "solver", "cache"]


class FetchResponse(Struct, frozen=True, kw_only=True):
    """What the site answered. Any status is an answer; only a failure to get one raises."""

    url: str
    """After redirects."""
    status: int
    """100 to 999."""
    headers: Sequence[tuple[str, str]]
    """Name and value; names in lower case as plain HTTP brings them."""
    body: bytes
    """Decompressed."""
    encoding: str
    """The charset found, as a Python codec name."""
    elapsed_ms: float
    redirects: tuple[str, ...] = ()
    bytes_received: int = 0
    """On the wire; 0 for a kept page."""
    age_seconds: float | None = None
    """How long ago it was fetched; None: just now."""
    way: str = ""
    """How it was had, for `explain`: profile, proxy class, solver."""
    tried: tuple[dict[str, Any], ...] = ()
    """Ways that were tried before, for `explain`."""
    proxy_class: str = ""
    """What its bytes count as: empty (no proxy), `datacenter`, `residential`, `unlocker`."""
    proxy: str = ""
    """Name of the exit, `pool/host:port`, never with its credentials; empty: no proxy."""
    strategy: Strategy = "http"
    """The kind of `way`. `clearance`: plain HTTP with what the solver had got before."""
    kept: int | None = None
    """Bytes that went to `request.keep`; None: the page is in `body`."""
    screenshot: bytes = b""
    """PNG, if the request asked a browser for it."""
    repeats: int = 0
    """Requests that were sent once more, because the server had closed the connection that was kept."""


class Caller(Struct, frozen=True, kw_only=True):
    """On whose behalf a page is fetched."""

    scraper: Scraper | None = None
    """Limits the hosts; None: no limit but the platform's own."""
    run_id: str = ""
    job_id: str = ""
    client: str = ""
    """Who owns the run or job; empty if nobody was asked."""
    has_rate: bool = False
    """Whether the job has a rate of its own, so that `sites.job_rate` does not hold for it."""
    policy: FetchPolicy = FetchPolicy()
    job_budget: BudgetLimits = BudgetLimits()
    """What all runs of the job may use up together."""
    ledger: Ledger = field(default_factory=Ledger)
    """Where what its fetches use up is written down."""
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits so many seconds for the site's turn. A run's own pause gives its slot to others meanwhile."""
    on_wait: Callable[[str, float], None] | None = None
    """Called before each pause with the site and the seconds until its turn."""


class HttpEngine(Protocol):
    """Plain HTTP, with everything that policy asks for around it."""

    async def start(self) -> None:
        """Ready to fetch."""

    async def stop(self) -> None:
        """Close connections. May be called twice."""

    async def fetch(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        """Get a page. Raises FetchFailed, whose `reason` is the exit reason if the script lets it through."""


ProxyClass = Literal["datacenter", "residential", "unlocker"]


class Proxy(Struct, frozen=True, kw_only=True):
    """One exit. Its `repr` hides the credentials."""

    url: str
    """http, https, socks5 or socks5h, with credentials where it wants them."""
    name: str = ""
    """As the log and `explain` call it; never its credentials."""
    proxy_class: ProxyClass = "datacenter"
    country: str = ""
    """Where it is, as two letters; empty: nobody said."""
    ca_file: Path | None = None
    """PEM file of authorities trusted beside the usual ones when this proxy is used; None: no others."""
    guarded: bool = False
    """Whether its own address must pass the guard: whoever wrote its pool by the API is not the operator."""

    def __repr__(self) -> str:
        return f"Proxy(name={self.name!r}, url={hide_user(self.url)!r}, proxy_class={self.proxy_class!r})"

    __str__ = __repr__


RouteEngine = Literal["http", "browser", "light"]


class Route(Struct, frozen=True, kw_only=True):
    """How one request is made. Empty and None: as the settings say."""

    profile: str = ""
    """Browser to look like; wins over the request's own."""
    proxy: Proxy | None = None
    """None: straight to the site."""
    headers: tuple[tuple[str, str], ...] = ()
    """Sent unless the request has its own of that name; to the request's own origin alone."""
    cookies: tuple[tuple[str, str], ...] = ()
    """A clearance: (name, value), for the request's own host; the request's own and its session's win."""
    user_agent: str = ""
    """Wins over the profile's: a clearance holds for the browser that got it."""
    engine: RouteEngine = "http"


PLAIN = Route()
"""As the settings say."""
