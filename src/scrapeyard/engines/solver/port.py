"""A solver passes a challenge with a browser of its own; the clearance it gets lets plain HTTP pass after it."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse, Proxy, Route
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

MAX_COOKIES = 60
MAX_COOKIE_BYTES = 4096


class ClearedCookie(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One cookie, as a browser holds it."""

    name: str
    value: str
    domain: str = ""
    """As the browser writes it; a leading dot, or none, means this host and those below it. Empty: the solved host."""
    expires_at: float | None = None
    """Unix seconds; None: with the browser's session."""

    def goes_to(self, host: str, solved_host: str, now: float) -> bool:
        """Whether a browser would send it to a host."""
        if self.expires_at is not None and self.expires_at <= now:
            return False
        domain = self.domain.lstrip(".").lower() or solved_host
        return host == domain or host.endswith(f".{domain}")


class Clearance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Cookies, the browser they were given to, and the exit they were given at: they hold together or not at all."""

    id: str
    host: str
    """Whose challenge was passed."""
    cookies: tuple[ClearedCookie, ...]
    user_agent: str
    hints: tuple[tuple[str, str], ...] = ()
    """The client hints that this browser sends with every request."""
    profile: str = ""
    """The client's profile that is nearest to the browser."""
    proxy: Proxy | None = None
    """The exit; None: our own address."""
    got_at: float
    expires_at: float
    """Unix seconds."""

    @property
    def exit(self) -> str:
        """Where it holds: the proxy's name; empty for our own address."""
        return self.proxy.name if self.proxy else ""

    @property
    def pool(self) -> str:
        """The pool that the exit belongs to; empty for our own address."""
        return self.exit.partition("/")[0]

    def fits(self, host: str, now: float) -> bool:
        """Whether it holds any cookie for a host, now."""
        return self.expires_at > now and any(cookie.goes_to(host, self.host, now) for cookie in self.cookies)

    def way(self, host: str, now: float) -> Route:
        """How plain HTTP uses it."""
        cookies = tuple((each.name, each.value) for each in self.cookies if each.goes_to(host, self.host, now))
        return Route(
            profile=self.profile,
            proxy=self.proxy,
            cookies=cookies,
            user_agent=self.user_agent,
            headers=self.hints,
        )


class SolverAway(FetchFailed):
    """The solver itself does not answer. The site is not to blame; check escalation.solver_url."""

    code = "solver_away"

    def __init__(self, message: str) -> None:
        super().__init__(ExitReason.FETCH_CAPTCHA, message)


class Solved(Struct, frozen=True, kw_only=True):
    """What a solver came back with."""

    response: FetchResponse
    """The page as its browser shows it. The status is what the solver says, which may be 200 for every page."""
    clearance: Clearance | None
    """None: there were no cookies, or they belong to somebody's session."""


class Solver(Protocol):
    """Passes challenges. Bounded: a call waits for a free place within its time."""

    async def start(self) -> None:
        """Ready to solve."""

    async def stop(self) -> None:
        """Let go of browsers that were kept. May be called twice."""

    async def solve(self, request: FetchRequest, caller: Caller, *, proxy: Proxy | None, seconds: float) -> Solved:
        """Open the page. Raises FetchFailed: fetch_captcha (not passed), fetch_blocked, fetch_timeout, fetch_proxy and
        so on, as the browser found; SolverAway when there is no solver to speak of; fetch_private_address before
        anything is handed over."""

    async def healthy(self) -> bool:
        """Whether it answers now. For health pages, not for deciding."""


class SearchQuestion(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A web search, as it is asked of a Firecrawl server."""

    query: str
    limit: int
    """Results of each source."""
    timeout: int
    """Milliseconds."""
    sources: Sequence[str] = ()
    categories: Sequence[str] = ()
    include_domains: Sequence[str] = ()
    exclude_domains: Sequence[str] = ()
    tbs: str = ""
    """How old results may be, such as `qdr:d`."""
    location: str = ""
    country: str = ""


class WebHit(Struct, frozen=True, kw_only=True, rename="camel"):
    """A page that was found."""

    url: str = ""
    title: str | None = None
    description: str | None = None
    position: int | None = None
    category: str | None = None


class NewsHit(Struct, frozen=True, kw_only=True, rename="camel"):
    """An article that was found."""

    url: str = ""
    title: str | None = None
    snippet: str | None = None
    date: str | None = None
    image_url: str | None = None
    position: int | None = None
    category: str | None = None


class ImageHit(Struct, frozen=True, kw_only=True, rename="camel"):
    """A picture that was found, and the page that it stands on."""

    url: str = ""
    title: str | None = None
    image_url: str | None = None
    image_width: int | None = None
    image_height: int | None = None
    position: int | None = None


class SearchHits(Struct, frozen=True, kw_only=True):
    """What was found, by source. Every `url` and `image_url` is an http address."""

    web: tuple[WebHit, ...] = ()
    news: tuple[NewsHit, ...] = ()
    images: tuple[ImageHit, ...] = ()


class Searcher(Protocol):
    """An outside engine for web searches."""

    async def search(self, question: SearchQuestion) -> SearchHits:
        """Ask once, within the question's timeout. Raises FetchFailed: fetch_timeout, fetch_connect (it is away),
        fetch_status (it refuses), fetch_protocol (no answer of a search engine), fetch_budget."""
