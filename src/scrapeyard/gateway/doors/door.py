"""Doors: the APIs of other tools, for clients that are written for those.

A door is a client of our own API in the same process. It turns a foreign call into calls of `/api/…`, with the headers
of its caller, and turns their answers back. So whatever the API asks for holds for every door: keys, permissions,
limits, budgets, ownership, size limits and the audit. A door has no other way to the platform.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrapeyard.errors import Refusal, ScrapeyardError
from scrapeyard.gateway.http.paths import our_path
from scrapeyard.gateway.runs.calls import decode_body
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")
MAX_ANSWER: Final = 256 * 2**20
"""Maximum bytes of an answer of the API that a door turns into one of its own."""
UNASKED_BODY: Final = 64 * 1024
"""Bytes of a body that are read before it is known who calls."""
_OWN_HEADERS: Final = frozenset(
    {b"content-length", b"content-type", b"transfer-encoding", b"accept-encoding", b"expect", b"prefer", b"range"}
)
"""Headers of a caller that speak of its own call, and are not passed on."""
_PASSED_BACK: Final = (
    *("Retry-After", "RateLimit", "RateLimit-Policy", "WWW-Authenticate", "X-Request-Id", "Allow"),
    *("Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Vary"),
)
_ALWAYS: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_SESSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


class ApiRefused(Exception):
    """The API answered with a problem (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        super().__init__(problem.get("detail", ""))
        self.status = status
        self.problem = problem
        self.headers = dict(headers or {})

    @property
    def code(self) -> str:
        """The problem's stable code."""
        return str(self.problem.get("code", ""))

    @property
    def words(self) -> str:
        """What is wrong, and what to do."""
        told = str(self.problem.get("detail") or self.problem.get("title") or f"the API answered {self.status}")
        remedy = str(self.problem.get("remedy", ""))
        return f"{told}. {remedy}" if remedy else told


class ApiAnswer(Struct, frozen=True, kw_only=True):
    """A good answer of the API."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)


class Door(Protocol):
    """One foreign API."""

    def takes(self, method: str, path: str) -> bool:
        """Whether a request is for this door. Every other request goes past it."""

    async def answer(self, call: "DoorCall") -> Response:
        """Answer it. Raises ApiRefused as the API did, or ScrapeyardError for a call that cannot be read."""

    def refuse(self, refused: ApiRefused) -> Response:
        """A refusal in the shape of this door."""


class DoorCall:
    """A foreign call, and the way to the API on its caller's behalf."""

    def __init__(self, app: ASGIApp, scope: Scope, receive: Receive, max_body: int) -> None:
        self.request = Request(scope, receive)
        self.method: str = scope["method"]
        self.path = our_path(scope["path"])
        self._app = app
        self._max_body = max_body
        self._body: bytes | None = None
        self._called = False
        self.passed_back: dict[str, str] = {}
        """Headers of the API's last answer that the caller is told as well."""

    @property
    def query(self) -> Mapping[str, str]:
        """The query, the last value of each name."""
        return self.request.query_params

    async def body(self) -> bytes:
        """The body. Raises Refusal (413) if it is over the limit, and ApiRefused if it is large and nobody's."""
        if self._body is None:
            self._body = await self._read()
        return self._body

    async def json(self) -> Any:
        """The body, decoded. Raises Refusal (400)."""
        return decode_body(await self.body() or b"null")

    async def check_caller(self) -> None:
        """Ask who calls, unless the API was called already. Raises ApiRefused."""
        if not self._called:
            await self.api("GET", "/api/identity")

    async def _read(self) -> bytes:
        read = bytearray()
        try:
            async for piece in self.request.stream():
                read += piece
                if len(read) > self._max_body:
                    raise Refusal("too_large", 413, f"the body is over the limit of {self._max_body} bytes")
                if len(read) > UNASKED_BODY:
                    await self.check_caller()
        except ClientDisconnect:
            raise Refusal("bad_request", 400, "the caller hung up before its body was complete") from None
        return bytes(read)

    async def api(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | Sequence[tuple[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
        prefer: str = "dialect=own",
    ) -> ApiAnswer:
        """Call the API as the caller, with a body that is sent as JSON, or bytes as they are. Raises ApiRefused."""
        self._called = True
        raw = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        own = {"prefer": prefer, **(headers or {})}
        if body is not None:
            kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
            own |= {"content-type": kind, "content-length": str(len(raw))}
        answer = await self._call(method, path, raw, urlencode(query, doseq=True).encode(), own)
        self.passed_back |= {
            name: answer.headers[name.lower()] for name in _PASSED_BACK if name.lower() in answer.headers
        }
        if answer.status >= 400:
            raise ApiRefused(answer.status, _problem(answer), self.passed_back)
        return answer

    async def _call(self, method: str, path: str, raw: bytes, query: bytes, own: Mapping[str, str]) -> ApiAnswer:
        outer = self.request.scope
        kept = [
            (name, value) for name, value in outer["headers"] if name not in _OWN_HEADERS and name.decode() not in own
        ]
        scope: Scope = {
            **{
                name: outer[name]
                for name in ("type", "asgi", "http_version", "scheme", "client", "server", "app", "state")
                if name in outer
            },
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query,
            "headers": [*kept, *((name.lower().encode(), value.encode()) for name, value in own.items())],
        }
        collected = _Collected()
        await self._app(scope, _then(raw, self.request.receive), collected.send)
        return collected.answer()


class _Collected:
    """Takes an answer of the API in."""

    def __init__(self) -> None:
        self._status = 500
        self._headers: dict[str, str] = {}
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode().lower(): value.decode("latin-1") for name, value in message["headers"]}
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if len(self._body) > MAX_ANSWER:
                raise Refusal(
                    "too_large", 413, f"the result is over {MAX_ANSWER >> 20} MB; get it from /api/… in parts"
                )

    def answer(self) -> ApiAnswer:
        return ApiAnswer(status=self._status, headers=self._headers, body=bytes(self._body))


def _then(raw: bytes, receive: Receive) -> Receive:
    """The body of a call, and then whatever happens to the caller: it may hang up."""
    told = False

    async def messages() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": raw, "more_body": False}

    return messages


def _problem(answer: ApiAnswer) -> dict[str, Any]:
    try:
        found = answer.json()
    except msgspec.DecodeError:
        found = None
    return found if isinstance(found, dict) else {"detail": f"the API answered {answer.status}"}


class CompatibleDoors:
    """The outermost middleware: answers calls of open doors, and passes on all others."""

    def __init__(self, app: ASGIApp, doors: Sequence[Door], max_body: int) -> None:
        self._app = app
        self._doors = tuple(doors)
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        door = self._door(scope)
        if door is None:
            await self._app(scope, receive, send)
            return
        call = DoorCall(self._app, scope, receive, self._max_body)
        response = await self._answer(door, call)
        for name, value in {**_ALWAYS, **call.passed_back}.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    def _door(self, scope: Scope) -> Door | None:
        if scope["type"] != "http" or scope["method"] == "OPTIONS":
            return None
        path = our_path(scope["path"])
        return next((door for door in self._doors if door.takes(scope["method"], path)), None)

    async def _answer(self, door: Door, call: DoorCall) -> Response:
        try:
            return await self._checked(door, call)
        except ApiRefused as refused:
            return door.refuse(refused)
        except Exception as error:
            log.error("gateway.unexpected_error", path=call.path, error=repr(error), exc_info=error)
            return door.refuse(ApiRefused(500, {"code": "internal_error", "detail": "the gateway failed to answer"}))

    async def _checked(self, door: Door, call: DoorCall) -> Response:
        """The answer. What is wrong with a call is told to callers that are known."""
        try:
            return await door.answer(call)
        except ScrapeyardError as error:
            await call.check_caller()
            raise refused_of(error) from None


def refused_of(error: ScrapeyardError) -> ApiRefused:
    """One of our errors as a refusal."""
    if isinstance(error, Refusal):
        return ApiRefused(error.status, {"code": error.refusal_code, "detail": error.message})
    return ApiRefused(400, {"code": error.code, "detail": error.message})


def session_of(name: str) -> str:
    """The browser's session for a name that may be anything: the name itself where it can be one."""
    return name if _SESSION.fullmatch(name) else f"named-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
