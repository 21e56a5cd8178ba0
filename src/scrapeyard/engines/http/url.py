"""A URL that may be fetched, taken apart strictly and spelled in one way only.

Programs disagree about odd URLs, and attacks live in the disagreement: what one reads as a name another reads as
127.0.0.1. So we refuse what is odd rather than guess (numbers that are not a plain address, percent signs, backslashes,
user names, zone ids), write the rest in its plainest form, and hand exactly that to the client. Dot segments are
resolved here, so robots.txt, the cache and the site see the path that is asked for.
"""

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, urljoin

import idna
from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

Address = IPv4Address | IPv6Address

MAX_URL = 8192
"""Characters. Few servers take more."""

_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.IGNORECASE | re.ASCII)
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::([0-9]{0,5}))?", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)
_SEGMENTS = {".": "", "%2e": "", "..": "up", ".%2e": "up", "%2e.": "up", "%2e%2e": "up"}
_SLASHES = re.compile(r"[^?#]*")
_PLAIN_URI = re.compile(r"https?://(?:[A-Za-z0-9._~:/?#@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*", re.ASCII)
_NO_URI = re.compile(r"[|\[\]]|%(?![0-9A-Fa-f]{2})")
"""What browsers send as it is, and schemas do not take for a part of a URI."""
_BLANK = "".join(map(chr, range(0x21)))
"""What browsers take off both ends of a URL."""
_PLAIN_TARGET = re.compile(
    r"(https?)://([A-Za-z0-9.:\[\]_-]+)(/[A-Za-z0-9/%:@!$&'()*+,;=~._\[\]|-]*(?:\?[A-Za-z0-9/%:@!$&'()*+,;=~._\[\]|?-]+)?)",
    re.ASCII,
)
"""Most URLs: nothing in them is spelled in another way, as long as there are no dot segments."""
_PLAIN = re.compile(r"[A-Za-z0-9/%:@!$&'()*+,;=~._\[\]|?-]*", re.ASCII)
_SAFE = "/%:@!$&'()*+,;=~-._[]|?"


class Target(Struct, frozen=True, kw_only=True):
    """Where one request goes."""

    scheme: str
    host: str
    """Lower case, punycode, no trailing dot; an IPv6 address without its brackets."""
    port: int
    resource: str
    """Path and query."""
    literal: Address | None
    """The host where it is an address; None where it is a name that must be resolved."""

    @property
    def origin(self) -> tuple[str, str, int]:
        """Credentials stay within one origin."""
        return self.scheme, self.host, self.port

    def at(self, resource: str) -> "Target":
        """Another resource of the same origin."""
        return replace(self, resource=resource)

    @property
    def endpoint(self) -> str:
        """`host:port`, with an IPv6 address in brackets."""
        host = f"[{self.host}]" if isinstance(self.literal, IPv6Address) else self.host
        return f"{host}:{self.port}"

    @property
    def authority(self) -> str:
        """The same, without the port where it is the scheme's own: what the Host header says."""
        return self.endpoint.removesuffix(f":{_PORTS[self.scheme]}")

    @property
    def url(self) -> str:
        """The one spelling, without a fragment."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.port == _PORTS[self.scheme]:
            return f"{self.scheme}://{host}{self.resource}"
        return f"{self.scheme}://{host}:{self.port}{self.resource}"


def parse_target(url: str) -> Target:
    """Take a URL apart. Raises FetchFailed (fetch_bad_url) for anything odd, with what to write instead."""
    if (plain := _PLAIN_TARGET.fullmatch(url)) and len(url) <= MAX_URL and "/." not in url and "/%2" not in url:
        scheme, authority, resource = plain.groups()
        return _target(scheme, authority, resource, url)
    url = url.strip(_BLANK)
    if len(url) > MAX_URL:
        raise _bad(url[:80], f"is longer than {MAX_URL} characters; send the data in the body instead")
    if _CONTROL.search(url):
        raise _bad(url, "contains a control character or a backslash; percent-encode it")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise _bad(url, "is not a whole URL; write it as https://host/path")
    scheme, authority, path, query = parts.groups()
    scheme = scheme.lower()
    if scheme not in _PORTS:
        raise _bad(url, f"has the scheme {scheme}; only http and https are fetched")
    path = (_without_dots(path) if _DOTS.search(path) else path) or "/"
    resource = f"{path}?{query}" if query else path
    if not _PLAIN.fullmatch(resource):
        resource = quote(resource, safe=_SAFE)
    return _target(scheme, authority, resource, url)


def _target(scheme: str, authority: str, resource: str, url: str) -> Target:
    try:
        host, literal, port = _take_authority(authority)
    except _Odd as odd:
        raise _bad(url, str(odd)) from None
    return Target(scheme=scheme, host=host, port=port or _PORTS[scheme], resource=resource, literal=literal)


def spell_url(url: str) -> str:
    """The URL as a browser writes it: without blanks around it, in ASCII, the scheme in lower case. One that is plain
    already, or that nobody could fetch, stays as it is."""
    if _PLAIN_URI.fullmatch(url):
        return url
    try:
        target = parse_target(url)
    except FetchFailed:
        return url
    return replace(target, resource=_NO_URI.sub(lambda odd: quote(odd[0], safe=""), target.resource)).url


def _without_dots(path: str) -> str:
    """A path without `.` and `..`, also where the dots are percent-encoded."""
    found: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        dots = _SEGMENTS.get(segment.lower())
        if dots is None:
            found.append(segment)
        elif dots and found:
            found.pop()
    if segments[-1].lower() in _SEGMENTS:
        found.append("")
    return "/" + "/".join(found)


def join_target(base: Target, location: str) -> Target:
    """Where a redirect leads. A backslash before the query counts as a slash, as in browsers.

    Raises FetchFailed (fetch_bad_url).
    """
    location = _SLASHES.sub(lambda path: path[0].replace("\\", "/"), location.strip(_BLANK), count=1)
    location = location.replace("\\", "%5C")
    try:
        return parse_target(urljoin(base.url, location))
    except ValueError:
        raise _bad(location[:200], "is where the site redirects to, and it is not a URL") from None


def canonical_host(host: str) -> str:
    """A name in lower case and punycode, without the trailing dot. Raises ValueError when it cannot be one."""
    if not host.isascii():
        host = idna.encode(host, uts46=True, transitional=False).decode("ascii")
    host = host.lower().removesuffix(".")
    if not 0 < len(host) <= 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise ValueError("not a host name")
    return host


class _Odd(Exception):
    """What is wrong with an authority."""


@lru_cache(maxsize=1024)
def _take_authority(authority: str) -> tuple[str, Address | None, int]:
    """Raises _Odd. The pages of a site differ in what follows, so the last ones are remembered."""
    if "@" in authority:
        raise _Odd("carries a user name; send credentials in an Authorization header")
    if "%" in authority:
        raise _Odd("has a percent sign in its host; write the host plainly")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise _Odd("has no host that can be read")
    host, digits = parts.groups()
    port = int(digits or 0)
    if port > 65535 or (digits and port == 0):
        raise _Odd(f"has the port {digits}; ports are 1 to 65535")
    name, literal = _take_address(host) if host.startswith("[") else _take_name(host)
    return name, literal, port


def _take_address(host: str) -> tuple[str, Address]:
    try:
        literal = IPv6Address(host[1:-1])
    except AddressValueError:
        raise _Odd("has brackets around something that is not an IPv6 address") from None
    return str(literal), literal


def _take_name(host: str) -> tuple[str, Address | None]:
    try:
        name = canonical_host(host)
    except (ValueError, UnicodeError):
        raise _Odd("has a host that is not a valid name") from None
    if not _NUMBER.fullmatch(name.rpartition(".")[2]):
        return name, None
    try:
        return name, IPv4Address(name)
    except AddressValueError:
        raise _Odd("has a number for a host; write an address as four plain decimal numbers") from None


def _bad(url: str, what: str) -> FetchFailed:
    return FetchFailed(ExitReason.FETCH_BAD_URL, f"the URL {url[:200]!r} {what}")
