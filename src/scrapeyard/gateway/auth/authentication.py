"""Who calls, and whether they may: asked of every request before it reaches a route."""

from typing import Annotated

from fastapi import Depends
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from scrapeyard.errors import Refusal, ScrapeyardError
from scrapeyard.gateway.auth.credentials import Authenticator, unauthenticated
from scrapeyard.gateway.auth.permissions import GRANTS, Permission, RouteAccess
from scrapeyard.gateway.http.doors import refuse
from scrapeyard.gateway.http.problems import from_error
from scrapeyard.model.identity import EVERYONE, NOBODY, Identity

_BASIC = 'Basic realm="scrapeyard", charset="UTF-8"'


class Authentication:
    """Puts the identity of the caller into `scope["identity"]`. Answers 401 to callers that are not known, and 403 to
    those that may not use the route. A path without a route is told only to callers that are known."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator, access: RouteAccess) -> None:
        self._app = app
        self._authenticator = authenticator
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "lifespan":
            try:
                scope["identity"] = await self._admit(scope)
            except ScrapeyardError as error:
                await refuse(_refusal(error, scope), scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _admit(self, scope: Scope) -> Identity:
        if not self._authenticator.required:
            return EVERYONE
        permission = self._access.permission(scope)
        if permission is Permission.OPEN:
            return NOBODY
        identity = await self._authenticator.identify(scope)
        if identity is None:
            if permission is Permission.HOOK:
                return NOBODY  # the route asks for the signature of a Git host
            raise unauthenticated("the request carries no key")
        if (note := scope.get("audit")) is not None:
            note.identity = identity  # also of a caller that is refused
        if permission is not None and permission not in GRANTS[identity.role]:
            raise Refusal("forbidden", 403, f"this needs the permission {permission}; the role {identity.role} has not")
        return identity


def _refusal(error: ScrapeyardError, scope: Scope) -> Response:
    response = from_error(error)
    if response.status_code == 401 and Headers(scope=scope).get("sec-fetch-mode", "navigate") == "navigate":
        # a browser asks its user for a password, which would only disturb the scripts of a page
        response.headers.append("WWW-Authenticate", _BASIC)
    return response


async def _identity(connection: HTTPConnection) -> Identity:
    identity: Identity = connection.scope["identity"]
    return identity


IdentityDep = Annotated[Identity, Depends(_identity)]
"""Who calls, for routes."""
