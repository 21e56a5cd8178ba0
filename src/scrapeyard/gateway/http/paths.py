"""Other spellings of paths, and what a path that nothing answers may have meant.

A request under another spelling is served as if it had used ours; nothing is redirected.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

PATHS: Final = {"/jobs": "/api/jobs", "/api/runs": "/api/scrape", "/api/schedules": "/api/schedule"}
"""Beginnings of paths, and ours. A slash at the end of any path is left out as well."""
_ALIKE = 0.8
"""How alike two paths must be for one to be suggested in place of the other; 1: the same."""


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
    """The path under which a request is served. Two slashes before it come of a base URL that ends in one."""
    path = f"/{given.lstrip('/')}"
    path = path[:-1] if path.endswith("/") and path != "/" else path
    for alias, ours in PATHS.items():
        if path == alias or path.startswith(f"{alias}/"):
            return ours + path.removeprefix(alias)
    return path


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> list[str]:
    """Every method that some route takes on the path of a request. HEAD is taken wherever GET is."""
    methods: set[str] = set()
    for route in routes:
        if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def nearest_path(routes: Iterable[BaseRoute], given: str) -> str | None:
    """The path of a route that is most like this one, with its own ids; None if none is alike."""
    parts = given.split("/")
    known = {_filled(route.path, parts): route.path for route in routes if isinstance(route, Route)}
    tried = (given, f"/api{given}")
    found = [near for path in tried for near in get_close_matches(path, known, n=1, cutoff=_ALIKE)]
    return known[found[0]] if found else None


def _filled(path: str, given: Sequence[str]) -> str:
    """The path of a route with the parts of another in place of its parameters."""
    parts = path.split("/")
    if len(parts) > len(given):
        return path
    return "/".join(given[number] if part.startswith("{") else part for number, part in enumerate(parts))
