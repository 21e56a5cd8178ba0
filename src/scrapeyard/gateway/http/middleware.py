"""Around every route: size limits, a shortcut for the hottest call, and the handler of last resort."""

from collections.abc import Awaitable, Callable

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrapeyard.errors import Refusal, ScrapeyardError
from scrapeyard.gateway.http import problems
from scrapeyard.gateway.http.problems import from_error, unexpected
from scrapeyard.telemetry.events import get_log


class BodyLimit:
    """Answers 413 without reading if the declared length is over the limit; counts an undeclared body and cuts it off.

    `larger` returns the limit of requests that have their own, or None if `max_bytes` applies. A client's own limit
    (`body_mb` of the scope) can only be smaller.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, larger: Callable[[Scope], int | None] = lambda _: None) -> None:
        self._app = app
        self._max = max_bytes
        self._larger = larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        most, declared = self._most(scope), _declared(scope)
        if declared is not None and declared > most:
            await from_error(_refusal(most))(scope, receive, send)
        elif declared is not None:
            await self._app(scope, receive, send)
        else:
            await self._app(scope, _counted(receive, most), send)

    def _most(self, scope: Scope) -> int:
        most, own = self._larger(scope) or self._max, scope.get("body_mb")
        return min(most, int(own * 2**20)) if own else most


def _refusal(most: int) -> Refusal:
    return Refusal("too_large", 413, f"the body is over the limit of {most} bytes")


def _counted(receive: Receive, most: int) -> Receive:
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise _refusal(most)
        return message

    return counted


def _declared(scope: Scope) -> int | None:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 20 else None
    return None


class HotPath:
    """Answers `POST` on one path itself. The application behind it documents that route and handles all others, as well
    as calls with a query, which the route refuses."""

    def __init__(self, app: ASGIApp, path: str, answer: Callable[[Request], Awaitable[Response]]) -> None:
        self._app = app
        self._path = path
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if not self._is_hot(scope):
            await self._app(scope, receive, send)
            return
        try:
            response = await self._answer(Request(scope, receive))
        except ScrapeyardError as error:
            response = problems.from_error(error)
        except ValidationError as error:
            response = problems.invalid(error.errors())
        await response(scope, receive, send)

    def _is_hot(self, scope: Scope) -> bool:
        if scope["type"] != "http" or scope["path"] != self._path:
            return False
        return bool(scope["method"] == "POST" and not scope["query_string"])


class HeadAnswers:
    """Answers HEAD as GET, without the body. A stream ends after its head."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body"})
            elif message.get("more_body"):
                raise ClientDisconnect

        await self._app({**scope, "method": "GET"}, receive, without_body)


log = get_log("gateway")


class LastResort:
    """Catches any exception left. A response already begun is aborted, so that nobody takes it for complete."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            log.debug("gateway.client_gone", path=scope["path"])
        except Exception as error:
            log.error("gateway.unexpected_error", path=scope["path"], error=repr(error), exc_info=error)
            if begun:
                raise
            await unexpected()(scope, receive, send)
