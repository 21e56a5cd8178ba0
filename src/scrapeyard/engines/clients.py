"""wreq clients, each pinned to one host's checked addresses.

A client has its own connection pool, so a pooled connection was made to addresses that passed the guard for that host.
A client costs about 0.1 ms and 10 KB; the least recently used one is let go when there are too many.
"""

import re
from collections import OrderedDict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from wreq import CertStore, Client, DnsOptions, Profile
from wreq.redirect import Policy

from scrapeyard.engines.target import Address
from scrapeyard.errors import SettingsInvalid
from scrapeyard.settings import HttpSettings

if TYPE_CHECKING:
    from wreq.wreq import ClientConfig

_FAMILIES = {
    "chrome": re.compile(r"Chrome([0-9]+)"),
    "firefox": re.compile(r"Firefox([0-9]+)"),
    "safari": re.compile(r"Safari([0-9_]+)"),
}


def newest_profile(family: str) -> Profile | None:
    """The newest browser of a family that wreq can look like; None for `none`. Raises SettingsInvalid."""
    if family == "none":
        return None
    if family not in _FAMILIES:
        raise SettingsInvalid(f"http.profile: {family!r} is unknown; use one of {', '.join(_FAMILIES)}, none")
    versions = {name: _FAMILIES[family].fullmatch(name) for name in dir(Profile)}
    newest = max((_version(match[1]), name) for name, match in versions.items() if match)[1]
    profile: Profile = getattr(Profile, newest)
    return profile


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("_") if part)


class Clients:
    """One client per host and set of addresses."""

    def __init__(self, settings: HttpSettings, *, authorities: Path | None = None, size: int = 512) -> None:
        """`authorities` is a PEM file of certificate authorities trusted beside the built-in ones."""
        self._size = size
        self._made: OrderedDict[tuple[str, frozenset[Address]], Client] = OrderedDict()
        self._config = _config(settings, authorities)

    def get(self, host: str, addresses: tuple[Address, ...]) -> Client:
        """The client for a host whose addresses were checked. It connects nowhere else under that name."""
        key = (host, frozenset(addresses))
        client = self._made.get(key)
        if client is None:
            client = self._made[key] = self._make(host, addresses)
            if len(self._made) > self._size:
                # Not closed: that would cancel requests in flight. It goes when the last of them ends.
                self._made.popitem(last=False)
        else:
            self._made.move_to_end(key)
        return client

    def close(self) -> None:
        """Close every client; requests in flight end. May be called twice."""
        for client in self._made.values():
            client.close()
        self._made.clear()

    def _make(self, host: str, addresses: tuple[Address, ...]) -> Client:
        dns = DnsOptions()
        dns.add_resolve(host, addresses)
        config: ClientConfig = {**self._config, "dns_options": dns}
        return Client(**config)


def _config(settings: HttpSettings, authorities: Path | None) -> "ClientConfig":
    config: ClientConfig = {
        "redirect": Policy.none(),
        "no_proxy": True,  # a proxy from the environment would connect to addresses nobody checked
        "connect_timeout": timedelta(seconds=settings.connect_seconds),
        "pool_idle_timeout": timedelta(seconds=30),
        "pool_max_idle_per_host": settings.concurrency,
        # We decompress ourselves: only so can both the wire and the page be counted and capped.
        "gzip": False,
        "brotli": False,
        "deflate": False,
        "zstd": False,
    }
    profile = newest_profile(settings.profile)
    if profile is not None:
        config["emulation"] = profile
    else:
        config["headers"] = {"accept": "*/*", "accept-encoding": "gzip, deflate, br, zstd"}
    if settings.user_agent:
        config["user_agent"] = settings.user_agent
    if authorities is not None:
        config["tls_verify"] = CertStore(pem_certs=[authorities.read_text("ascii")], default_paths=True)
    return config
