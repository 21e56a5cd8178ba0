"""The guard: which addresses may be reached.

It is pure: it resolves nothing and connects to nothing. The engine resolves a name, asks here, and pins the very
addresses that passed, so that a name which changes its mind between the check and the connection changes nothing.

Every address of a name must pass. A name that has public and private addresses at once is refused whole: that is how a
rebinding attack looks, and picking the good half would let the attacker choose the moment.
"""

import socket
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from scrapeyard.engines.http.url import Address, Target, canonical_host
from scrapeyard.errors import FetchFailed, SettingsInvalid
from scrapeyard.model import ExitReason
from scrapeyard.telemetry.events import get_log


class Kind(StrEnum):
    """What an address is for."""

    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    SHARED = "carrier-grade NAT"
    LINK_LOCAL = "link-local"
    TEST = "documentation or benchmark"
    METADATA = "cloud metadata"
    MULTICAST = "multicast"
    UNSPECIFIED = "unspecified"
    TRANSITION = "IPv6 transition"
    RESERVED = "reserved"


_OPENED_BY_ALLOW_PRIVATE = frozenset({Kind.LOOPBACK, Kind.PRIVATE, Kind.SHARED, Kind.LINK_LOCAL, Kind.TEST})
"""The other kinds serve no page, or serve the machine's own credentials: only a network in allow_hosts opens them."""

_V4 = tuple(
    (IPv4Network(network), kind)
    for network, kind in (
        ("169.254.169.254/32", Kind.METADATA),
        ("169.254.170.0/24", Kind.METADATA),
        ("100.100.100.200/32", Kind.METADATA),
        ("168.63.129.16/32", Kind.METADATA),
        ("192.0.0.192/32", Kind.METADATA),
        ("0.0.0.0/8", Kind.UNSPECIFIED),
        ("10.0.0.0/8", Kind.PRIVATE),
        ("100.64.0.0/10", Kind.SHARED),
        ("127.0.0.0/8", Kind.LOOPBACK),
        ("169.254.0.0/16", Kind.LINK_LOCAL),
        ("172.16.0.0/12", Kind.PRIVATE),
        ("192.0.0.0/24", Kind.RESERVED),
        ("192.0.2.0/24", Kind.TEST),
        ("192.88.99.0/24", Kind.TRANSITION),
        ("192.168.0.0/16", Kind.PRIVATE),
        ("198.18.0.0/15", Kind.TEST),
        ("198.51.100.0/24", Kind.TEST),
        ("203.0.113.0/24", Kind.TEST),
        ("224.0.0.0/4", Kind.MULTICAST),
        ("240.0.0.0/4", Kind.RESERVED),
    )
)
_V6 = tuple(
    (IPv6Network(network), kind)
    for network, kind in (
        ("fd00:ec2::/32", Kind.METADATA),
        ("fd20:ce::254/128", Kind.METADATA),
        ("::/128", Kind.UNSPECIFIED),
        ("::1/128", Kind.LOOPBACK),
        ("fc00::/7", Kind.PRIVATE),
        ("fe80::/10", Kind.LINK_LOCAL),
        ("fec0::/10", Kind.PRIVATE),
        ("ff00::/8", Kind.MULTICAST),
        ("2001:db8::/32", Kind.TEST),
        ("3fff::/20", Kind.TEST),
        ("2001::/23", Kind.TRANSITION),
        ("2002::/16", Kind.TRANSITION),
        ("64:ff9b:1::/48", Kind.TRANSITION),
    )
)
_V6_PUBLIC = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)
_REMEMBERED = 4096


@lru_cache(maxsize=4096)
def kind_of(address: Address) -> Kind:
    """What an address is for; an IPv4 address inside an IPv6 one decides where there is one."""
    address = embedded(address) or address
    table = _V4 if isinstance(address, IPv4Address) else _V6
    for network, kind in table:
        if address in network:
            return kind
    return Kind.PUBLIC if isinstance(address, IPv4Address) or address in _V6_PUBLIC else Kind.RESERVED


_OWN_NAMES = (".localhost", ".local", ".internal", ".intranet", ".lan", ".home.arpa", ".test", ".invalid")
"""Endings that are never in the public DNS."""


def is_public(target: Target) -> bool:
    """Whether a host is somebody's on the public web, as far as its name or address tells: not this machine, a private
    network, or a name of one. Nothing is resolved for this."""
    if target.literal is not None:
        return kind_of(target.literal) is Kind.PUBLIC
    return "." in target.host and not target.host.endswith(_OWN_NAMES)


def embedded(address: Address) -> IPv4Address | None:
    """The IPv4 address that a mapped, NAT64 or ISATAP address leads to; None for any other.

    6to4, Teredo and IPv4-compatible addresses are not looked into: no site lives there, and they are refused whole.
    """
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    number = int(address)
    if address in _NAT64 or (number >> 32) & 0xFFFFFFFF in _ISATAP:
        return IPv4Address(number & 0xFFFFFFFF)
    return None


class Guard:
    """Says no to addresses that are not for the public.

    `allow_private` opens loopback, private and link-local networks, but neither cloud metadata nor multicast nor
    reserved ones. `allow_hosts` opens more finely: a network (`10.1.0.0/16`, `::1`) opens every address in it,
    whatever its kind; a name (`intranet.example`, `*.lab.example`) opens what `allow_private` would, for that name.
    Nothing opens `own_port` of this machine, where our gateway listens.
    """

    def __init__(
        self, *, allow_private: bool = False, allow_hosts: Iterable[str] = (), own_port: int | None = None
    ) -> None:
        self._allow_private = allow_private
        self._own_port = own_port
        self._networks: list[IPv4Network | IPv6Network] = []
        names = []
        for entry in allow_hosts:
            network = _network(entry)
            self._networks.append(network) if network else names.append(entry)
        try:
            self._names = HostPatterns(names)
        except ValueError as error:
            raise SettingsInvalid(f"http.allow_hosts: {error}; write a host, *.host or a network") from None
        self._passed: dict[str, tuple[Address, ...]] = {}
        """The very addresses that passed for a host last; nothing else decides, so they pass again."""
        self._log = get_log("engines")

    def has_passed(self, host: str, port: int, addresses: tuple[Address, ...]) -> bool:
        """Whether these addresses have passed `check`, and the port is not the one that `check_port` looks at."""
        return port != self._own_port and self._passed.get(host) == addresses

    def check(self, host: str, addresses: Iterable[Address]) -> None:
        """Raises FetchFailed (fetch_private_address) unless every address may be reached.

        The message does not name the address: a script must not learn how private names resolve. The log does.
        """
        found = tuple(addresses)
        if self._passed.get(host) == found:
            return
        for address in found:
            kind = kind_of(address)
            if not self._allows(host, address, kind):
                self._log.warning("fetch.refused_address", host=host, address=str(address), kind=kind.value)
                raise FetchFailed(
                    ExitReason.FETCH_PRIVATE_ADDRESS,
                    f"{host} is at a {kind.value} address, which is not fetched; an operator can allow "
                    + (
                        "it with http.allow_hosts or http.allow_private"
                        if kind in _OPENED_BY_ALLOW_PRIVATE
                        else "its network with http.allow_hosts"
                    ),
                    host=host,
                )
        if len(self._passed) >= _REMEMBERED:
            self._passed.clear()
        self._passed[host] = found

    def check_port(self, host: str, port: int, addresses: Iterable[Address]) -> None:
        """Raises FetchFailed (fetch_private_address) for the door of our own gateway: a script that came through it
        would act as a client."""
        if port != self._own_port or not any(_is_ours(embedded(address) or address) for address in addresses):
            return
        message = f"{host}:{port} is this server's own API, which scripts do not reach"
        raise FetchFailed(ExitReason.FETCH_PRIVATE_ADDRESS, message, host=host)

    def _allows(self, host: str, address: Address, kind: Kind) -> bool:
        if kind is Kind.PUBLIC:
            return True
        inner = embedded(address) or address
        if any(address in network or inner in network for network in self._networks):
            return True
        return kind in _OPENED_BY_ALLOW_PRIVATE and (self._allow_private or self._names.match(host))


def _is_ours(address: Address) -> bool:
    """Whether this machine has the address: only then can a socket be bound to it."""
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


class HostPatterns:
    """Host names and `*.suffix` patterns. A pattern's star stands for one or more labels, never for none."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Raises ValueError for a pattern that is neither."""
        self._exact: set[str] = set()
        self._suffixes: list[str] = []
        for pattern in patterns:
            bare = pattern.strip().removeprefix("*.")
            try:
                host = _plain(bare)
            except ValueError:
                raise ValueError(f"{pattern!r} is not a host pattern") from None
            self._suffixes.append("." + host) if pattern.strip().startswith("*.") else self._exact.add(host)

    def match(self, host: str) -> bool:
        """Whether a host, spelled as Target spells it, is named."""
        return host in self._exact or any(host.endswith(suffix) for suffix in self._suffixes)


def _plain(host: str) -> str:
    try:
        return str(IPv6Address(host.strip("[]")))
    except ValueError:
        return canonical_host(host)


def _network(entry: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(entry.strip().strip("[]"), strict=False)
    except ValueError:
        return None
