"""Who calls, and whether they may: asked of every request before it reaches a route."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

from fastapi import Depends
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrapeyard.errors import Refusal, ScrapeyardError
from scrapeyard.gateway.auth.credentials import Authenticator, unauthenticated
from scrapeyard.gateway.auth.permissions import GRANTS, Permission, RouteAccess
from scrapeyard.gateway.http.doors import refuse
from scrapeyard.gateway.http.problems import from_error
from scrapeyard.model.identity import EVERYONE, NOBODY, Identity

LOOK_SECONDS = 0.25
"""Between two looks whether the key of an open stream is in force."""
_EVENTS = b"text/event-stream"
_REFUSED = 1008
"""A WebSocket is closed with it for who has opened it."""
_BASIC = 'Basic realm="scrapeyard", charset="UTF-8"'


class Authentication:
    """Puts the identity of the caller into `scope["identity"]`. Answers 401 to callers that are not known, and 403 to
    those that may not use the route. A path without a route is told only to callers that are known. Ends streams and
    WebSockets whose key has ended; `key_fault` says why one cannot be used."""

    def __init__(
        self, app: ASGIApp, authenticator: Authenticator, access: RouteAccess, key_fault: Callable[[str], str]
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._access = access
        self._key_fault = key_fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            identity = scope["identity"] = await self._admit(scope)
        except ScrapeyardError as error:
            await refuse(_refusal(error, scope), scope, receive, send)
            return
        if identity.key_id and _may_stream(scope):
            await self._serve(identity.key_id, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _serve(self, key_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what may be a stream, for as long as its key is in force."""
        watch: asyncio.Task[None] | None = None

        async def watched(message: Message) -> None:
            nonlocal watch
            if watch is None and _begins_stream(message):
                watch = asyncio.create_task(self._end_with(key_id, bound))
            await send(message)

        try:
            async with asyncio.timeout(None) as bound:
                await self._app(scope, receive, watched)
        except TimeoutError:
            if not bound.expired():
                raise
            await _end_stream(scope, send, self._key_fault(key_id))
        finally:
            if watch is not None:
                watch.cancel()

    async def _end_with(self, key_id: str, bound: asyncio.Timeout) -> None:
        while not self._key_fault(key_id):  # noqa: ASYNC110  a key may also end by the clock
            await asyncio.sleep(LOOK_SECONDS)
        bound.reschedule(asyncio.get_running_loop().time())

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


def _may_stream(scope: Scope) -> bool:
    if scope.get("method", "GET") == "GET":
        return True
    return any(name == b"accept" and _EVENTS in value for name, value in scope["headers"])


def _begins_stream(message: Message) -> bool:
    if message["type"] != "http.response.start":
        return bool(message["type"] == "websocket.accept")
    return any(name.lower() == b"content-type" and value.startswith(_EVENTS) for name, value in message["headers"])


async def _end_stream(scope: Scope, send: Send, reason: str) -> None:
    if scope["type"] == "websocket":
        with suppress(RuntimeError):  # it was closing already
            await send({"type": "websocket.close", "code": _REFUSED, "reason": reason})
    else:
        await send({"type": "http.response.body", "body": b"", "more_body": False})


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
