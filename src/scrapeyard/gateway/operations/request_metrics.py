"""Counts requests by the template of their route, never by their path: paths are unbounded."""

import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrapeyard.telemetry.metrics import Metrics

_INNER = "scrapeyard.inner_scope"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
"""A method that is not known, and the route of a request that no route took."""


class RequestMetrics:
    """The outermost middleware: counts every request once its answer begins, also refused ones."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        method = scope["method"] if scope["method"] in _METHODS else OTHER
        inner: list[Scope] = []
        scope[_INNER] = inner

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                seconds = time.perf_counter() - began
                self._metrics.answered(method, _template(inner), message["status"], seconds)
            await send(message)

        await self._app(scope, receive, counted)


class RouteWitness:
    """Right outside the routes: shows RequestMetrics the scope in which the router writes the route it chose. Other
    middlewares pass on copies of the scope. `hot` is a path that is answered without a router."""

    def __init__(self, app: ASGIApp, hot: str) -> None:
        self._app = app
        self._hot = _Hot(hot)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if (inner := scope.get(_INNER)) is not None:
            inner.append(scope)
            if scope["path"] == self._hot.path and scope["method"] == "POST":
                scope.setdefault("route", self._hot)
        await self._app(scope, receive, send)


class _Hot:
    def __init__(self, path: str) -> None:
        self.path = path


def _template(inner: list[Scope]) -> str:
    route: Any = inner[-1].get("route") if inner else None
    return str(getattr(route, "path", OTHER))
