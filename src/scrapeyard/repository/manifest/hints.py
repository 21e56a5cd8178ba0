"""Type hints, as text, to JSON Schema. What is not known becomes `{}`, which accepts anything."""

import ast
import math
from typing import Any

MAX_DEPTH = 16
NO_VALUE: Any = object()
"""Stands for a default that is not written as a plain JSON value."""

Schema = dict[str, Any]

_NAMES: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "dict": {"type": "object"},
    "list": {"type": "array"},
    "tuple": {"type": "array"},
    "set": {"type": "array", "uniqueItems": True},
}
_SAME = {
    "Dict": "dict",
    "FrozenSet": "set",
    "Iterable": "list",
    "List": "list",
    "Mapping": "dict",
    "MutableMapping": "dict",
    "MutableSequence": "list",
    "Sequence": "list",
    "Set": "set",
    "Tuple": "tuple",
    "Collection": "list",
    "frozenset": "set",
}


def schema_of(hint: ast.expr | None, depth: int = 0) -> Schema:
    """The schema of a hint; None means that there is no hint."""
    if hint is None or depth > MAX_DEPTH:
        return {}
    if isinstance(hint, ast.Constant):
        return _constant(hint.value, depth)
    if isinstance(hint, ast.BinOp) and isinstance(hint.op, ast.BitOr):
        return _union([hint.left, hint.right], depth)
    if isinstance(hint, ast.Subscript):
        return _subscript(_name(hint.value), _arguments(hint.slice), depth)
    return dict(_NAMES.get(_name(hint), {}))


def with_null(schema: Schema) -> Schema:
    """The same, or null."""
    return _any_of([schema, {"type": "null"}])


def literal(node: ast.expr) -> Any:
    """The JSON value that an expression spells out, or NO_VALUE."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return NO_VALUE
    return value if _is_json(value, 0) else NO_VALUE


def _is_json(value: Any, depth: int) -> bool:
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(child, depth + 1) for key, child in value.items())
    if isinstance(value, list):
        return all(_is_json(child, depth + 1) for child in value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return value is None or (isinstance(value, str) and _is_text(value))


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _constant(value: object, depth: int) -> Schema:
    if value is None:
        return {"type": "null"}
    if not isinstance(value, str) or len(value) > 1000:
        return {}
    try:
        return schema_of(ast.parse(value.strip(), mode="eval").body, depth + 1)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _name(node: ast.expr) -> str:
    """`List` of `typing.List` too; empty for anything that is not a name."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return _SAME.get(node.attr, node.attr)
    return _SAME.get(node.id, node.id) if isinstance(node, ast.Name) else ""


def _arguments(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def _subscript(name: str, arguments: list[ast.expr], depth: int) -> Schema:
    if name == "Optional":
        return with_null(_union(arguments, depth))
    if name == "Union":
        return _union(arguments, depth)
    if name == "Literal":
        return _literals(arguments)
    if name in ("Annotated", "Required", "NotRequired", "Final"):
        return schema_of(arguments[0], depth + 1) if arguments else {}
    if name == "tuple":
        return _tuple(arguments, depth)
    if name in ("list", "set") and len(arguments) == 1:
        return _NAMES[name] | _unless_any("items", schema_of(arguments[0], depth + 1))
    if name == "dict" and len(arguments) == 2:
        return _NAMES[name] | _unless_any("additionalProperties", schema_of(arguments[1], depth + 1))
    return {}


def _unless_any(keyword: str, schema: Schema) -> Schema:
    return {keyword: schema} if schema else {}


def _literals(arguments: list[ast.expr]) -> Schema:
    values = [literal(argument) for argument in arguments]
    return {} if not values or any(value is NO_VALUE for value in values) else {"enum": values}


def _tuple(arguments: list[ast.expr], depth: int) -> Schema:
    last = arguments[-1] if arguments else None
    if len(arguments) == 2 and isinstance(last, ast.Constant) and last.value is Ellipsis:
        return {"type": "array"} | _unless_any("items", schema_of(arguments[0], depth + 1))
    count = len(arguments)
    items = {"prefixItems": [schema_of(each, depth + 1) for each in arguments]} if arguments else {}
    return {"type": "array", **items, "minItems": count, "maxItems": count}


def _union(members: list[ast.expr], depth: int) -> Schema:
    return _any_of([schema_of(member, depth + 1) for member in members])


def _any_of(schemas: list[Schema]) -> Schema:
    """One list of types where that says it all: the validator's words are then plain."""
    flat: list[Schema] = []
    for schema in schemas:
        flat.extend(schema["anyOf"] if schema.keys() == {"anyOf"} else [schema])
    if {} in flat or not flat:
        return {}
    if all(schema.keys() == {"type"} for schema in flat):
        return _types(flat)
    unique = [schema for at, schema in enumerate(flat) if schema not in flat[:at]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def _types(schemas: list[Schema]) -> Schema:
    kinds: list[str] = []
    for schema in schemas:
        kind = schema["type"]
        kinds.extend([kind] if isinstance(kind, str) else kind)
    unique = list(dict.fromkeys(kinds))
    return {"type": unique[0] if len(unique) == 1 else unique}
