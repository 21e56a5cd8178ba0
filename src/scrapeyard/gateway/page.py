"""The page for people: static files that a browser loads from the gateway, outside of the API and open to everybody.

Vite builds them from `web/` into the folder `built` beside this module. Without a build, `/` says how to make one.
"""

import gzip
import mimetypes
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

BUILT: Final = Path(__file__).parent / "built"
INDEX: Final = "index.html"
_RESERVED: Final = ("/api", "/docs", "/metrics")
_ASSETS: Final = "/assets/"
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_MISSING: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Scrapeyard</title>
</head>
<body>
<h1>Scrapeyard</h1>
<p>The API serves, but the page is not built. In a clone of the repository, run <code>make page</code> and load this
address again. It needs Node 20.19 or newer, or a network to install one.</p>
<p><a href="/docs">The reference of the API</a></p>
</body>
</html>
"""


class _BuiltFile(NamedTuple):
    body: bytes
    zipped: bytes
    """Empty where it would save nothing."""
    media_type: str
    tag: str


class Dashboard:
    """Answers browsers: files of the page by their name, and the page itself wherever a person navigates to.

    A program that calls `/` or `/jobs` does not ask for HTML, and is answered by the API.
    """

    def __init__(self, app: ASGIApp, folder: Path = BUILT) -> None:
        self._app = app
        self._folder = folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        answer = self._answer(scope) if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") else None
        await (answer or self._app)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response | None:
        """None: the API answers."""
        path, headers = scope["path"], Headers(scope=scope)
        if path.startswith(_ASSETS) or (path.count("/") == 1 and "." in path):
            file = _read(self._folder, path)
            return None if file is None else _respond(file, headers, is_named_by_content=path.startswith(_ASSETS))
        if not _navigates(path, headers):
            return None
        file = _read(self._folder, f"/{INDEX}")
        if file is not None:
            return _respond(file, headers, is_named_by_content=False)
        return Response(_MISSING, media_type="text/html", headers=_HEADERS) if path == "/" else None


def _navigates(path: str, headers: Headers) -> bool:
    if path.startswith(_RESERVED):
        return False
    return "text/html" in headers.get("accept", "") and headers.get("sec-fetch-dest", "document") == "document"


def _respond(file: _BuiltFile, asked: Headers, *, is_named_by_content: bool) -> Response:
    lasting = "public, max-age=31536000, immutable" if is_named_by_content else "no-cache"
    headers = {**_HEADERS, "Cache-Control": lasting, "ETag": file.tag, "Vary": "Accept, Accept-Encoding"}
    if asked.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    if file.zipped and "gzip" in asked.get("accept-encoding", ""):
        return Response(file.zipped, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.body, media_type=file.media_type, headers=headers)


def _read(folder: Path, path: str) -> _BuiltFile | None:
    """A file of the build, if it is one: nothing outside of the folder can be named."""
    name = path.lstrip("/")
    if not name or any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in name.split("/")):
        return None
    found = folder / name
    try:
        changed = found.stat().st_mtime_ns if found.is_file() else None
    except (OSError, ValueError):
        return None
    return None if changed is None else _load(found, changed)


@cache
def _load(path: Path, _changed: int) -> _BuiltFile:
    body = path.read_bytes()
    zipped = gzip.compress(body, mtime=0)
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return _BuiltFile(
        body=body,
        zipped=zipped if len(zipped) < len(body) else b"",
        media_type=kind,
        tag=f'"{sha256(body).hexdigest()[:32]}"',
    )
