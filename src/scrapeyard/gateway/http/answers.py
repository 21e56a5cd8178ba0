"""Answers: each is one msgspec struct, which its route encodes and the OpenAPI document describes."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import wraps
from inspect import cleandoc, signature
from types import UnionType
from typing import Any, get_args

import msgspec
from fastapi.datastructures import DefaultPlaceholder
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from scrapeyard.gateway.http import dialects

JSON = "application/json"
_encode = msgspec.json.Encoder().encode
PLACE = "#/components/schemas/{name}"
NAMES = {
    "Counts": "CountsDocument",
    "ExportWish": "WishDocument",
    "FetchTrace": "FetchDocument",
    "Limits": "LimitsDocument",
    "LogLine": "LogLineDocument",
    "RunError": "ErrorDocument",
    "Timing": "TimingDocument",
    "Usage": "UsageDocument",
}
"""Structs of the model that are shown unchanged, and their names in the document."""


def respond(answer: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Encode a struct as a response, in the dialect of its request."""
    dialect = dialects.current()
    if dialect is dialects.OWN:
        return Response(_encode(answer), status, headers, JSON)
    shown, cursor = dialect.shown(answer), getattr(answer, "next_cursor", None)
    if isinstance(shown, list) and cursor is not None:
        headers = {**(headers or {}), "Next-Cursor": cursor}
    return Response(_encode(shown), status, headers, JSON)


class AnswerRoute(APIRoute):
    """A route whose handler returns a struct, or a ready response. `response_model` and the `model` of responses are
    structs or unions of them; by default `response_model` is what the handler returns. The name of the handler is the
    operation's id, and its docstring the description."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        returned, given = signature(endpoint).return_annotation, options.pop("response_model")
        model = returned if isinstance(given, DefaultPlaceholder) else given
        status = options.get("status_code") or 200
        responses = {code: dict(response) for code, response in (options.pop("responses") or {}).items()}
        if model is not None and not _is_response(model):
            responses[status] = {**responses.get(status, {}), "model": model}
        self.answers: set[type[Struct]] = set()
        """Every struct that it may answer with."""
        for response in responses.values():
            self._describe(response)
        if not _is_response(returned):
            endpoint = _encoding(endpoint, status)
        options["operation_id"] = endpoint.__name__
        options["description"] = options.get("description") or " ".join((endpoint.__doc__ or "").split())
        super().__init__(path, endpoint, response_model=None, responses=responses, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler; it refuses query parameters that it does not know, since ignoring a filter or an option answers
        wrongly. It knows those that the handler declares, and those that `openapi_extra` describes."""
        handler = super().get_route_handler()
        described = (self.openapi_extra or {}).get("parameters", ())
        known = [field.alias for field in self.dependant.query_params]
        known += [parameter["name"] for parameter in described if parameter["in"] == "query"]
        words = f"unknown parameter; known are {', '.join(known)}" if known else "unknown parameter; there are none"

        async def checked(request: Request) -> Response:
            if unknown := request.query_params.keys() - known:
                raise RequestValidationError([{"loc": ("query", name), "msg": words} for name in sorted(unknown)])
            return await handler(request)

        return checked

    def _describe(self, response: dict[str, Any]) -> None:
        """Replace the model of a response by its schema."""
        model = response.pop("model", None)
        if model is None:
            return
        kinds = get_args(model) if isinstance(model, UnionType) else (model,)
        self.answers.update(kinds)
        references = [{"$ref": PLACE.format(name=kind.__name__)} for kind in kinds]
        schema = references[0] if len(references) == 1 else {"anyOf": references}
        response["content"] = {JSON: {"schema": schema}, **response.get("content", {})}


def _is_response(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Response)


def _encoding(handler: Callable[..., Any], status: int) -> Callable[..., Any]:
    @wraps(handler)
    async def answer(**values: Any) -> Response:
        answered = status, await handler(**values)
        told, document = dialects.current().answers.get(handler.__name__, answered)
        return respond(document, told)

    return answer


def schemas(kinds: Iterable[type[Struct]]) -> dict[str, Any]:
    """The schema of each struct and of all that they refer to, by name."""
    kinds = tuple(kinds)
    _, components = msgspec.json.schema_components(kinds, ref_template=PLACE)
    for kind in kinds:
        components[kind.__name__].update(getattr(kind, "SCHEMA", {}))
    return {NAMES.get(name, name): _plain(_complete(schema)) for name, schema in components.items()}


def _complete(schema: dict[str, Any]) -> dict[str, Any]:
    """Require fields with a default value as well: an answer includes them. Only unset fields are left out."""
    for name, field in schema.get("properties", {}).items():
        if "default" in field:
            del field["default"]
            schema["required"] = [*dict.fromkeys([*schema["required"], name])]
    return {**schema, "description": cleandoc(schema["description"])}


def _plain(schema: Any) -> Any:
    """The same with the document's names, and with the type of enumerations."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _plain(value) for key, value in schema.items()}
    if isinstance(schema.get("enum"), list):
        plain.setdefault("type", "string")
    if isinstance(reference := schema.get("$ref"), str):
        place, _, name = reference.rpartition("/")
        plain["$ref"] = f"{place}/{NAMES.get(name, name)}"
    return plain
