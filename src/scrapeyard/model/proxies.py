"""The address of a proxy, as operators write it."""

import re
from typing import Literal, cast, get_args
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

ProxyScheme = Literal["http", "https", "socks5", "socks5h"]
SCHEMES: tuple[str, ...] = get_args(ProxyScheme)
MAX_URL = 2048
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]{2,45}\]")


class ProxyAddress(Struct, frozen=True, kw_only=True):
    """Where a proxy listens and who we are to it. Its `repr` hides the credentials."""

    scheme: ProxyScheme
    """`socks5`: names are resolved here; `socks5h`: by the proxy, as http and https proxies do."""
    host: str
    """An IPv6 address has its brackets."""
    port: int
    user: str = ""
    password: str = ""

    @property
    def endpoint(self) -> str:
        """`host:port`, which tells nothing secret."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """With the credentials."""
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.user or self.password else ""
        return f"{self.scheme}://{login}{self.endpoint}"

    def __repr__(self) -> str:
        return f"ProxyAddress({self.scheme}://{'***@' if self.user or self.password else ''}{self.endpoint})"

    __str__ = __repr__


def read_proxy_url(text: str) -> ProxyAddress:
    """Raises ValueError saying what to write instead; the message holds nothing of the text but its scheme."""
    if not 0 < len(text) <= MAX_URL or not text.isprintable() or " " in text:
        raise ValueError(f"must be 1 to {MAX_URL} characters without spaces")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("not a URL; write http://user:password@host:port") from None
    if parts.scheme not in SCHEMES:
        raise ValueError(f"{parts.scheme[:20]!r} is not known; write one of {', '.join(SCHEMES)} before ://")
    _, _, place = parts.netloc.rpartition("@")
    host = place.rpartition(":")[0]
    if not port or _HOST.fullmatch(host) is None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("write scheme://user:password@host:port and nothing behind it")
    return ProxyAddress(
        scheme=cast("ProxyScheme", parts.scheme),
        host=host.lower(),
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


def read_endpoint(text: str) -> tuple[str, int]:
    """`host:port`. Raises ValueError."""
    address = read_proxy_url(f"http://{text}") if "@" not in text else None
    if address is None or text != f"{text.rpartition(':')[0]}:{address.port}":
        raise ValueError("write host:port")
    return address.host, address.port
