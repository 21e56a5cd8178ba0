"""A pool: which of its exits serves the next request.

Without a key exits take turns. With one (a session, a site) the same key gets the same exit in every process, and
another one only while its own rests.
"""

import itertools
import secrets
from bisect import bisect
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Protocol

from scrapeyard.engines.proxies import brightdata
from scrapeyard.engines.proxies.health import Health
from scrapeyard.engines.proxies.place import Place
from scrapeyard.engines.route import Proxy
from scrapeyard.model.fetching import read_proxy_url
from scrapeyard.settings import ProxyPool

_MOST_RENEWALS = 1000


class Exits(Protocol):
    """The exits of one pool. Names are `pool/exit`, without anything secret."""

    health: Health

    @property
    def size(self) -> int:
        """How many there are to choose from."""

    def choose(self, key: str, place: Place) -> Proxy:
        """The next one, or that of the key. Never none: when all rest, the one whose rest ends first."""

    def served(self, asked: Place) -> tuple[Place, str]:
        """What of a place the pool can serve, and why not the rest; empty: it serves all of it."""


def exits_of(pool: ProxyPool, clock: Callable[[], float]) -> Exits:
    """The exits of a pool, by its kind."""
    health = Health(pool.cooldown_seconds, clock)
    return ListExits(pool, health) if pool.kind == "list" else VendorExits(pool, health)


class ListExits:
    """Proxies that the operator listed, each an exit."""

    def __init__(self, pool: ProxyPool, health: Health) -> None:
        self.health = health
        self._country = pool.country.lower()
        self._proxies = tuple(_listed(pool))
        self._ring = sorted((_point(_login(proxy)), place) for place, proxy in enumerate(self._proxies))
        self._points = [point for point, _ in self._ring]
        self._next = secrets.randbelow(len(self._proxies))

    @property
    def size(self) -> int:
        """As many as are listed."""
        return len(self._proxies)

    def choose(self, key: str, place: Place) -> Proxy:  # noqa: ARG002 - a listed proxy is where it is
        """In turn, or by a ring of hashes: an exit that goes leaves the keys of the others where they are."""
        for index in self._by_key(key) if key else self._in_turn():
            if not self.health.rests(self._proxies[index].name):
                return self._proxies[index]
        return min(self._proxies, key=lambda proxy: self.health.rests_until(proxy.name))

    def served(self, asked: Place) -> tuple[Place, str]:
        """A list is in one country, if the operator says which."""
        wanted = asked.country and asked.country != self._country
        return asked, "a list of proxies is where it is" if wanted or asked.state or asked.city else ""

    def _in_turn(self) -> Iterator[int]:
        for _ in self._proxies:
            self._next = (self._next + 1) % len(self._proxies)
            yield self._next

    def _by_key(self, key: str) -> Iterator[int]:
        first = bisect(self._points, _point(key))
        for step in range(len(self._ring)):
            yield self._ring[(first + step) % len(self._ring)][1]


class VendorExits:
    """Sessions at a vendor's endpoint, each an exit. One that rests is replaced by a new session at once.

    Without a key a fixed number of sessions take turns; their names differ between processes.
    """

    def __init__(self, pool: ProxyPool, health: Health) -> None:
        self.health = health
        self._pool = pool
        self._own = secrets.token_hex(4)
        self._turns = itertools.cycle(range(pool.exits))

    @property
    def size(self) -> int:
        """Sessions that take turns."""
        return self._pool.exits

    def choose(self, key: str, place: Place) -> Proxy:
        """The session of a key is a hash of it: the vendor is not told what sites or sessions are called."""
        wished = key or f"{self._own}/{next(self._turns)}"
        for renewal in range(_MOST_RENEWALS):
            session = f"{_point(f'{wished}/{renewal}'):016x}"
            if not self.health.rests(f"{self._pool.name}/{session}"):
                break
        return _proxy(self._pool, session, brightdata.address(self._pool, place, session).url)

    def served(self, asked: Place) -> tuple[Place, str]:
        """As the vendor's zone."""
        return brightdata.served(self._pool, asked)


def _listed(pool: ProxyPool) -> Iterator[Proxy]:
    seen: dict[str, int] = {}
    for url in pool.urls:
        address = read_proxy_url(url.get_secret_value())
        seen[address.endpoint] = count = seen.get(address.endpoint, 0) + 1
        yield _proxy(pool, address.endpoint if count == 1 else f"{address.endpoint}~{count}", address.url)


def _proxy(pool: ProxyPool, name: str, url: str) -> Proxy:
    return Proxy(name=f"{pool.name}/{name}", url=url, proxy_class=pool.proxy_class, ca_file=pool.ca_file)


def _login(proxy: Proxy) -> str:
    """Who we are to which exit: its name would be another's as soon as one before it at the same address goes."""
    address = read_proxy_url(proxy.url)
    return f"{address.scheme}://{address.user}@{address.endpoint}"


def _point(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
