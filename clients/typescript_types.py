"""TypeScript types of an OpenAPI document."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_HEAD = "// Made of the OpenAPI document by `make clients`. Do not change it by hand.\n"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def types_of(document: Mapping[str, Any]) -> str:
    """One type for each schema, and one table of the operations: method, path, query, body and answer."""
    schemas = document["components"]["schemas"]
    types = [f"{_comment(schema)}export type {name} = {_type(schema)};\n" for name, schema in sorted(schemas.items())]
    operations = "".join(_operation(*each) for each in _operations(document))
    table = f"/** Every operation, by its id. */\nexport interface Operations {{\n{operations}}}\n"
    routes = "".join(
        f"  {name}: [{json.dumps(method.upper())}, {json.dumps(path)}],\n"
        for name, method, path, _ in _operations(document)
    )
    keyed = [name for name, _, _, operation in _operations(document) if _is_keyed(operation)]
    constants = f"""/** Method and path of every operation. */
export const routes = {{
{routes}}} as const;

/** Operations that take an `Idempotency-Key`. */
export const keyed: readonly string[] = {json.dumps(keyed)};
"""
    return "\n".join([_HEAD, *types, table, constants])


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield operation["operationId"], method, path, operation


def _operation(name: str, _method: str, _path: str, operation: Mapping[str, Any]) -> str:
    parameters = operation.get("parameters", ())
    parts = {
        "path": _fields([each for each in parameters if each["in"] == "path"]),
        "query": _fields([each for each in parameters if each["in"] == "query"]),
        "body": _content(operation.get("requestBody", {})),
        "answer": " | ".join(dict.fromkeys(_answers(operation))) or "undefined",
    }
    shown = "".join(f"    {part}: {kind};\n" for part, kind in parts.items())
    return f"  /** {operation['summary']}. */\n  {name}: {{\n{shown}  }};\n"


def _is_keyed(operation: Mapping[str, Any]) -> bool:
    return any(each["name"] == "Idempotency-Key" for each in operation.get("parameters", ()))


def _fields(parameters: list[Mapping[str, Any]]) -> str:
    if not parameters:
        return "undefined"
    fields = [f"{_name(each['name'])}{_mark(each['required'])}: {_type(each['schema'])}" for each in parameters]
    return "{ " + "; ".join(fields) + " }"


def _answers(operation: Mapping[str, Any]) -> Iterator[str]:
    for status, answer in operation["responses"].items():
        if status < "300" and answer.get("content"):
            yield _content(answer)


def _content(part: Mapping[str, Any]) -> str:
    """JSON as its type; anything else as bytes."""
    media = part.get("content", {})
    if not media:
        return "undefined"
    schema = media.get("application/json", {}).get("schema")
    return _type(schema) if schema else "Response"


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(dict.fromkeys(_type(part) for part in schema[key]))
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return " | ".join(_type({**schema, "type": kind}) for kind in kinds)
    if kinds == "array":
        return f"Array<{_type(schema.get('items') or {})}>"
    return _object(schema) if kinds == "object" or "properties" in schema else _PLAIN.get(str(kinds), "unknown")


def _object(schema: Mapping[str, Any]) -> str:
    fields = schema.get("properties")
    if not fields:
        more = schema.get("additionalProperties")
        return f"Record<string, {_type(more) if isinstance(more, dict) and more else 'unknown'}>"
    required = schema.get("required", ())
    shown = [
        f"{_comment(field, '  ')}  {_name(name)}{_mark(name in required)}: {_type(field)};\n"
        for name, field in fields.items()
    ]
    return "{\n" + "".join(shown) + "}"


def _comment(schema: Mapping[str, Any], indent: str = "") -> str:
    words = " ".join(str(schema.get("description", "")).split()).replace("*/", "*\\/")
    mark = "@deprecated " if schema.get("deprecated") else ""
    return f"{indent}/** {mark}{words} */\n" if words else ""


def _name(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else json.dumps(name)


def _mark(required: bool) -> str:
    return "" if required else "?"
