"""The hottest call goes straight to its function, past routing and injection."""

from collections.abc import Awaitable, Callable

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from scrapeyard.errors import ScrapeyardError
from scrapeyard.gateway.http import problems


class HotPath:
    """Answers `POST` on one path itself; the application behind it documents the same route and answers the rest."""

    def __init__(self, app: ASGIApp, path: str, answer: Callable[[Request], Awaitable[Response]]) -> None:
        self._app = app
        self._path = path
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["path"] != self._path or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            response = await self._answer(Request(scope, receive))
        except ScrapeyardError as error:
            response = problems.from_error(error)
        except ValidationError as error:
            response = problems.invalid(error.errors())
        await response(scope, receive, send)
