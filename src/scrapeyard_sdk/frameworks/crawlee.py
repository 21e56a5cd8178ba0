"""An HTTP client for Crawlee that fetches through the worker: `ParselCrawler(http_client=FetchClient(ctx))`.

Sessions of Crawlee hold the cookies. Redirects are followed by the worker. Proxies are those of the run's policy.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from crawlee import HttpHeaders
from crawlee.errors import ProxyError
from crawlee.http_clients import HttpClient, HttpCrawlingResult

from scrapeyard_sdk.context import Context
from scrapeyard_sdk.outcomes import FetchError
from scrapeyard_sdk.page import Page

_MAX_TIMEOUT = 3600.0


class FetchedResponse:
    """A page in Crawlee's own shape. It is there as a whole, also for `read_stream`."""

    http_version = "HTTP/1.1"

    def __init__(self, page: Page) -> None:
        self._page = page
        self.status_code = page.status
        self.headers = HttpHeaders({name: page.headers[name] for name in page.headers if name != "set-cookie"})

    async def read(self) -> bytes:
        """The body."""
        return self._page.body

    async def read_stream(self) -> AsyncIterator[bytes]:
        """The body, in one piece."""
        yield self._page.body


class FetchClient(HttpClient):  # type: ignore[misc]
    """Sends the requests of a crawler through `ctx.fetch`. Options beyond those of Crawlee go to each fetch."""

    def __init__(self, ctx: Context, *, persist_cookies_per_session: bool = True, **options: Any) -> None:
        super().__init__(persist_cookies_per_session=persist_cookies_per_session)
        self._ctx = ctx
        self._options = options

    async def crawl(
        self,
        request: Any,
        *,
        session: Any = None,
        proxy_info: Any = None,
        statistics: Any = None,
        timeout: timedelta | None = None,
    ) -> HttpCrawlingResult:
        """Fetch a request of the crawler. Raises TimeoutError, ProxyError or FetchError, which Crawlee tries again."""
        page = await self._fetch(
            request.url,
            method=request.method,
            headers=request.headers,
            payload=request.payload,
            session=session,
            proxy_info=proxy_info,
            timeout=timeout,
        )
        if statistics is not None:
            statistics.register_status_code(page.status)
        request.loaded_url = page.url
        return HttpCrawlingResult(http_response=FetchedResponse(page))

    async def send_request(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Any = None,
        payload: Any = None,
        session: Any = None,
        proxy_info: Any = None,
        timeout: timedelta | None = None,
    ) -> FetchedResponse:
        """For `context.send_request`. Raises as `crawl`."""
        page = await self._fetch(
            url,
            method=method,
            headers=headers,
            payload=payload,
            session=session,
            proxy_info=proxy_info,
            timeout=timeout,
        )
        return FetchedResponse(page)

    @asynccontextmanager
    async def stream(self, url: str, **options: Any) -> AsyncIterator[FetchedResponse]:
        """As `send_request`: pages come as a whole. For large files, use `ctx.download`."""
        yield await self.send_request(url, **options)

    async def cleanup(self) -> None:
        """Nothing to close: the connections are the worker's."""

    async def _fetch(
        self,
        url: str,
        *,
        method: str,
        headers: Any,
        payload: Any,
        session: Any,
        proxy_info: Any,
        timeout: timedelta | None,
    ) -> Page:
        if proxy_info is not None:
            raise ProxyError("a run chooses no proxy of its own; use policy.proxy and the pools of the platform")
        sent = {name: value for name, value in dict(headers or {}).items() if name.lower() != "accept-encoding"}
        if session is not None and not any(name.lower() == "cookie" for name in sent):
            cookies = session.cookies.get_cookie_string(url)
            sent |= {"cookie": cookies} if cookies else {}
        options = {**self._options, "method": method, "headers": sent, "body": payload or b""}
        if timeout is not None:
            options["timeout"] = min(max(timeout.total_seconds(), 0.001), _MAX_TIMEOUT)
        try:
            page = await self._ctx.fetch(url, **options)
        except FetchError as error:
            raise _raised(error) from error
        if self._persist_cookies_per_session and session is not None:
            for name, value in page.cookies.items():
                session.cookies.set(name, value, domain=urlsplit(page.url).hostname or "")
        return page


def _raised(error: FetchError) -> Exception:
    """As Crawlee knows it."""
    if error.reason == "fetch_timeout":
        return TimeoutError(error.message)
    return ProxyError(error.message) if error.reason == "fetch_proxy" else error
