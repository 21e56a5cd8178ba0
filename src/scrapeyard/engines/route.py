"""A way to a page: what the client looks like, where it comes from, and what it brings along."""

from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.settings import hide_user

ProxyClass = Literal["datacenter", "residential", "unlocker"]


class Proxy(Struct, frozen=True, kw_only=True):
    """One exit. Its `repr` hides the credentials."""

    url: str
    """http, https, socks5 or socks5h, with credentials where it wants them."""
    name: str = ""
    """As the log and `explain` call it; never its credentials."""
    proxy_class: ProxyClass = "datacenter"
    ca_file: Path | None = None
    """PEM file of authorities trusted beside the usual ones when this proxy is used; None: no others."""

    def __repr__(self) -> str:
        return f"Proxy(name={self.name!r}, url={hide_user(self.url)!r}, proxy_class={self.proxy_class!r})"

    __str__ = __repr__


class Way(Struct, frozen=True, kw_only=True):
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


PLAIN = Way()
"""As the settings say."""


class FetchBy(Protocol):
    """The innermost stage: it takes a way as well."""

    async def __call__(self, request: FetchRequest, caller: Caller, way: Way = PLAIN) -> FetchResponse:
        """As `Fetch`."""
