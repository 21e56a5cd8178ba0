"""wreq clients, each pinned to the checked addresses of one host, with one browser profile, through one proxy."""

import re
from collections import OrderedDict
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from msgspec import Struct
from msgspec.structs import replace
from wreq import CertStore, Client, DnsOptions, Emulation, Identity, Platform, Profile, Proxy
from wreq.redirect import Policy
from wreq.runtime import Runtime

from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.http.failures import WREQ_ERRORS
from scrapeyard.engines.http.url import Address, Target, parse_target
from scrapeyard.errors import FetchFailed, SettingsInvalid
from scrapeyard.model import ExitReason
from scrapeyard.settings import HttpSettings

if TYPE_CHECKING:
    from wreq.wreq import ClientConfig

FAMILIES = ("chrome", "edge", "firefox", "opera", "safari", "okhttp")
NONE = "none"
"""No browser: plain TLS and few headers."""

_VERSIONED = re.compile(r"([a-z]+)([0-9]+(?:_[0-9]+)*)")
_AGENTS = (
    ("edge", re.compile(r"Edg/([0-9]+)")),
    ("opera", re.compile(r"OPR/([0-9]+)")),
    ("chrome", re.compile(r"Chrome/([0-9]+)")),
    ("firefox", re.compile(r"Firefox/([0-9]+)")),
    ("safari", re.compile(r"Version/([0-9]+)(?:\.([0-9]+))?.* Safari/")),
)
_PLATFORMS = (
    ("Android", Platform.Android),
    ("iPhone", Platform.IOS),
    ("iPad", Platform.IOS),
    ("Windows", Platform.Windows),
    ("Macintosh", Platform.MacOS),
    ("Linux", Platform.Linux),
)


@lru_cache(maxsize=512)
def emulation(profile: str, user_agent: str = "") -> Emulation | None:
    """How to look; None for `none`. `user_agent` chooses the platform. Raises ValueError for an unknown profile."""
    if profile == NONE:
        return None
    platform = next((platform for word, platform in _PLATFORMS if word in user_agent), Platform.MacOS)
    return Emulation(profile=find_profile(profile), platform=platform)


def find_profile(name: str) -> Profile:
    """The newest of a family, or one version. Raises ValueError."""
    known = _known()
    wanted = name.lower().replace(".", "_")
    if wanted in FAMILIES:
        return known[max(version for version in known if version[0] == wanted)]
    if match := _VERSIONED.fullmatch(wanted):
        found = known.get((match[1], _numbers(match[2])))
        if found is not None:
            return found
    raise ValueError(f"{name[:40]!r} is unknown; use one of {', '.join(FAMILIES)}, {NONE}, or a version like chrome131")


def profile_of(user_agent: str) -> str:
    """The profile that a user agent belongs to, at the nearest version that is not newer; empty when none does."""
    for family, pattern in _AGENTS:
        match = pattern.search(user_agent)
        if match is None:
            continue
        wanted = tuple(int(part) for part in match.groups() if part)
        versions = [version for name, version in _known() if name == family]
        nearest = max((version for version in versions if version <= wanted), default=min(versions))
        return family + "_".join(str(part) for part in nearest)
    return ""


@lru_cache(maxsize=1)
def _known() -> dict[tuple[str, tuple[int, ...]], Profile]:
    found = ((_VERSIONED.fullmatch(name.lower()), name) for name in dir(Profile))
    return {(match[1], _numbers(match[2])): getattr(Profile, name) for match, name in found if match}


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("_"))


_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(r"-----BEGIN PRIVATE KEY-----.+?-----END PRIVATE KEY-----", re.DOTALL)
_UNUSABLE: tuple[type[Exception], ...] = (ValueError, *WREQ_ERRORS)
_PROXY_PORTS = {"http": 80, "https": 443}
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")


class ClientIdentity(Struct, frozen=True, kw_only=True):
    """What tells one client to a host from another."""

    profile: str
    user_agent: str = ""
    """What the platform's part of the profile follows; the header itself is sent by each request."""
    proxy: str = ""
    """URL with credentials; empty: none."""
    proxy_guarded: bool = False
    """Whether the proxy's own address must pass the guard."""
    proxy_at: tuple[Address, ...] = ()
    """Addresses of the proxy that passed the guard, and nothing else is connected to; empty: as its name resolves."""
    certificate: str = ""
    """PEM of a client certificate with its key; empty: none."""
    ca_file: Path | None = None
    """Authorities trusted beside the usual ones, as a proxy that unlocks needs; None: no others."""
    connect_seconds: float
    """Maximum seconds to connect, TLS included."""
    keeps: bool = True
    """Whether its connections are kept for later requests. False: each request has a new one."""

    def __repr__(self) -> str:
        return f"Dress(profile={self.profile!r}, proxied={bool(self.proxy)})"


_ClientKey = tuple[str, frozenset[Address], ClientIdentity]


class Clients:
    """One client per host, set of addresses and dress."""

    def __init__(self, settings: HttpSettings, *, size: int = 512) -> None:
        """Raises SettingsInvalid when the profile is unknown or the CA bundle cannot be used."""
        self._size = size
        self._made: OrderedDict[_ClientKey, Client] = OrderedDict()
        self._last: dict[tuple[str, ClientIdentity], tuple[tuple[Address, ...], _ClientKey]] = {}
        """The addresses of each host that were asked for last, and their key: hashing addresses takes long."""
        self._runtime: Runtime | None = None
        """The threads of all clients; None before there is one. A client stays on one of them: handing its work from
        thread to thread costs a tenth of a fetch, and one event loop never keeps more than one of them busy."""
        self._config = _config(settings)
        self._bundle = settings.ca_bundle
        try:
            emulation(settings.profile)
        except ValueError as error:
            raise SettingsInvalid(f"http.profile: {error}") from None

    def find(self, host: str, addresses: tuple[Address, ...], dress: ClientIdentity) -> Client | None:
        """The client that `get` gave last for this host and dress; None: ask `get`."""
        last = self._last.get((host, dress))
        if last is None or last[0] != addresses:
            return None
        self._made.move_to_end(last[1])
        return self._made[last[1]]

    def get(self, host: str, addresses: tuple[Address, ...], dress: ClientIdentity) -> Client:
        """The client for a host whose addresses were checked. Without a proxy it connects nowhere else under that name.

        Raises ValueError for an unknown profile or a certificate that is none, FetchFailed for a proxy that is none.
        """
        key = (host, frozenset(addresses), dress)
        client = self._made.get(key)
        if client is None:
            client = self._made[key] = self._make(host, addresses, dress)
        self._made.move_to_end(key)
        self._last[host, dress] = (addresses, key)
        if len(self._made) > self._size:
            # Not closed: that would cancel requests in flight. It goes when the last of them ends.
            (host, _, dress), _ = self._made.popitem(last=False)
            self._last.pop((host, dress), None)
        return client

    def close(self) -> None:
        """Close every client; requests in flight end. May be called twice."""
        for client in self._made.values():
            client.close()
        self._made.clear()
        self._last.clear()
        self._runtime = None  # its threads end with the last request

    def _make(self, host: str, addresses: tuple[Address, ...], dress: ClientIdentity) -> Client:
        dns = DnsOptions()
        dns.add_resolve(host, addresses)
        if dress.proxy_at:
            dns.add_resolve(proxy_target(dress.proxy).host, dress.proxy_at)
        patience = timedelta(seconds=dress.connect_seconds)
        self._runtime = self._runtime or Runtime(work_steal=False)
        config: ClientConfig = {
            **self._config,
            "runtime": self._runtime,
            "dns_options": dns,
            "connect_timeout": patience,
        }
        look = emulation(dress.profile, dress.user_agent)
        if look is not None:
            config["emulation"] = look
        else:
            config["headers"] = {"accept": "*/*", "accept-encoding": "gzip, deflate, br, zstd"}
        if not dress.keeps:
            config["pool_max_idle_per_host"] = 0
        if dress.proxy:
            config["proxies"] = [_proxy(dress.proxy)]
        else:
            config["no_proxy"] = True  # a proxy from the environment would connect to addresses nobody checked
        if dress.ca_file is not None:
            config["tls_verify"] = _trusting(dress.ca_file, self._bundle)
        if dress.certificate:
            config["tls_identity"] = _identity(dress.certificate)
        return Client(**config)


class PinnedClients:
    """Clients that reach only addresses which have passed the guard. One per worker."""

    def __init__(self, clients: Clients, dns: GuardedDns) -> None:
        self._clients = clients
        self._dns = dns

    def ready(self, target: Target, dress: ClientIdentity) -> Client | None:
        """The client for a target whose addresses are known and have passed; None: `connect`."""
        addresses = None if dress.proxy_guarded else self._dns.known(target)
        return None if addresses is None else self._clients.find(target.host, addresses, dress)

    async def connect(self, target: Target, dress: ClientIdentity) -> Client:
        """Resolve the target, ask the guard, and make a client if there is none. Raises FetchFailed."""
        addresses = await self._dns.addresses(target)
        if dress.proxy_guarded:
            dress = replace(dress, proxy_at=await self._dns.addresses(proxy_target(dress.proxy)))
        try:
            return self._clients.get(target.host, addresses, dress)
        except ValueError as error:
            raise FetchFailed(ExitReason.FETCH_NOT_ALLOWED, f"the request cannot be made so: {error}") from None

    def close(self) -> None:
        """Close every client; requests in flight end. May be called twice."""
        self._clients.close()


def _config(settings: HttpSettings) -> "ClientConfig":
    config: ClientConfig = {
        "redirect": Policy.none(),
        "read_timeout": timedelta(seconds=settings.read_seconds),
        "pool_idle_timeout": timedelta(seconds=30),
        "pool_max_idle_per_host": settings.concurrency,
        # We decompress ourselves: only so can both the wire and the page be counted and capped.
        "gzip": False,
        "brotli": False,
        "deflate": False,
        "zstd": False,
    }
    if settings.user_agent:
        config["user_agent"] = settings.user_agent
    if settings.ca_bundle is not None:
        config["tls_verify"] = CertStore(pem_certs=_certificates(settings.ca_bundle), default_paths=True)
    return config


def _trusting(ca_file: Path, bundle: Path | None) -> CertStore:
    """Raises FetchFailed (fetch_proxy): the file belongs to the proxy's pool."""
    try:
        own = _certificates(ca_file)
    except SettingsInvalid as error:
        said = error.message.partition(": ")[2]
        raise FetchFailed(ExitReason.FETCH_PROXY, f"the ca_file of the proxy's pool is of no use: {said}") from None
    return CertStore(pem_certs=own + (_certificates(bundle) if bundle else []), default_paths=True)


def _certificates(bundle: Path) -> list[str]:
    try:
        found = _CERTIFICATE.findall(bundle.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"http.ca_bundle: {bundle} cannot be read: {error}") from None
    if not found:
        raise SettingsInvalid(f"http.ca_bundle: {bundle} has no certificate in PEM form")
    return found


def proxy_target(url: str) -> Target:
    """Where a proxy listens. Raises FetchFailed (fetch_proxy)."""
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return parse_target(f"http://{host}:{parts.port or _PROXY_PORTS.get(parts.scheme, 1080)}/")
    except (ValueError, FetchFailed):
        raise FetchFailed(ExitReason.FETCH_PROXY, "the proxy's URL has no address that can be used") from None


def _proxy(url: str) -> Proxy:
    """Raises FetchFailed (fetch_proxy) for a URL that is none; its words keep the credentials to themselves."""
    try:
        parts = urlsplit(url)
        bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], path="", query="", fragment=""))
        if parts.scheme not in _PROXY_SCHEMES or not parts.hostname:
            raise ValueError
        if not parts.username:
            return Proxy.all(bare)
        return Proxy.all(bare, username=unquote(parts.username), password=unquote(parts.password or ""))
    except _UNUSABLE:
        message = f"the proxy's URL cannot be used; write scheme://host:port with {', '.join(_PROXY_SCHEMES)}"
        raise FetchFailed(ExitReason.FETCH_PROXY, message) from None


def _identity(pem: str) -> Identity:
    key = _KEY.search(pem)
    chain = "\n".join(_CERTIFICATE.findall(pem))
    if key is None or not chain:
        raise ValueError("a client certificate is PEM text with the certificate and its private key (PKCS #8)")
    try:
        return Identity.from_pkcs8_pem(chain.encode(), key[0].encode())
    except WREQ_ERRORS as error:
        raise ValueError(f"the client certificate cannot be used ({type(error).__name__})") from None
