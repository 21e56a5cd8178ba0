"""Refuses large request bodies before they are read whole."""

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrapeyard.gateway.http.problems import Refusal, from_error


class BodyLimit:
    """A declared length over the limit is answered 413 without reading; an undeclared body is counted and cut.

    `larger` gives the limit of requests that have one of their own; None: `max_bytes`, as the others.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, larger: Callable[[Scope], int | None] = lambda _: None) -> None:
        self._app = app
        self._max = max_bytes
        self._larger = larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        most, declared = self._larger(scope) or self._max, _declared(scope)
        if declared is not None and declared > most:
            await from_error(_refusal(most))(scope, receive, send)
        elif declared is not None:
            await self._app(scope, receive, send)
        else:
            await self._app(scope, _counted(receive, most), send)


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
