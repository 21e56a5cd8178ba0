"""Which site a host belongs to: the domain that somebody registered, by the public suffix list.

`www.shop.example` and `img.shop.example` are the site `shop.example`; `a.github.io` and `b.github.io` are two sites,
since anybody may have one. An address, a name without a dot and a public suffix itself are sites of their own. A site
has no port and no scheme: both sides of a server share its machines.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from ipaddress import ip_address
from pathlib import Path

from publicsuffixlist import PSLFILE, PublicSuffixList

from scrapeyard.engines.http.url import canonical_host
from scrapeyard.errors import SettingsInvalid

_REMEMBERED = 16_384


class Sites:
    """Names sites. The list is read when it is first needed (20 ms, once in a process, however many name sites);
    answers are remembered, a bounded number."""

    def __init__(self, whole_hosts: Sequence[str] = ()) -> None:
        """Below each domain of `whole_hosts` every host is a site of its own; the domain itself stays one.

        Raises SettingsInvalid for what is not a domain.
        """
        self._whole = frozenset(_domain(name) for name in whole_hosts)
        self.of = lru_cache(_REMEMBERED)(self._of)
        """The site of a host, which may be a name, or an IPv4 or IPv6 address with or without brackets."""

    def _of(self, host: str) -> str:
        host = host.strip("[]").rstrip(".").lower()
        if _is_address(host) or self._stands_alone(host):
            return host
        return _suffixes().privatesuffix(host) or host

    def _stands_alone(self, host: str) -> bool:
        labels = host.split(".")
        return any(".".join(labels[start:]) in self._whole for start in range(len(labels)))


@cache
def _suffixes() -> PublicSuffixList:
    """The library's own list. It would encode each rule as IDNA, which takes most of its time; few rules need it."""
    rules = [line for line in Path(PSLFILE).read_text("utf-8").splitlines() if line and not line.startswith("//")]
    encoded = (_ascii(rule) for rule in rules if not rule.isascii())
    return PublicSuffixList([*rules, *encoded], accept_encoded_idn=False)


def _ascii(rule: str) -> str:
    """As hosts are spelled. The rules of the list are normalised already."""
    labels = rule.split(".")
    return ".".join(label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in labels)


def is_host(name: str) -> bool:
    """Whether it is a host name or an address, in the one spelling that targets have."""
    try:
        return _is_address(name) or canonical_host(name) == name
    except (ValueError, UnicodeError):
        return False


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _domain(name: str) -> str:
    try:
        return canonical_host(name.removeprefix("*."))
    except (ValueError, UnicodeError):
        raise SettingsInvalid(f"sites.whole_hosts: {name[:100]!r} is not a domain; write it as shop.example") from None
