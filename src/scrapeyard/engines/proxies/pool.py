"""A pool of proxies: which exit serves the next request, where it is, and which exits rest because they failed."""

import itertools
import re
import secrets
from bisect import bisect
from collections import OrderedDict
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Protocol

from msgspec import Struct

from scrapeyard.engines.port import Proxy
from scrapeyard.model.fetching import ProxyAddress, read_endpoint, read_proxy_url
from scrapeyard.settings import ProxyPool

_OTHER = re.compile(r"[^a-z0-9]")


class ExitPlace(Struct, frozen=True, kw_only=True):
    """Parts are lower case and hold nothing but letters and digits, so that none can say more than a place."""

    country: str = ""
    state: str = ""
    city: str = ""

    @classmethod
    def of(cls, country: str = "", state: str = "", city: str = "") -> "ExitPlace":
        """From what a policy writes: `US`, `NY`, `New York`."""
        return cls(country=_plain(country), state=_plain(state), city=_plain(city))


def _plain(text: str) -> str:
    return _OTHER.sub("", text.lower())


FAILURES = 2
"""In a row, before an exit rests. One may be chance."""
LONGEST_SECONDS = 3600.0
KEPT = 20_000
"""Exits remembered; the one that failed longest ago is forgotten."""


class _Record(Struct):
    failures: int = 0
    rests: int = 0
    until: float = 0.0


class ExitHealth:
    """Exits by name. One that never failed, or has done well since, is not kept."""

    def __init__(self, cooldown_seconds: float, clock: Callable[[], float]) -> None:
        self._cooldown = cooldown_seconds
        self._longest = max(cooldown_seconds, LONGEST_SECONDS)
        self._clock = clock
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def rests(self, name: str) -> bool:
        """Whether it is better left alone now."""
        record = self._records.get(name)
        return record is not None and record.until > self._clock()

    def rests_until(self, name: str) -> float:
        """When its rest ends, by the clock given; 0 if it does not rest."""
        return self._records[name].until if self.rests(name) else 0.0

    def resting(self) -> list[str]:
        """All that rest now."""
        return [name for name in self._records if self.rests(name)]

    def good(self, name: str) -> bool:
        """It served: whatever was held against it is forgotten. True if there was something."""
        record = self._records.pop(name, None)
        return record is not None and record.rests > 0

    def bad(self, name: str) -> float:
        """It failed. How long it rests from now on, if this sends it to rest; otherwise 0.

        After a rest one more failure is enough, and each rest is twice as long as the one before, up to an hour. What
        was already under way when a rest began does not make it longer.
        """
        record = self._records.setdefault(name, _Record())
        self._records.move_to_end(name)
        if len(self._records) > KEPT:
            self._records.popitem(last=False)
        if self.rests(name):
            return 0.0
        record.failures += 1
        if record.failures < FAILURES:
            return 0.0
        seconds = min(self._cooldown * 2.0 ** min(record.rests, 30), self._longest)
        record.rests += 1
        record.until = self._clock() + seconds
        return seconds


ENDPOINT = "brd.superproxy.io:33335"


def endpoint(pool: ProxyPool) -> tuple[str, int]:
    """Where the vendor listens."""
    return read_endpoint(pool.host or ENDPOINT)


def brightdata_address(pool: ProxyPool, place: ExitPlace, session: str) -> ProxyAddress:
    """The exit of a session at a place that `served` has passed."""
    host, port = endpoint(pool)
    asked = {"country": place.country, "state": place.state, "city": place.city, "session": session}
    options = "".join(f"-{name}-{value}" for name, value in asked.items() if value)
    return ProxyAddress(
        scheme="http",
        host=host,
        port=port,
        user=f"brd-customer-{pool.customer}-zone-{pool.zone}{options}",
        password=pool.password.get_secret_value(),
    )


def served(pool: ProxyPool, asked: ExitPlace) -> tuple[ExitPlace, str]:
    """What of a place the zone can serve, and why not the rest; empty: it serves all of it."""
    country = asked.country or pool.country.lower()
    if pool.proxy_class == "datacenter" and (asked.state or asked.city):
        return ExitPlace(country=country), "datacenter zones know countries alone"
    if not country and (asked.state or asked.city):
        return ExitPlace(), "a state or city needs a country"
    return ExitPlace(country=country, state=asked.state, city=asked.city), ""


_MOST_RENEWALS = 1000


class Exits(Protocol):
    """The exits of one pool. Names are `pool/exit`, without anything secret."""

    health: ExitHealth

    @property
    def size(self) -> int:
        """How many there are to choose from."""

    def choose(self, key: str, place: ExitPlace) -> Proxy:
        """The next one, or that of the key. Never none: when all rest, the one whose rest ends first."""

    def served(self, asked: ExitPlace) -> tuple[ExitPlace, str]:
        """What of a place the pool can serve, and why not the rest; empty: it serves all of it."""


def exits_of(pool: ProxyPool, clock: Callable[[], float]) -> Exits:
    """The exits of a pool, by its kind."""
    health = ExitHealth(pool.cooldown_seconds, clock)
    return ListExits(pool, health) if pool.kind == "list" else VendorExits(pool, health)


class ListExits:
    """Proxies that the operator listed, each an exit."""

    def __init__(self, pool: ProxyPool, health: ExitHealth) -> None:
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

    def choose(self, key: str, place: ExitPlace) -> Proxy:  # noqa: ARG002 - a listed proxy is where it is
        """In turn, or by a ring of hashes: an exit that goes leaves the keys of the others where they are."""
        for index in self._by_key(key) if key else self._in_turn():
            if not self.health.rests(self._proxies[index].name):
                return self._proxies[index]
        return min(self._proxies, key=lambda proxy: self.health.rests_until(proxy.name))

    def served(self, asked: ExitPlace) -> tuple[ExitPlace, str]:
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

    def __init__(self, pool: ProxyPool, health: ExitHealth) -> None:
        self.health = health
        self._pool = pool
        self._own = secrets.token_hex(4)
        self._turns = itertools.cycle(range(pool.exits))

    @property
    def size(self) -> int:
        """Sessions that take turns."""
        return self._pool.exits

    def choose(self, key: str, place: ExitPlace) -> Proxy:
        """The session of a key is a hash of it: the vendor is not told what sites or sessions are called."""
        wished = key or f"{self._own}/{next(self._turns)}"
        for renewal in range(_MOST_RENEWALS):
            session = f"{_point(f'{wished}/{renewal}'):016x}"
            if not self.health.rests(f"{self._pool.name}/{session}"):
                break
        return _proxy(self._pool, session, brightdata_address(self._pool, place, session).url, place.country)

    def served(self, asked: ExitPlace) -> tuple[ExitPlace, str]:
        """As the vendor's zone."""
        return served(self._pool, asked)


def _listed(pool: ProxyPool) -> Iterator[Proxy]:
    seen: dict[str, int] = {}
    for url in pool.urls:
        address = read_proxy_url(url.get_secret_value())
        seen[address.endpoint] = count = seen.get(address.endpoint, 0) + 1
        name = address.endpoint if count == 1 else f"{address.endpoint}~{count}"
        yield _proxy(pool, name, address.url, pool.country.lower())


def _proxy(pool: ProxyPool, name: str, url: str, country: str) -> Proxy:
    return Proxy(
        name=f"{pool.name}/{name}", url=url, proxy_class=pool.proxy_class, country=country, ca_file=pool.ca_file
    )


def _login(proxy: Proxy) -> str:
    """Who we are to which exit: its name would be another's as soon as one before it at the same address goes."""
    address = read_proxy_url(proxy.url)
    return f"{address.scheme}://{address.user}@{address.endpoint}"


def _point(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
