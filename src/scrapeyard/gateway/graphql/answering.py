"""Reads, checks and answers queries. The queries come from outside: what they may cost is bounded."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final

import msgspec
from graphql import (
    DocumentNode,
    ExecutionResult,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    execute,
    get_operation_ast,
    parse,
    subscribe,
    validate,
)
from msgspec import Struct

from scrapeyard.errors import ScrapeyardError
from scrapeyard.gateway.graphql.operations import Asked, Sizes
from scrapeyard.gateway.http.problems import from_error, unexpected
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")
MOST_TOKENS: Final = 1_000
MOST_LEVELS: Final = 15
"""As deep as the query of tools that read the schema."""
KEEP_ALIVE_SECONDS: Final = 15.0
_MOST_ERRORS: Final = 20
_COMPLETE: Final = b"event: complete\ndata:\n\n"


class CheckedQuery(Struct, frozen=True):
    """A query that may be executed."""

    document: DocumentNode
    operation: OperationDefinitionNode
    sizes: Sizes

    @property
    def is_subscription(self) -> bool:
        """Whether its answer is a stream."""
        return self.operation.operation is OperationType.SUBSCRIPTION


def prepare(schema: GraphQLSchema, query: str, operation_name: str | None) -> CheckedQuery | list[GraphQLError]:
    """Read and check a query: what is to be executed, or what is wrong."""
    try:
        document = parse(query, max_tokens=MOST_TOKENS)
    except GraphQLError as error:
        return [error]
    if errors := validate(schema, document, max_errors=_MOST_ERRORS):
        return errors[:_MOST_ERRORS]
    operation = get_operation_ast(document, operation_name)
    if operation is None:
        return [GraphQLError("name one of the query's operations as operationName")]
    sizes = Sizes(part for part in document.definitions if isinstance(part, FragmentDefinitionNode))
    if sizes.of(operation.selection_set)[0] > MOST_LEVELS:
        return [GraphQLError(f"the query has more than {MOST_LEVELS} levels")]
    return CheckedQuery(document, operation, sizes)


async def answer(
    schema: GraphQLSchema, prepared: CheckedQuery, asked: Asked, variables: Mapping[str, Any]
) -> dict[str, Any]:
    """The answer to a query."""
    given = _given(prepared, asked, variables)
    result = execute(schema, prepared.document, **given)
    return told(result if isinstance(result, ExecutionResult) else await result)


async def follow(
    schema: GraphQLSchema, prepared: CheckedQuery, asked: Asked, variables: Mapping[str, Any]
) -> AsyncGenerator[bytes]:
    """The answers to a subscription, or the one to a query, as server-sent events: the protocol GraphQL over SSE."""
    if not prepared.is_subscription:
        yield _event("next", await answer(schema, prepared, asked, variables))
        yield _COMPLETE
        return
    begun: Any = subscribe(schema, prepared.document, **_given(prepared, asked, variables))
    results: Any = begun if isinstance(begun, ExecutionResult) or hasattr(begun, "__anext__") else await begun
    if isinstance(results, ExecutionResult):
        yield _event("next", told(results))
    else:
        async for result in _kept_alive(results):
            yield b":\n\n" if result is None else _event("next", told(result))
    yield _COMPLETE


def _given(prepared: CheckedQuery, asked: Asked, variables: Mapping[str, Any]) -> dict[str, Any]:
    name = prepared.operation.name
    return {
        "context_value": asked,
        "variable_values": dict(variables),
        "operation_name": name.value if name else None,
    }


async def _kept_alive(results: AsyncIterator[ExecutionResult]) -> AsyncIterator[ExecutionResult | None]:
    """The results; None whenever nothing has come for a while."""
    coming = asyncio.ensure_future(anext(results, None))
    try:
        while True:
            await asyncio.wait([coming], timeout=KEEP_ALIVE_SECONDS)
            if not coming.done():
                yield None
                continue
            if (result := coming.result()) is None:
                return
            yield result
            coming = asyncio.ensure_future(anext(results, None))
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
        await results.aclose()  # type: ignore[attr-defined]


def told(result: ExecutionResult) -> dict[str, Any]:
    """A result as JSON."""
    data = {} if result.data is None and result.errors and not result.errors[0].path else {"data": result.data}
    return data | ({"errors": [explained(error) for error in result.errors]} if result.errors else {})


def explained(error: GraphQLError) -> dict[str, Any]:
    """An error as JSON. One of ours has its code and remedy; one that nobody expected is logged and not told."""
    cause = error.original_error
    if cause is None or isinstance(cause, GraphQLError):
        return dict(error.formatted)
    if not isinstance(cause, ScrapeyardError):
        log.error("gateway.query_broken", error=repr(cause), exc_info=cause)
    problem = msgspec.json.decode((from_error(cause) if isinstance(cause, ScrapeyardError) else unexpected()).body)
    more = {name: problem[name] for name in ("status", "code", "retryable", "remedy")}
    return {**error.formatted, "message": problem["detail"], "extensions": more}


def _event(name: str, data: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(data))
