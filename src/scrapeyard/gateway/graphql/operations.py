"""Fields that ask: each is answered by its GET operation of the API, for the caller of the query."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

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

from scrapeyard.errors import BadRequest
from scrapeyard.gateway.doors.door import ApiRefused, DoorCall
from scrapeyard.gateway.http.answers import JSON
from scrapeyard.gateway.jobs.streams import JobUpdate, StreamOptions

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway

MOST_CALLS: Final = 100
"""Operations that one query may ask for."""
MOST_VALUES: Final = 20_000
"""Values that one answer may have: each takes the gateway some microseconds."""
_TOLD: Final = ("status", "code", "retryable", "remedy", "errors")


class GetOperation(Struct, frozen=True):
    """A GET operation of the HTTP API."""

    path: str
    given: Mapping[str, str]
    """Parameters that fields of the parent answer."""
    in_path: frozenset[str]

    def address(self, parent: Any, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Its path and query for these arguments."""
        values = {name: parent[field] for name, field in self.given.items()}
        values |= {name: value for name, value in arguments.items() if value is not None}
        path = self.path
        for name in self.in_path:
            path = path.replace(f"{{{name}}}", quote(str(values.pop(name)), safe=""))
        return path, {name: _word(value) for name, value in values.items()}


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
    """What one query may still ask the API for, as its caller."""

    def __init__(self, call: DoorCall, gateway: "Gateway", sizes: Sizes) -> None:
        self.call = call
        self.gateway = gateway
        self.sizes = sizes
        self._calls = 0
        self._values = 0

    async def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """The answer of the API. Raises GraphQLError with the code and remedy of its refusal, and BadRequest if the
        query asks for too much."""
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise _too_large(f"it asks {MOST_CALLS} times for something that is looked up, and wants more")
        try:
            return (await self.call.api("GET", path, query=query or {}, headers={"accept": JSON})).json()
        except ApiRefused as refused:
            more = {name: refused.problem[name] for name in _TOLD if name in refused.problem}
            raise GraphQLError(str(refused), extensions=more) from None

    def count(self, values: int) -> None:
        """Raise BadRequest if the answer becomes too large."""
        self._values += values
        if self._values > MOST_VALUES:
            raise _too_large(f"its answer has over {MOST_VALUES:,} values")


def _too_large(words: str) -> BadRequest:
    return BadRequest(f"the query is too large: {words}; ask for less at once, or for fewer on a page")


def ask(operation: GetOperation) -> Callable[..., Awaitable[Any]]:
    """The resolver of a field: the operation's answer."""

    async def resolve(parent: Any, info: GraphQLResolveInfo[Asked], **arguments: Any) -> Any:
        asked = info.context
        answer = await asked.get(*operation.address(parent, arguments))
        asked.count(rows(answer) * sum(asked.sizes.of(node.selection_set)[1] for node in info.field_nodes))
        return answer

    return resolve


def rows(answer: Any) -> int:
    """The length of the longest list in an answer; 1 if there is none."""
    return max([1, *(len(part) for part in answer.values() if isinstance(part, list))])


async def follow_job(_root: Any, info: GraphQLResolveInfo[Asked], job_id: str, after: int) -> AsyncIterator[Any]:
    """The events of a job that the caller may see. Raises what refuses them before the first."""
    job = await info.context.get(f"/api/jobs/{quote(job_id, safe='')}")
    updates = info.context.gateway.jobs.streams.follow(job["id"], StreamOptions(after=max(0, after)))
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
