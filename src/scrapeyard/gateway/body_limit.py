"""Refuses large request bodies before they are read whole."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrapeyard.gateway.problems import Refusal, from_error


class BodyLimit:
    """A declared length over the limit is answered 413 without reading; an undeclared body is counted and cut."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        declared = _declared(scope)
        if declared is not None and declared > self._max:
            await from_error(self._refusal())(scope, receive, send)
        elif declared is not None:
            await self._app(scope, receive, send)
        else:
            await self._app(scope, self._counted(receive), send)

    def _refusal(self) -> Refusal:
        return Refusal("too_large", 413, f"the body is over the limit of {self._max} bytes")

    def _counted(self, receive: Receive) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max:
                raise self._refusal()
            return message

        return counted


def _declared(scope: Scope) -> int | None:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 20 else None
    return None
