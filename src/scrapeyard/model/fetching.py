"""How a run may fetch: what a call, a job or a manifest asks for, and what it may use up."""

import re
from typing import Any, Literal, Self, cast, get_args
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

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


CacheMode = Literal["off", "through", "back", "around"]
RobotsMode = Literal["ignore", "obey"]
BackoffKind = Literal["linear", "exponential"]
PROFILES = ("chrome", "firefox", "safari", "none")
"""Browsers to look like."""
POOL = r"^[a-z0-9][a-z0-9_-]{0,31}$"
"""Name of a pool of proxies."""
COUNTRY = r"^[A-Za-z]{2}$"
STATE = r"^[A-Za-z]{2}$"
CITY = r"^[A-Za-z0-9][A-Za-z0-9 .'-]{0,59}$"
"""Places, as policies write them."""


class _Wishes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Wishes, each of which may be left open by its default."""

    def over(self, weaker: Self) -> Self:
        """These wishes; where one is open, the weaker one's. Field by field, also within a field that has fields."""
        if weaker == type(weaker)():
            return self
        open_fields = type(self)()
        changes: dict[str, Any] = {}
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(weaker, name)
            if isinstance(mine, _Wishes):
                changes[name] = mine.over(theirs)
            elif mine == getattr(open_fields, name):
                changes[name] = theirs
        return replace(self, **changes)


class BudgetLimits(_Wishes, frozen=True, kw_only=True, omit_defaults=True):
    """What may be used up before fetching stops with `fetch_budget`. None: no limit of its own."""

    requests: int | None = None
    megabytes: float | None = None
    """Received, as on the wire."""
    residential_megabytes: float | None = None
    """The part of it that came through residential or unlocking proxies."""
    seconds: float | None = None
    """Time spent in fetches."""


class Backoff(_Wishes, frozen=True, kw_only=True, omit_defaults=True):
    """How long to wait before another attempt, unless the site says. Open: 5, 10, 20, 40, … s, at most five minutes."""

    kind: BackoffKind | Literal[""] = ""
    first_seconds: float | None = None
    cap_seconds: float | None = None

    def seconds(self, attempt: int) -> float:
        """After this attempt failed (the first is 1), without jitter."""
        first = 5.0 if self.first_seconds is None else self.first_seconds
        cap = 300.0 if self.cap_seconds is None else self.cap_seconds
        times = attempt if self.kind == "linear" else 2 ** min(attempt - 1, 32)
        return min(first * times, cap)


class FetchPolicy(_Wishes, frozen=True, kw_only=True, omit_defaults=True):
    """What a run's fetches do when the script does not say. Empty and None: the platform's setting."""

    robots: RobotsMode | Literal[""] = ""
    cache: CacheMode | Literal[""] = ""
    max_age_seconds: float | None = None
    """A kept page not older than this serves."""
    profile: str = ""
    """Browser to look like."""
    proxy: str = ""
    """Name of a pool; `none` for no proxy."""
    country: str = ""
    state: str = ""
    city: str = ""
    escalate: bool | None = None
    """Whether a block leads to other profiles, proxy tiers and the solver."""
    budget: BudgetLimits = BudgetLimits()
    backoff: Backoff = Backoff()
