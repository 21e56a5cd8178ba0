"""An engine obtains a page. The child asks by message; policy is enforced here."""

from typing import Protocol

from msgspec import Struct, field

from scrapeyard.model import Scraper


class FetchRequest(Struct, frozen=True, kw_only=True):
    """One request, as a script asks for it. Checked at the edge where it arrives."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout_seconds: float | None = None
    follow_redirects: bool = True
    max_bytes: int | None = None


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


class HttpEngine(Protocol):
    """Plain HTTP."""

    async def start(self) -> None:
        """Ready to fetch."""

    async def stop(self) -> None:
        """Close connections. May be called twice."""

    async def fetch(self, request: FetchRequest, scraper: Scraper | None) -> FetchResponse:
        """Get a page. Raises FetchFailed, whose `reason` is the exit reason if the script lets it through.

        `scraper` limits the hosts; None means no limit but the platform's own.
        """
