"""`/api/graphql`: queries and subscriptions, and the schema as text."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from scrapeyard.errors import BadRequest, Refusal
from scrapeyard.extras import missing
from scrapeyard.gateway.doors.door import DoorCall
from scrapeyard.gateway.http.answers import JSON, AnswerRoute
from scrapeyard.gateway.http.openapi import refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import EXAMPLE_JOB
from scrapeyard.gateway.runs.calls import decode_body

if TYPE_CHECKING:
    from graphql import GraphQLSchema

    from scrapeyard.gateway.services import Gateway

MOST_TEXT: Final = 20_000
_MOST_IN_PATH: Final = 4_000
"""By GET, where each character may be written as three."""
_EVENTS: Final = "text/event-stream"
_STRICT: Final = "application/graphql-response+json"
_ANSWER: Final = {
    "type": "object",
    "description": "What the query selects, and what went wrong.",
    "properties": {
        "data": {"type": ["object", "null"], "description": "What the query selects.", "additionalProperties": True},
        "errors": {
            "type": "array",
            "description": "What could not be answered; `extensions` has `code`, `status` and `remedy`.",
            "items": {"type": "object", "additionalProperties": True},
        },
    },
}
_EXAMPLE: Final = {"data": {"jobs": {"jobs": [{"id": EXAMPLE_JOB, "status": "running", "counts": {"total": 3}}]}}}
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The answer.", "content": {JSON: {"schema": _ANSWER, "example": _EXAMPLE}}},
    **refusals(400, 413, 415, 422, 501, 503),
}


class GraphqlCall(BaseModel):
    """A query of GraphQL."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"query": "{ jobs(limit: 5) { jobs { id status counts { total error } } } }"}]},
    )

    query: str = Field(min_length=1, max_length=MOST_TEXT, description="The query; at most 1,000 tokens.")
    variables: dict[str, Any] | None = Field(None, description="Values of its variables.")
    operationName: str | None = Field(  # noqa: N815  the protocol's own name
        None, max_length=200, description="Which of its operations, if it has several."
    )
    extensions: dict[str, Any] | None = Field(None, description="For clients that send some; nothing reads them.")


router = APIRouter(tags=["graphql"], route_class=AnswerRoute)


@router.post(
    "/api/graphql",
    summary="Query with GraphQL",
    responses=_RESPONSES,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/GraphqlCall"}}},
        }
    },
)
async def query_graphql(gateway: GatewayDep, request: Request) -> Response:
    """Answers what the query selects of runs, jobs, items, scrapers, sites and schedules. With `Accept:
    text/event-stream` the answer is a stream, which subscriptions need."""
    return await _answered(gateway, request, GraphqlCall.model_validate(decode_body(await request.body())))


@router.get("/api/graphql", summary="Query with GraphQL by GET", responses=_RESPONSES)
async def get_graphql(
    gateway: GatewayDep,
    request: Request,
    query: Annotated[str, Query(min_length=1, max_length=_MOST_IN_PATH, description="The query.")],
    variables: Annotated[str | None, Query(max_length=_MOST_IN_PATH, description="A JSON object.")] = None,
    operationName: Annotated[  # noqa: N803  the protocol's own name
        str | None, Query(max_length=200, description="Which of its operations.")
    ] = None,
) -> Response:
    """The same, for caches and for `EventSource`."""
    given = decode_body(variables.encode()) if variables else None
    call = {"query": query, "variables": given, "operationName": operationName}
    return await _answered(gateway, request, GraphqlCall.model_validate(call))


@router.get(
    "/api/graphql/schema",
    summary="Read the GraphQL schema",
    response_class=PlainTextResponse,
    responses=refusals(422, 501),
)
async def get_graphql_schema(request: Request) -> Response:
    """In the schema language."""
    from graphql import print_schema  # noqa: PLC0415 - an extra

    return PlainTextResponse(print_schema(await _schema(request)))


async def _answered(gateway: "Gateway", request: Request, call: GraphqlCall) -> Response:
    schema = await _schema(request)
    from scrapeyard.gateway.graphql import answering, operations  # noqa: PLC0415 - an extra

    prepared = await asyncio.to_thread(answering.prepare, schema, call.query, call.operationName)
    if isinstance(prepared, list):
        return _response(request, {"errors": [answering.explained(error) for error in prepared]}, 400)
    streams = _EVENTS in request.headers.get("accept", "")
    if prepared.is_subscription and not streams:
        raise BadRequest(f"a subscription is answered with a stream; send `Accept: {_EVENTS}`")
    asked = operations.Asked(DoorCall(request.app, request.scope, request.receive, 0), gateway, prepared.sizes)
    if streams:
        pieces = answering.follow(schema, prepared, asked, call.variables or {})
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(pieces, headers=headers, media_type=_EVENTS)
    return _response(request, await answering.answer(schema, prepared, asked, call.variables or {}), 200)


def _response(request: Request, told: dict[str, Any], status: int) -> Response:
    """With the status that the GraphQL specification for HTTP wants: 200 for clients that know only JSON."""
    strict = _STRICT in request.headers.get("accept", "")
    return Response(msgspec.json.encode(told), status if strict else 200, media_type=_STRICT if strict else JSON)


async def _schema(request: Request) -> "GraphQLSchema":
    """The schema, made on first use. Raises Refusal (501) without the extra."""
    if words := missing("graphql"):
        raise Refusal("not_installed", 501, words)
    state = request.app.state
    if not hasattr(state, "graphql"):
        from scrapeyard.gateway.graphql.schema import build  # noqa: PLC0415 - an extra

        state.graphql = await asyncio.to_thread(lambda: build(request.app.openapi()))
    schema: GraphQLSchema = state.graphql
    return schema
