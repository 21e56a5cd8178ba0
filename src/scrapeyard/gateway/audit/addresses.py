"""Where a call comes from: the peer's address, or what a trusted proxy says of its own caller."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from starlette.types import Scope

Network = IPv4Network | IPv6Network
_FORWARDED = b"x-forwarded-for"
_MOST_HOPS = 20


class CallerAddresses:
    """Reads X-Forwarded-For from proxies that the operator trusts, and from nobody else."""

    def __init__(self, trusted: Sequence[str]) -> None:
        self._trusted: tuple[Network, ...] = tuple(ip_network(each, strict=False) for each in trusted)

    def of(self, scope: Scope) -> str:
        """The caller's address: the last hop that no trusted proxy is. Empty if it is not known."""
        peer = _address((scope.get("client") or ("",))[0])
        if not self._trusted or not self._trusts(peer):
            return peer
        hops = [
            hop for name, value in scope["headers"] if name == _FORWARDED for hop in value.decode("latin-1").split(",")
        ]
        for hop in reversed(hops[-_MOST_HOPS:]):
            told = _address(hop.strip())
            if not told:
                break  # nonsense: whoever sent it is the last that is known
            peer = told
            if not self._trusts(told):
                break
        return peer

    def _trusts(self, address: str) -> bool:
        return bool(address) and any(ip_address(address) in network for network in self._trusted)


def _address(text: str) -> str:
    """An IP address as text, without a port or a zone; empty if it is none."""
    bare = text[1:].partition("]")[0] if text.startswith("[") else text
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        address = ip_address(bare.partition("%")[0])
    except ValueError:
        return ""
    return str(getattr(address, "ipv4_mapped", None) or address)
