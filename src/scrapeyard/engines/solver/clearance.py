"""A clearance: what a browser got for passing a challenge, so that plain HTTP passes after it."""

from msgspec import Struct

from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.route import Proxy, Way
from scrapeyard.errors import FetchFailed

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

    def way(self, host: str, now: float) -> Way:
        """How plain HTTP uses it."""
        cookies = tuple((each.name, each.value) for each in self.cookies if each.goes_to(host, self.host, now))
        return Way(profile=self.profile, proxy=self.proxy, cookies=cookies, user_agent=self.user_agent)


def host_of(url: str) -> str:
    """As the client reads it; empty where there is none."""
    try:
        return parse_target(url).host
    except FetchFailed:
        return ""
