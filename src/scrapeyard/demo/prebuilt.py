"""Pages from memory, sent before any routing: the shop must not be what a benchmark measures."""

import re
from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from scrapeyard.demo.parts import BASE

_HOST = re.compile(rb"[A-Za-z0-9.-]{1,253}(:\d{1,5})?|\[[0-9a-f:.]{2,45}\](:\d{1,5})?")
_BASE = BASE.encode()


class PrebuiltPages:
    """Answers GET for known addresses; everything else goes on to `app`."""

    def __init__(self, app: ASGIApp, pages: Mapping[str, tuple[str, bytes]]) -> None:
        self._app = app
        self._pages = {path: (_content_type(media_type), body) for path, (media_type, body) in pages.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        found = self._find(scope) if scope["type"] == "http" and scope["method"] == "GET" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        content_type, body = found
        body = body.replace(_BASE, address(scope))
        headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _find(self, scope: Scope) -> tuple[bytes, bytes] | None:
        query = scope["query_string"].decode("latin-1")
        return self._pages.get(f"{scope['path']}?{query}" if query else scope["path"])


def address(scope: Scope) -> bytes:
    """The shop's address as the caller spelt it; a Host header that is no host is not repeated."""
    host: bytes = next((value for name, value in scope["headers"] if name == b"host"), b"")
    scheme: str = scope["scheme"]
    return scheme.encode() + b"://" + (host if _HOST.fullmatch(host) else b"localhost")


def _content_type(media_type: str) -> bytes:
    return f"{media_type}; charset=utf-8".encode() if media_type.startswith("text/") else media_type.encode()
