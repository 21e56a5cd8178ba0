"""Fields that ask: each is answered by the route of its GET operation, for the caller of the query."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import msgspec
from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLResolveInfo,
    SelectionNode,
    SelectionSetNode,
)
from msgspec import Struct
from starlette.types import Message, Scope

from scrapeyard.errors import BadRequest, Refusal
from scrapeyard.gateway.auth.ownership import owned_job
from scrapeyard.gateway.auth.permissions import GRANTS, Permission, asked_for
from scrapeyard.gateway.jobs.streams import JobUpdate, StreamOptions
from scrapeyard.model.identity import Identity

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

MOST_CALLS: Final = 100
"""Operations that one query may ask for."""
MOST_VALUES: Final = 20_000
"""Values that one answer may have: each takes the gateway some microseconds."""


class GetOperation(Struct, frozen=True):
    """A GET operation of the HTTP API."""

    path: str
    given: Mapping[str, str]
    """Parameters that fields of the parent answer."""
    in_path: frozenset[str]

    def address(self, parent: Any, arguments: Mapping[str, Any]) -> tuple[str, str]:
        """Its path and query for these arguments."""
        values = {name: parent[field] for name, field in self.given.items()}
        values |= {name: value for name, value in arguments.items() if value is not None}
        path = self.path
        for name in self.in_path:
            path = path.replace(f"{{{name}}}", quote(str(values.pop(name)), safe=""))
        return path, urlencode({name: _word(value) for name, value in values.items()}, doseq=True)


def _word(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


class Sizes:
    """How large the selections of a query are. Each fragment is looked at once: a few lines of fragments that spread
    each other would otherwise take for ever. Only for queries that are valid, whose fragments have no cycle."""

    def __init__(self, fragments: Iterable[FragmentDefinitionNode]) -> None:
        self._fragments = {each.name.value: each for each in fragments}
        self._known: dict[str, tuple[int, int]] = {}

    def of(self, selections: SelectionSetNode | None) -> tuple[int, int]:
        """Levels and fields."""
        parts = [self._part(node) for node in selections.selections] if selections else []
        return max((levels for levels, _ in parts), default=0), sum(fields for _, fields in parts)

    def _part(self, node: SelectionNode) -> tuple[int, int]:
        if isinstance(node, FragmentSpreadNode):
            name = node.name.value
            if name not in self._known:
                self._known[name] = self.of(self._fragments[name].selection_set)
            return self._known[name]
        levels, fields = self.of(node.selection_set)  # type: ignore[attr-defined]
        return (levels + 1, fields + 1) if isinstance(node, FieldNode) else (levels, fields)


class Asked:
    """What one query may still ask for, and for whom."""

    def __init__(self, scope: Scope, gateway: "Gateway", sizes: Sizes) -> None:
        self.gateway = gateway
        self.sizes = sizes
        self.identity: Identity = scope["identity"]
        self._scope = scope
        self._calls = 0
        self._values = 0

    def check(self, permission: Permission) -> None:
        """Raise Refusal (403) if the caller may not use a field, and BadRequest if the query asks for too much."""
        if permission not in GRANTS[self.identity.role]:
            words = f"this needs the permission {permission}; the role {self.identity.role} has not"
            raise Refusal("forbidden", 403, words)
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise _too_large(f"it asks {MOST_CALLS} times for something that is looked up, and wants more")

    def count(self, values: int) -> None:
        """Raise BadRequest if the answer becomes too large."""
        self._values += values
        if self._values > MOST_VALUES:
            raise _too_large(f"its answer has over {MOST_VALUES:,} values")

    async def get(self, path: str, query: str) -> tuple[int, bytes]:
        """The answer of a route."""
        scope = {
            **{key: value for key, value in self._scope.items() if key not in ("route", "endpoint", "path_params")},
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"accept", b"application/json")],
        }
        status, body = 500, bytearray()

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            body.extend(message.get("body", b""))

        await scope["app"].router(scope, receive, send)
        return status, bytes(body)


def _too_large(words: str) -> BadRequest:
    return BadRequest(f"the query is too large: {words}; ask for less at once, or for fewer on a page")


def ask(operation: GetOperation) -> Callable[..., Awaitable[Any]]:
    """The resolver of a field: the operation's answer. A refusal becomes an error with its code and remedy."""
    permission = asked_for()[f"GET {operation.path}"]

    async def resolve(parent: Any, info: GraphQLResolveInfo[Asked], **arguments: Any) -> Any:
        asked = info.context
        asked.check(permission)
        status, body = await asked.get(*operation.address(parent, arguments))
        answer = msgspec.json.decode(body)
        if status >= 400:
            raise GraphQLError(answer.get("detail", "refused"), extensions={"status": status, **_remedy(answer)})
        asked.count(rows(answer) * sum(asked.sizes.of(node.selection_set)[1] for node in info.field_nodes))
        return answer

    return resolve


def rows(answer: Any) -> int:
    """The length of the longest list in an answer; 1 if there is none."""
    return max([1, *(len(part) for part in answer.values() if isinstance(part, list))])


def _remedy(problem: Mapping[str, Any]) -> dict[str, Any]:
    return {name: problem[name] for name in ("code", "remedy", "retryable", "errors") if name in problem}


async def follow_job(_root: Any, info: GraphQLResolveInfo[Asked], job_id: str, after: int) -> AsyncIterator[Any]:
    """The events of a job that the caller may see. Raises what refuses them before the first."""
    asked = info.context
    asked.check(asked_for()["GET /api/jobs/{job_id}/stream"])
    gateway = asked.gateway
    own = await owned_job(gateway.services.store.jobs, asked.identity, job_id)
    updates = gateway.jobs.streams.follow(own, StreamOptions(after=max(0, after)))
    return _events(await anext(updates), updates)


async def _events(first: JobUpdate | None, rest: AsyncGenerator[JobUpdate | None]) -> AsyncIterator[dict[str, Any]]:
    async with aclosing(rest) as updates:
        update = first
        while True:
            if update is not None:
                yield {"event": update.kind, "id": update.number, "data": msgspec.json.decode(update.data)}
            try:
                update = await anext(updates)
            except StopAsyncIteration:
                return
