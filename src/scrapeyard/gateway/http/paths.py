"""Other spellings of paths. A request under one of them is served as if it had used ours; nothing is redirected."""

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

PATHS: Final = {"/jobs": "/api/jobs"}
"""Beginnings of paths, and ours. A slash at the end of any path is left out as well."""


class PathAliases:
    """Replaces the path of a request by ours, for routes and for limits that depend on the path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "lifespan" and (path := our_path(given := scope["path"])) != given:
            scope = {**scope, "path": path}
        await self._app(scope, receive, send)


def our_path(given: str) -> str:
    """The path under which a request is served."""
    path = given[:-1] if given.endswith("/") and given != "/" else given
    if not path.startswith("/api/"):
        for alias, ours in PATHS.items():
            if path == alias or path.startswith(f"{alias}/"):
                return ours + path.removeprefix(alias)
    return path
