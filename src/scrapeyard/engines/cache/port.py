"""The shared tier of the page cache: pages that several workers, or the next start, may serve."""

from typing import Protocol

from msgspec import Struct


class PageKey(Struct, frozen=True, kw_only=True):
    """Which page. `id` tells it from every other; the rest is what it is invalidated by."""

    id: str
    """Hex digits: a digest of everything that decides what is answered."""
    url: str
    """Hex digits: a digest of the URL as asked for, in its one spelling."""
    site: str


class CachedPage(Struct, frozen=True, kw_only=True):
    """An answer as it is kept. With `vary` it is no page but a signpost: each of several callers has a page of its own,
    under the key that `identity.variant` makes of these names."""

    url: str = ""
    """After redirects."""
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    encoding: str = ""
    redirects: tuple[str, ...] = ()
    fetched_at: float
    """Unix seconds, when the site was asked; a confirmation by the site counts as asking."""
    expires_at: float
    """Not kept any longer than this, whoever asks."""
    vary: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        texts = sum(len(name) + len(value) + 160 for name, value in self.headers)
        return len(self.body) + texts + len(self.url) + sum(map(len, self.redirects)) + 600


class StoreStats(Struct, frozen=True, kw_only=True):
    """What a tier holds and did. The counts of Redis are of all workers, those on disk since the start."""

    kind: str
    pages: int
    bytes: int
    limit_bytes: int
    hits: int
    misses: int
    evicted: int
    """Removed to make room, not because their time was over."""


class PageStore(Protocol):
    """Keeps pages within a size limit; the least recently used go first.

    A cache may forget, so `get` and `put` never raise: a server that is away is logged once and looks like a miss. What
    an operator asks for (`drop…`, `stats`) raises Unavailable instead.
    """

    async def start(self) -> None:
        """Ready to serve. Returns even if the server is away."""

    async def stop(self) -> None:
        """Let go of everything held open. May be called twice."""

    async def get(self, key: PageKey) -> CachedPage | None:
        """A page whose time is not over. None: not there, not readable, or the server is away; fetch it."""

    async def put(self, key: PageKey, page: CachedPage) -> None:
        """Keep a page instead of what was kept under this key. One that is too large or expired is not kept."""

    async def drop(self, url: str) -> int:
        """Forget every page asked for by this URL, given in its one spelling. Returns how many there were."""

    async def drop_site(self, site: str) -> int:
        """Forget every page of a site. Returns how many there were."""

    async def drop_all(self) -> int:
        """Forget everything. Returns how many pages there were."""

    async def stats(self) -> StoreStats:
        """How it stands."""

    async def claim(self, name: str, seconds: float) -> bool:
        """Whether the caller is the one to fetch what `name` stands for; it must then `release` it.

        False: another process fetches it at this moment; look for the page again shortly. A claim that is not released
        ends by itself after `seconds`. True when the server is away.
        """

    async def release(self, name: str) -> None:
        """Give a claim back."""
