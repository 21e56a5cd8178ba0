"""Where the server is, and how requests reach it."""

import ipaddress
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import urlencode, urlsplit

import anyio
import anyio.to_thread

from scrapeyard_client.steps import ConnectionBroken, Request

VARIABLES = ("SCRAPEYARD_SERVER", "SCRAPEYARD_URL")
KEY = "SCRAPEYARD_KEY"
DEFAULT = "http://127.0.0.1:8000"


def server_address(given: str | None) -> str:
    """The address that is given, else the one of the environment, else the default. Raises ValueError."""
    url = given or next((os.environ[name] for name in VARIABLES if os.environ.get(name)), DEFAULT)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url[:200]!r} is not a server's address; write it as {DEFAULT}")
    return url.rstrip("/")


def transport_options(url: str, timeout: float, headers: Mapping[str, str] | None, key: str | None) -> dict[str, Any]:
    """Options of an httpx client. Without a `key`, that of the environment is sent, if there is one. Proxies of the
    environment are used, but not for this machine. Redirects are not followed: the API sends none, and another host
    must not receive the call. Plain HTTP loads no certificates, which takes longer than a call."""
    own = {"User-Agent": f"scrapeyard-client/{_version()}", "Accept": "application/json", "Prefer": "dialect=own"}
    if key := key or os.environ.get(KEY):
        own["Authorization"] = f"Bearer {key}"
    return {
        "base_url": url,
        "timeout": timeout,
        "headers": {**own, **(headers or {})},
        "trust_env": not _is_loopback(urlsplit(url).hostname or ""),
        "follow_redirects": False,
        "verify": not url.startswith("http://"),
    }


def url_of(request: Request) -> str:
    """The path and query of a request."""
    return request.path + (f"?{urlencode(request.query, doseq=True)}" if request.query else "")


async def async_pieces(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, read beside the event loop."""
    source = iter(pieces)
    while piece := await anyio.to_thread.run_sync(lambda: next(source, b"")):
        yield piece


def plain_pieces(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """The same pieces."""
    return pieces


def broken_by(error: Exception, url: str) -> ConnectionBroken:
    """What a broken connection means."""
    return ConnectionBroken(
        f"no answer from {url} ({str(error) or type(error).__name__}); is the server running there?"
    )


def _version() -> str:
    try:
        return version("scrapeyard")
    except PackageNotFoundError:
        return "0"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
