"""What fetches used up, written down as it happens: by run, and by job across all workers."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

RESIDENTIAL = frozenset({"residential", "unlocker"})
"""Classes of proxies whose bytes count as residential."""


class Spent(Struct, frozen=True, kw_only=True):
    """What was used up."""

    requests: int = 0
    """Begun, with redirects and with those sent again on a new connection."""
    bytes: int = 0
    """Received, as on the wire."""
    residential_bytes: int = 0
    """The part of it that came through residential or unlocking proxies."""
    seconds: float = 0.0
    """In requests; those at once add up."""
    ai_tokens: int = 0
    """Read and written by models."""
    ai_cost: float = 0.0
    """What they cost, in the currency of the providers' prices."""

    def __add__(self, more: "Spent") -> "Spent":
        return Spent(
            requests=self.requests + more.requests,
            bytes=self.bytes + more.bytes,
            residential_bytes=self.residential_bytes + more.residential_bytes,
            seconds=self.seconds + more.seconds,
            ai_tokens=self.ai_tokens + more.ai_tokens,
            ai_cost=self.ai_cost + more.ai_cost,
        )


def spent_through(proxy_class: str, *, requests: int = 0, size: int = 0, seconds: float = 0.0) -> Spent:
    """What a request used up, by the class of its proxy; empty: none."""
    residential = size if proxy_class in RESIDENTIAL else 0
    return Spent(requests=requests, bytes=size, residential_bytes=residential, seconds=seconds)


class Ledger:
    """The books of one run, or of whoever else fetches. Belongs to one event loop."""

    def __init__(self, warn: Callable[[str], None] | None = None) -> None:
        """`warn` tells the author of the run that a budget is nearly used up; None: nobody."""
        self._requests = self._bytes = self._residential = 0
        self._seconds = 0.0
        self._ai_tokens, self._ai_cost = 0, 0.0
        self.bytes_by_class: dict[str, int] = {}
        """`direct` stands for no proxy."""
        self.solver_calls = 0
        self.solver_successes = 0
        self.captcha_calls = 0
        self.captcha_successes = 0
        self.captcha_cost = 0.0
        """As the vendor bills it."""
        self.ai_calls = 0
        """Questions that models answered; the cache's answers are not counted."""
        self.browser_pages = 0
        self.browser_ms = 0.0
        """How long contexts of browsers were open, added up."""
        self.browser_saved = 0
        """Bytes that blocking of images and the like has saved, about."""
        self.warned: set[str] = set()
        self._warn = warn

    @property
    def spent(self) -> Spent:
        """What was used up so far."""
        return Spent(
            requests=self._requests,
            bytes=self._bytes,
            residential_bytes=self._residential,
            seconds=self._seconds,
            ai_tokens=self._ai_tokens,
            ai_cost=self._ai_cost,
        )

    def write(self, spent: Spent, proxy_class: str) -> None:
        """Add what was used up."""
        self.add(proxy_class, requests=spent.requests, size=spent.bytes, seconds=spent.seconds)
        self._ai_tokens += spent.ai_tokens
        self._ai_cost += spent.ai_cost

    def begin(self) -> None:
        """Count a request that is about to go."""
        self._requests += 1

    def add(self, proxy_class: str, *, requests: int = 0, size: int = 0, seconds: float = 0.0) -> None:
        """The same in numbers; `size` counts bytes, by the class of the proxy they came through."""
        self._requests += requests
        self._seconds += seconds
        if size:
            self._bytes += size
            self._residential += size if proxy_class in RESIDENTIAL else 0
            name = proxy_class or "direct"
            self.bytes_by_class[name] = self.bytes_by_class.get(name, 0) + size

    def count_browser(self, *, pages: int, saved: int, ms: float = 0.0) -> None:
        """Add what a browser's context did."""
        self.browser_pages += pages
        self.browser_saved += saved
        self.browser_ms += ms

    def warn(self, words: str) -> None:
        """To the author."""
        if self._warn is not None:
            self._warn(words)


class JobLedgers(Protocol):
    """Adds up what processes tell. No method raises: while the shared place is away, the last known sum serves."""

    async def start(self) -> None:
        """Connect. Returns even if the server is away."""

    async def stop(self) -> None:
        """Close. May be called twice."""

    async def share(self, job_id: str, mine: Spent) -> Spent:
        """Tell what this process's runs of a job have used up in all, not since the last time, so that telling it
        twice is harmless. Returns what those of every process have."""


class OwnLedgers:
    """For one process: there are no others."""

    async def start(self) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Nothing to do."""

    async def share(self, job_id: str, mine: Spent) -> Spent:  # noqa: ARG002  as the port has it
        """What is told is the whole."""
        return mine
