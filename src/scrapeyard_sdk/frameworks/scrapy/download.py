"""Scrapy's download handler for http and https: every request goes through `ctx.fetch`.

Scrapy's own middlewares follow redirects, keep cookies and try again; the engine fetches single pages.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urldefrag

import scrapy.exceptions
from scrapy import signals, version_info
from scrapy.exceptions import IgnoreRequest, NotSupported, StopDownload
from scrapy.http import Headers, Request, Response
from scrapy.responsetypes import responsetypes
from scrapy.utils.defer import deferred_from_coro
from twisted.internet import defer, error

from scrapeyard_sdk.context import Context
from scrapeyard_sdk.outcomes import FetchError
from scrapeyard_sdk.page import Page

_UNLIMITED = 1024**3
"""Scrapy's default for DOWNLOAD_MAXSIZE; the engine has a smaller limit of its own."""
_MAX_TIMEOUT = 3600.0
_WAIT_SECONDS = 60.0
"""Most seconds to wait for a turn at a site that the engine puts off."""
_FRAMING = frozenset(
    {
        *(b"accept-encoding", b"connection", b"content-length", b"expect", b"host", b"keep-alive", b"te"),
        *(b"trailer", b"transfer-encoding", b"upgrade"),
    }
)
"""Headers that the engine sets itself. It decompresses what it gets."""
_PROXY = b"proxy-"
"""Headers for a proxy, with its password; Scrapy adds one for `meta["proxy"]`."""
_DECODED = frozenset({"connection", "content-encoding", "keep-alive", "transfer-encoding"})
"""Headers of an answer that Scrapy does not show, or that no longer fit its body."""
ENDS = ("fetch_limit", "fetch_budget")
"""Reasons after which no further page can be had."""


def _error(name: str, twisted: type[Exception]) -> type[Exception]:
    """Scrapy's exception; before Scrapy 2.15 that of Twisted, which RetryMiddleware and errbacks know there."""
    found: type[Exception] = getattr(scrapy.exceptions, name, twisted)
    return found


_CONNECT = _error("DownloadConnectionRefusedError", error.ConnectionRefusedError)
_ERRORS = {
    "fetch_timeout": _error("DownloadTimeoutError", error.TimeoutError),
    "fetch_dns": _error("CannotResolveHostError", error.DNSLookupError),
    "fetch_too_large": _error("DownloadCancelledError", defer.CancelledError),
    "fetch_robots": IgnoreRequest,
    **dict.fromkeys(("fetch_connect", "fetch_proxy", "fetch_rate_limited", "fetch_site_down"), _CONNECT),
    **dict.fromkeys(("fetch_bad_url", "fetch_not_allowed", "fetch_private_address", *ENDS), NotSupported),
}
"""What a spider meets, by reason. It does not help to try NotSupported again, and RetryMiddleware does not."""
_FAILED = _error("DownloadFailedError", error.ConnectionLost)


class _FetchHandler:
    """The handler of one run."""

    lazy = False
    ctx: Context
    stop: Callable[[str], None]
    """Called with the reason when no further page can be had."""

    def __init__(self, crawler: Any) -> None:
        self._warns = {"proxy": "the pools of proxies of the platform"}
        self._max_size = crawler.settings.getint("DOWNLOAD_MAXSIZE")
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Any) -> "_FetchHandler":
        return cls(crawler)

    async def _download(self, request: Request) -> Response:
        began = time.monotonic()
        try:
            page = await self._fetch(request)
        except FetchError as failed:
            if failed.reason in ENDS:
                type(self).stop(failed.reason)
            raise _ERRORS.get(failed.reason, _FAILED)(f"{failed.reason}: {failed.message}") from failed
        request.meta["download_latency"] = time.monotonic() - began
        headers = _headers_of(page)
        stop = self._send(signals.headers_received, request, headers=headers, body_length=len(page.body))
        body = b"" if stop else page.body
        if body:
            stop = self._send(signals.bytes_received, request, data=body)
        response = _response(request, page.status, headers, body)
        if stop:
            response.flags.append("download_stopped")
            if stop.fail:
                stop.response = response
                raise stop
        return response

    def _send(self, signal: object, request: Request, **told: Any) -> StopDownload | None:
        """Tell who listens, once the whole page is here. Returns what a listener raised to stop it."""
        results = self._crawler.signals.send_catch_log(signal, request=request, spider=self._crawler.spider, **told)
        raised = (getattr(result, "value", None) for _, result in results)
        return next((each for each in raised if isinstance(each, StopDownload)), None)

    async def _fetch(self, request: Request) -> Page:
        options = self._options(request)
        while True:
            try:
                return await self.ctx.fetch(request.url, **options)
            except FetchError as failed:
                wait = failed.retry_after or 0.0
                fits = 0 < wait <= min(_WAIT_SECONDS, self.ctx.seconds_left() / 2)
                if failed.reason != "fetch_rate_limited" or not fits:
                    raise
                await asyncio.sleep(wait)

    def _options(self, request: Request) -> dict[str, Any]:
        meta = request.meta
        options: dict[str, Any] = {
            "method": request.method,
            "headers": _headers(request),
            "body": request.body,
            "follow_redirects": False,
        }
        if meta.get("playwright"):
            options["engine"] = "browser"
            if meta.get("playwright_page_methods") or meta.get("playwright_include_page"):
                raise NotSupported("pages of scrapy-playwright cannot be driven here; write a scraper with ctx.browser")
        if 0 < (seconds := float(meta.get("download_timeout") or 0)) <= _MAX_TIMEOUT:
            options["timeout"] = seconds
        size = int(meta.get("download_maxsize") or self._max_size)
        if 0 < size < _UNLIMITED:
            options["max_bytes"] = size
        if meta.get("proxy") and (instead := self._warns.pop("proxy", "")):
            self.ctx.log(f"meta['proxy'] is ignored: {instead} are used", "warning")
        return options


class _AwaitedHandler(_FetchHandler):
    """As Scrapy calls it from 2.14 on."""

    async def download_request(self, request: Request) -> Response:
        return await self._download(request)

    async def close(self) -> None:
        """Nothing to close: the connections are the worker's."""


class _DeferredHandler(_FetchHandler):
    """As Scrapy calls it before 2.14."""

    def download_request(self, request: Request, _spider: object) -> Any:
        return deferred_from_coro(self._download(request))

    def close(self) -> None:
        """Nothing to close: the connections are the worker's."""


def handler_for(ctx: Context, stop: Callable[[str], None]) -> type:
    """A class for DOWNLOAD_HANDLERS. It holds the run's context, because Scrapy makes the instance."""
    base = _AwaitedHandler if version_info >= (2, 14) else _DeferredHandler
    return type("FetchHandler", (base,), {"ctx": ctx, "stop": staticmethod(stop)})


def _headers(request: Request) -> dict[str, str]:
    """A name that has several values is sent once, with all of them."""
    return {
        name.decode("latin-1"): _text((b"; " if name.lower() == b"cookie" else b", ").join(values))
        for name, values in request.headers.items()
        if name.lower() not in _FRAMING and not name.lower().startswith(_PROXY) and values
    }


def _text(value: bytes) -> str:
    """A value that the engine sends as these bytes: it writes text as UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _headers_of(page: Page) -> Headers:
    """As bytes; the engine reads each byte as one character."""
    headers = Headers()
    for name in page.headers:
        if name not in _DECODED:
            headers.setlist(name, [value.encode("latin-1", "replace") for value in page.headers.get_all(name)])
    return headers


def _response(request: Request, status: int, headers: Headers, body: bytes) -> Response:
    """Without the fragment of the address, as Scrapy's own handlers."""
    url = urldefrag(request.url).url
    kind = responsetypes.from_args(headers=headers, url=url, body=body)
    return kind(url=url, status=status, headers=headers, body=body)
