"""Who may do what: the permission that each route asks for, and the permissions of each role.

The table is enforced for every request (`RouteAccess`), and docs/permissions.md prints it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Scope

from scrapeyard.model.identity import Role

WEBSOCKET: Final = "WEBSOCKET"
"""Stands for the method of a WebSocket, which has none."""


class Permission(StrEnum):
    """What a route asks for."""

    OPEN = "open"
    """Nothing: it is answered without a key."""
    KNOWN = "known"
    """Any key."""
    WORK_READ = "work:read"
    """Look at runs, jobs, schedules and what they left: a client at its own, the others at all."""
    WORK_WRITE = "work:write"
    """Call scrapers; create, change and cancel jobs and schedules: a client its own, the others all."""
    PLATFORM_READ = "platform:read"
    """See how the platform is doing, and how it treats sites, proxies and caches."""
    PLATFORM_WRITE = "platform:write"
    """Change how it treats them, and which version of a scraper runs."""
    HOOK = "hook"
    """The same, or the signature of a Git host that knows `repository.hook_secret`."""
    ADMIN = "admin"
    """Keys, secrets, settings and the audit."""


_EVERY_ROLE: Final = (Permission.OPEN, Permission.KNOWN, Permission.WORK_READ)
GRANTS: Final = {
    Role.CLIENT: frozenset({*_EVERY_ROLE, Permission.WORK_WRITE}),
    Role.VIEWER: frozenset({*_EVERY_ROLE, Permission.PLATFORM_READ}),
    Role.OPERATOR: frozenset(Permission) - {Permission.ADMIN},
    Role.ADMIN: frozenset(Permission),
}
"""The permissions of each role."""
ROUTES: Final = {
    Permission.OPEN: (
        "GET /",
        "GET /api/live",
        "GET /api/ready",
        "GET /api/session",
        "POST /api/session",
        "DELETE /api/session",
        "GET /api/session/oidc/start",
        "GET /api/session/oidc/callback",
    ),
    Permission.KNOWN: (
        "GET /api/identity",
        "POST /api/links",
        "GET /api/openapi.json",
        "GET /docs",
        "GET /docs/start.js",
        "GET /docs/swagger-ui-bundle.js",
        "GET /docs/swagger-ui.css",
        "GET /docs/favicon-32x32.png",
        "GET /api/scrapers",
        "GET /api/scrapers/{site}/{task}",
        "GET /api/scrapers/{site}/{task}/channels",
    ),
    Permission.WORK_READ: (
        "GET /api/scrape",
        "GET /api/scrape/{run_id}",
        "GET /api/scrape/{run_id}/logs",
        "GET /api/scrape/{run_id}/explain",
        "GET /api/scrape/{run_id}/events",
        f"{WEBSOCKET} /api/scrape/{{run_id}}/live",
        "GET /api/scrape/{run_id}/artifacts",
        "GET /api/scrape/{run_id}/artifacts/{name}",
        "GET /api/jobs",
        "GET /api/jobs/{job_id}",
        "GET /api/jobs/{job_id}/items",
        "GET /api/jobs/{job_id}/items/{key}",
        "GET /api/jobs/{job_id}/items/{key}/download",
        "GET /api/jobs/{job_id}/errors",
        "GET /api/jobs/{job_id}/results",
        "GET /api/jobs/{job_id}/metrics",
        "GET /api/jobs/{job_id}/stream",
        f"{WEBSOCKET} /api/jobs/{{job_id}}/ws",
        "GET /api/jobs/{job_id}/exports",
        "GET /api/sinks",
        "GET /api/dead-letters",
        "GET /api/exports/{export_id}",
        "GET /api/exports/{export_id}/download",
        "GET /api/schedule",
        "GET /api/schedule/{schedule_id}",
        "GET /api/schedule/{schedule_id}/history",
        "GET /api/webhooks/deliveries",
        "GET /api/webhooks/deliveries/{delivery_id}",
        "GET /api/usage",
        "GET /api/graphql",
        "POST /api/graphql",
        "GET /api/graphql/schema",
        "GET /api/patterns",
        "GET /api/patterns/{pattern_id}",
    ),
    Permission.WORK_WRITE: (
        "POST /api/scrape",
        "DELETE /api/scrape/{run_id}",
        "POST /api/crawl",
        "POST /api/map",
        "POST /api/extract",
        "PUT /api/patterns/{pattern_id}",
        "DELETE /api/patterns/{pattern_id}",
        "POST /api/cache/warm",
        "POST /api/jobs",
        "POST /api/jobs/{job_id}/items",
        "PATCH /api/jobs/{job_id}",
        "DELETE /api/jobs/{job_id}",
        "POST /api/jobs/{job_id}/pause",
        "POST /api/jobs/{job_id}/resume",
        "POST /api/jobs/{job_id}/cancel",
        "POST /api/jobs/{job_id}/archive",
        "POST /api/jobs/{job_id}/restore",
        "POST /api/jobs/{job_id}/redrive",
        "POST /api/jobs/{job_id}/exports",
        "POST /api/jobs/{job_id}/sinks/{sink}",
        "POST /api/schedule",
        "PATCH /api/schedule/{schedule_id}",
        "DELETE /api/schedule/{schedule_id}",
        "POST /api/schedule/{schedule_id}/run",
        "POST /api/schedule/{schedule_id}/pause",
        "POST /api/schedule/{schedule_id}/resume",
        "POST /api/webhooks/deliveries/{delivery_id}/replay",
    ),
    Permission.PLATFORM_READ: (
        "GET /api/stats",
        "GET /api/stats/scale",
        "GET /api/stats/history",
        "GET /api/alerts",
        "GET /api/workers",
        "GET /api/health",
        "GET /metrics",
        "GET /api/sites",
        "GET /api/sites/{site}",
        "GET /api/proxies",
        "GET /api/cache",
        "GET /api/scrapers/{site}/{task}/drift",
        "GET /api/scrapers/{site}/{task}/source",
        "GET /api/projects/{project}",
        "GET /api/scrapers/{site}/{task}/state",
        "GET /api/scrapers/{site}/{task}/state/{key}",
    ),
    Permission.PLATFORM_WRITE: (
        "POST /api/workers/{worker_id}/drain",
        "POST /api/alerts/test",
        "DELETE /api/workers/{worker_id}/drain",
        "PUT /api/sites/{site}",
        "DELETE /api/sites/{site}",
        "POST /api/sites/{site}/reset",
        "PUT /api/proxies/{name}",
        "DELETE /api/proxies/{name}",
        "POST /api/cache/invalidate",
        "PUT /api/scrapers/{site}/{task}/channels/{channel}",
        "PUT /api/projects/{project}/versions/{version}",
        "DELETE /api/projects/{project}/versions/{version}",
        "DELETE /api/projects/{project}",
        "DELETE /api/scrapers/{site}/{task}/channels/{channel}",
        "DELETE /api/scrapers/{site}/{task}/drift",
        "DELETE /api/scrapers/{site}/{task}/state",
        "DELETE /api/scrapers/{site}/{task}/state/{key}",
    ),
    Permission.HOOK: ("POST /api/scrapers/refresh",),
    Permission.ADMIN: (
        "GET /api/secrets",
        "PUT /api/secrets/{site}/{task}/{name}",
        "DELETE /api/secrets/{site}/{task}/{name}",
        "POST /api/forget",
        "GET /api/settings",
        "GET /api/audit",
        "POST /api/keys",
        "GET /api/keys",
        "GET /api/keys/{key_id}",
        "POST /api/keys/{key_id}/rotate",
        "DELETE /api/keys/{key_id}",
    ),
}
"""The routes that ask for each permission: method and path. HEAD asks for what GET does."""


def asked_for() -> dict[str, Permission]:
    """The permission of each route."""
    return {route: permission for permission, routes in ROUTES.items() for route in routes}


class RouteAccess:
    """Finds the permission that a request needs, among the routes of an application, as its router finds the route.

    Raises KeyError for an application with a route that the table does not have.
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        table = asked_for()
        self._known: dict[str, list[tuple[re.Pattern[str], Permission]]] = defaultdict(list)
        for route in routes:
            for method, name in names_of(route):
                if name not in table:
                    raise KeyError(f"{name} has no permission; add it to ROUTES in gateway/auth/permissions.py")
                self._known[method].append((route.path_regex, table[name]))  # type: ignore[attr-defined]

    def permission(self, scope: Scope) -> Permission | None:
        """What a request needs; None if no route answers it."""
        method, path = scope.get("method", WEBSOCKET), scope["path"]
        for pattern, permission in self._known["GET" if method == "HEAD" else method]:
            if pattern.match(path):
                return permission
        return None


def names_of(route: BaseRoute) -> Iterator[tuple[str, str]]:
    """The methods of a route, each with the name of that route in the table."""
    if isinstance(route, WebSocketRoute):
        yield WEBSOCKET, f"{WEBSOCKET} {route.path}"
    elif isinstance(route, Route):
        for method in sorted((route.methods or set()) - {"HEAD"}):
            yield method, f"{method} {route.path}"
    else:
        raise TypeError(f"{route!r} is no route that the table of permissions knows")
