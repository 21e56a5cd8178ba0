"""Who may call: names of this gateway in `Host`, and web pages in `Origin`.

A web page can point a name of its own at this gateway's address (DNS rebinding). The browser then takes the gateway for
a part of that page's site. So a name that somebody else could own is refused unless the operator lists it.
"""

from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from scrapeyard.errors import Refusal, ScrapeyardError
from scrapeyard.gateway.http.problems import from_error

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_KNOWN = 1000


class Doors:
    """Refuses calls under a foreign name (421) and changes asked for by foreign pages (403), on every route."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
        self._app = app
        self._hosts = Hosts(hosts)
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
        except ScrapeyardError as error:
            await refuse(from_error(error), scope, receive, send)
            return
        await self._app(scope, receive, _guarded(send) if scope["type"] == "http" else send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = self._host(scope, headers.getlist("host"))
        if scope["type"] == "http" and scope["method"] in _SAFE:
            return
        origin = headers.get("origin")
        if origin is None or "*" in self._origins or origin in self._origins:
            return
        if origin.lower().partition("://")[2] != host.lower():
            raise Refusal("origin_refused", 403, f"pages of {origin[:200]} may not call this gateway")

    def _host(self, scope: Scope, given: list[str]) -> str:
        if len(given) != 1:
            if given or scope.get("http_version") not in ("1.0", None):
                raise Refusal("bad_host", 400, f"the request has {len(given)} Host headers; it must have one")
            return ""  # HTTP/1.0 knows no Host, and no browser speaks it
        if not self._hosts.allow(given[0]):
            raise Refusal("host_refused", 421, f"{given[0][:200]!r} is not a name of this gateway")
        return given[0]


async def refuse(refusal: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request or a WebSocket's opening with a refusal."""
    if scope["type"] == "websocket":
        await WebSocket(scope, receive, send).send_denial_response(refusal)
    else:
        await refusal(scope, receive, send)


class Hosts:
    """Names of this gateway: those that the operator lists, and all that no stranger can own.

    The latter are IP addresses, `localhost`, and names without a dot, as machines and containers on one network have.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = frozenset(name.lower() for name in names if not name.startswith("*."))
        self._suffixes = tuple(name[1:].lower() for name in names if name.startswith("*."))
        self._known: dict[str, bool] = {}

    def allow(self, host: str) -> bool:
        """Whether a `Host` header, with or without a port, names this gateway."""
        known = self._known.get(host)
        if known is None:
            known = self._judge(host)
            if len(self._known) < _MOST_KNOWN:
                self._known[host] = known
        return known

    def _judge(self, host: str) -> bool:
        if "*" in self._names:
            return True
        name = _without_port(host.lower()).removesuffix(".")
        if not name:
            return False
        own = "." not in name or name.endswith(".localhost") or _is_address(name)
        return own or name in self._names or name.endswith(self._suffixes or ("\0",))


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _guarded(send: Send) -> Send:
    """Adds the headers that every answer has: browsers neither guess its type nor store it, unless a route says so."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("X-Content-Type-Options", "nosniff")
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return guarded
