"""Watches every answer, and writes changes and refusals to the audit.

A call that starts work (`USE`) uses the platform and changes nothing in it: the run that it makes is its record. Of
such calls, and of those that only read, refusals alone are written.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends
from msgspec import Raw, Struct
from msgspec.structs import replace
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrapeyard.gateway.audit.addresses import CallerAddresses
from scrapeyard.gateway.audit.log import AuditLog
from scrapeyard.model import new_id
from scrapeyard.model.audit import AuditEntry, cleaned
from scrapeyard.model.identity import Identity

USE: Final = frozenset({"/api/scrape", "/api/map", "/api/extract", "/api/cache/warm"})
"""Paths on which POST makes runs."""
READS: Final = frozenset({"/api/graphql"})
"""Paths on which POST only reads."""
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REFUSED: Final = frozenset({401, 403, 421})
"""Refused for who calls. Other 4xx answers are refusals of changes only."""
_STARTS: Final = ("http.response.start", "websocket.http.response.start")
_MAX_VALUE: Final = 4096
REQUEST_ID: Final = "X-Request-Id"


class AuditNote:
    """What a route adds to the audit of its call."""

    __slots__ = ("after", "before", "identity")

    def __init__(self) -> None:
        self.before: Raw | None = None
        self.after: Raw | None = None
        self.identity: Identity | None = None
        """Who calls, once that is known."""

    def change(self, before: object = None, after: object = None) -> None:
        """Tell what was changed, without secrets. A value larger than 4 KB as JSON is left out."""
        self.before, self.after = _value(before), _value(after)


def _value(value: object) -> Raw | None:
    encoded = b"" if value is None else msgspec.json.encode(value)
    return Raw(encoded) if 0 < len(encoded) <= _MAX_VALUE else None


def _code(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Coded).code
    except msgspec.DecodeError:
        return ""


class _Coded(Struct):
    code: str


async def _note(connection: HTTPConnection) -> AuditNote:
    note: AuditNote = connection.scope["audit"]
    return note


AuditDep = Annotated[AuditNote, Depends(_note)]
"""For routes that tell what they changed."""


class Audited:
    """Stands around every check, so that it sees each refusal. `routes` name the actions."""

    def __init__(
        self,
        app: ASGIApp,
        audit: AuditLog,
        routes: Sequence[BaseRoute],
        addresses: CallerAddresses,
        clock: Callable[[], float],
    ) -> None:
        self._app = app
        self._audit = audit
        self._routes = routes
        self._addresses = addresses
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        note = scope["audit"] = AuditNote()
        held: Message | None = None

        async def watched(message: Message) -> None:
            nonlocal held
            if message["type"] in _STARTS and (note.after is not None or self._heeds(scope, message["status"])):
                held = message  # until its body tells the code
                return
            if held is not None:
                start, held = held, None
                await self._report(scope, note, start, message.get("body", b""))
                await send(start)
            await send(message)

        await self._app(scope, receive, watched)

    def _heeds(self, scope: Scope, status: int) -> bool:
        """Whether an answer tells of a change or a refusal."""
        if status in _REFUSED:
            return True
        if scope["type"] == "websocket" or scope["method"] in _SAFE or status >= 500:
            return False
        return scope["path"] not in USE and scope["path"] not in READS

    async def _report(self, scope: Scope, note: AuditNote, start: Message, body: bytes) -> None:
        action = self._action(scope)
        if not action and start["status"] not in _REFUSED:
            return  # no such path, or it takes no such method
        entry = self._entry(scope, note, action, start["status"])
        MutableHeaders(scope=start).setdefault(REQUEST_ID, entry.request_id)
        if start["status"] < 400:
            await self._audit.write(entry)
        else:
            self._audit.refuse(replace(entry, code=_code(body) or str(start["status"]), before=None, after=None))

    def _entry(self, scope: Scope, note: AuditNote, action: str, status: int) -> AuditEntry:
        who = note.identity or scope.get("identity")
        given = Headers(scope=scope).get(REQUEST_ID)
        return AuditEntry(
            at=self._clock(),
            client=who.client if who else "",
            role=str(who.role) if who else "",
            key_id=who.key_id if who else "",
            address=self._addresses.of(scope),
            action=action,
            resource=cleaned(scope["path"]),
            status=status,
            code="",
            request_id=cleaned(given) if given else new_id("request"),
            before=note.before,
            after=note.after,
        )

    def _action(self, scope: Scope) -> str:
        """The id of the operation; empty if no route answers. A refused call may not have come to its route."""
        route: Any = scope.get("route")
        if not hasattr(route, "name"):  # none, or that of the shortcut for the hottest path
            method = "GET" if scope.get("method") == "HEAD" else scope.get("method", "GET")
            asked = {**scope, "method": method}
            route = next((each for each in self._routes if each.matches(asked)[0] is Match.FULL), None)
        return "" if route is None else str(route.name)
