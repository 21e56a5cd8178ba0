"""An engine obtains a page. The child asks by message; policy is enforced here."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

from msgspec import Struct, field

from scrapeyard.model import FetchPolicy, Scraper


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
    engine: Literal["auto", "http", "solver"] = "auto"
    """`http`: never more than plain HTTP; `solver`: at once."""


class FetchResponse(Struct, frozen=True, kw_only=True):
    """What the site answered. Any status is an answer; only a failure to get one raises."""

    url: str
    """After redirects."""
    status: int
    headers: tuple[tuple[str, str], ...]
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
    proxy_class: str = ""
    """What its bytes count as: empty (no proxy), `datacenter`, `residential`, `unlocker`."""


class Caller(Struct, frozen=True, kw_only=True):
    """On whose behalf a page is fetched."""

    scraper: Scraper | None = None
    """Limits the hosts; None: no limit but the platform's own."""
    run_id: str = ""
    job_id: str = ""
    policy: FetchPolicy = FetchPolicy()
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits so many seconds for the site's turn. A run's own pause gives its slot to others meanwhile."""


class Fetch(Protocol):
    """One stage on the way to a page, or all of them: stages wrap one another and have this shape alike."""

    async def __call__(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        """Get a page. Raises FetchFailed, whose `reason` is the exit reason if the script lets it through."""


class HttpEngine(Protocol):
    """Plain HTTP, with everything that policy asks for around it."""

    async def start(self) -> None:
        """Ready to fetch."""

    async def stop(self) -> None:
        """Close connections. May be called twice."""

    async def fetch(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        """As `Fetch`."""
