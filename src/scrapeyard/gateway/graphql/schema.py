"""The GraphQL schema, made of the OpenAPI document: each field with arguments is a GET operation, and each type is what
one answers. So the words, the bounds and the permissions are those of the HTTP API."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLField,
    GraphQLFloat,
    GraphQLInputType,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLString,
)
from msgspec import Struct

from scrapeyard.gateway.graphql.operations import GetOperation, ask, follow_job

QUERIES: Final = {
    "runs": "list_runs",
    "run": "get_run",
    "jobs": "list_jobs",
    "job": "get_job",
    "item": "get_item",
    "dead_letters": "list_dead_letters",
    "scrapers": "list_scrapers",
    "scraper": "get_scraper",
    "sites": "list_sites",
    "site": "get_site",
    "schedules": "list_schedules",
    "schedule": "get_schedule",
}
"""The fields to begin with, and the operation of each."""


class Nested(Struct, frozen=True):
    """A field of a type that asks for more."""

    name: str
    operation: str
    given: Mapping[str, str]
    """Parameters of the operation that fields of the parent answer."""


_OF_JOB: Final = (
    Nested("items", "list_items", {"job_id": "id"}),
    Nested("failures", "list_errors", {"job_id": "id"}),
    Nested("files", "list_exports", {"job_id": "id"}),
    Nested("metrics", "get_metrics", {"job_id": "id"}),
)
NESTED: Final = {
    "Summary": (Nested("whole", "get_run", {"run_id": "id"}), Nested("logs", "get_logs", {"run_id": "id"})),
    "RunDocument": (Nested("logs", "get_logs", {"run_id": "id"}), Nested("explain", "explain_run", {"run_id": "id"})),
    "JobDocument": _OF_JOB,
    "WholeJobDocument": _OF_JOB,
    "ScheduleDocument": (Nested("history", "get_schedule_history", {"schedule_id": "id"}),),
}
"""By the type in the OpenAPI document."""
_NAMES: Final = {
    "Summary": "RunSummary",
    "RunDocument": "Run",
    "JobDocument": "JobSummary",
    "WholeJobDocument": "Job",
}
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_JSON: Final = GraphQLScalarType("JSON", description="Any JSON value.")
_LONG: Final = GraphQLScalarType("Long", description="A whole number of up to 53 bits.")
_SCALARS: Final = {"string": GraphQLString, "integer": _LONG, "number": GraphQLFloat, "boolean": GraphQLBoolean}
_EVENT: Final = GraphQLObjectType(
    "JobEvent",
    {
        "event": GraphQLField(GraphQLNonNull(GraphQLString), description="As in the stream of `/api/jobs/{job_id}`."),
        "id": GraphQLField(_LONG, description="Of events that are told again; give the last one as `after`."),
        "data": GraphQLField(GraphQLNonNull(_JSON), description="What is told."),
    },
    description="One event of a job.",
)


def build(document: Mapping[str, Any]) -> GraphQLSchema:
    """The schema of a gateway with this OpenAPI document."""
    types = _Types(document)
    queries = {name: types.field(operation) for name, operation in QUERIES.items()}
    events = GraphQLField(
        GraphQLNonNull(_EVENT),
        args={
            "job_id": GraphQLArgument(GraphQLNonNull(GraphQLString), description="The job's id."),
            "after": GraphQLArgument(GraphQLInt, default_value=0, description="The last id that the caller had."),
        },
        subscribe=follow_job,
        resolve=lambda event, _info, **_given: event,
        description="What happens to a job, from its first event to its end.",
    )
    return GraphQLSchema(
        GraphQLObjectType("Query", queries, description="What there is to read."),
        subscription=GraphQLObjectType("Subscription", {"job_events": events}, description="What is told live."),
    )


class _Types:
    """Turns schemas of the document into types, each once."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schemas: Mapping[str, Any] = document["components"]["schemas"]
        self._operations = {
            call["operationId"]: (path, call)
            for path, calls in document["paths"].items()
            for method, call in calls.items()
            if method == "get"
        }
        self._made: dict[str, GraphQLOutputType] = {}

    def field(self, operation_id: str, given: Mapping[str, str] | None = None) -> GraphQLField:
        """A field that asks for an operation."""
        given = given or {}
        path, call = self._operations[operation_id]
        parameters = [each for each in call["parameters"] if each["in"] in ("path", "query")]
        operation = GetOperation(path=path, given=given, in_path=frozenset(_of("path", parameters)))
        answer = call["responses"]["200"]["content"]["application/json"]["schema"]
        return GraphQLField(
            self._output(answer),
            args={each["name"]: self._argument(each) for each in parameters if each["name"] not in given},
            resolve=ask(operation),
            description=call["summary"] + ". " + call["description"],
        )

    def _argument(self, parameter: Mapping[str, Any]) -> GraphQLArgument:
        kind: Any = self._input(parameter["schema"])
        required = GraphQLNonNull(kind) if parameter.get("required") else kind
        return GraphQLArgument(required, description=parameter.get("description"))

    def _input(self, schema: Mapping[str, Any]) -> GraphQLInputType:
        schema = _present(schema)
        if schema.get("type") == "array":
            return GraphQLList(GraphQLNonNull(self._input(schema["items"])))
        if "$ref" in schema:
            kind = self._named(schema["$ref"])
            return kind if isinstance(kind, GraphQLEnumType) else GraphQLString
        return _SCALARS[schema.get("type", "string")]

    def _output(self, schema: Mapping[str, Any]) -> GraphQLOutputType:
        schema = _present(schema)
        if "$ref" in schema:
            return self._named(schema["$ref"])
        if schema.get("type") == "array":
            return GraphQLList(GraphQLNonNull(self._output(schema.get("items", {}))))
        return _SCALARS.get(str(schema.get("type")), _JSON)

    def _named(self, reference: str) -> GraphQLOutputType:
        name = reference.rpartition("/")[2]
        if name not in self._made:
            self._made[name] = self._make(name, self._schemas[name])
        return self._made[name]

    def _make(self, name: str, schema: Mapping[str, Any]) -> GraphQLOutputType:
        shown = _NAMES.get(name, name.removesuffix("Document"))
        if "enum" in schema:
            words = schema["enum"]
            if not all(isinstance(word, str) and _NAME.fullmatch(word) for word in words):
                return GraphQLString
            return GraphQLEnumType(shown, {word: word for word in words}, description=schema.get("description"))
        if not schema.get("properties"):
            return _JSON
        return GraphQLObjectType(shown, lambda: self._fields(name, schema), description=schema.get("description"))

    def _fields(self, name: str, schema: Mapping[str, Any]) -> dict[str, GraphQLField]:
        required = set(schema.get("required", ()))
        fields = {
            own: self._plain(part, own in required)
            for own, part in schema["properties"].items()
            if _NAME.fullmatch(own)
        }
        more = {each.name: self.field(each.operation, each.given) for each in NESTED.get(name, ())}
        if twice := fields.keys() & more.keys():
            raise ValueError(f"{name} has fields called {', '.join(sorted(twice))} already; name those of NESTED anew")
        return fields | more

    def _plain(self, schema: Mapping[str, Any], is_required: bool) -> GraphQLField:
        kind: Any = self._output(schema)
        sure = is_required and kind is not _JSON and _present(schema) is schema
        return GraphQLField(GraphQLNonNull(kind) if sure else kind, description=schema.get("description"))


def _of(place: str, parameters: Iterable[Mapping[str, Any]]) -> list[str]:
    return [each["name"] for each in parameters if each["in"] == place]


def _present(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a schema says of a value that is not null; anything, if it may be of several kinds."""
    if "anyOf" not in schema:
        return schema
    kinds = [part for part in schema["anyOf"] if part.get("type") != "null"]
    return kinds[0] if len(kinds) == 1 else {}
