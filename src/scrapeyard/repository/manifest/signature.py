"""Reads a scraper's entry function and its type hints from the text. The script is parsed, never imported."""

import ast
import math
import threading
from typing import Any

from scrapeyard.errors import ScraperInvalid
from scrapeyard_sdk.base import WHOLE_INPUT

MAX_DEPTH = 16
NO_VALUE: Any = object()
"""Marks a default that is not a JSON literal."""

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
    """Merge into one list of types where possible, because the validator's messages are then simpler."""
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


MAX_BYTES = 512 * 1024
_PARSING = threading.Lock()
"""Serializes parsing: Python's parser counts tree depth for all threads together and fails if they overlap."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCRAPE = "write `async def scrape(self, input)` in it"


def read_signature(source: bytes, function: str, where: str, *, may_be_imported: bool = False) -> dict[str, Any]:
    """The JSON Schema of what `function` takes beside `ctx`. Raises ScraperInvalid with the line number.

    Only a `def`, `async def` or `class` at the top level of the file counts; the last one of that name wins, as in
    Python. Of a class, the method `scrape` counts. `may_be_imported` also allows a function or class that the file
    imports by name, or a class that inherits `scrape`; its input is then described elsewhere.
    """
    tree = _parse(source, where)
    found = _find(tree, function)
    if isinstance(found, ast.ClassDef):
        return _of_class(found, where, may_be_inherited=may_be_imported)
    if isinstance(found, ast.ImportFrom) and may_be_imported:
        return {"type": "object"}
    if not isinstance(found, Function):
        raise ScraperInvalid(f"{where}: no function {function}; {_remedy(tree, function, where)}")
    _check(found, where, "ctx")
    return _schema(found.args)


def _of_class(found: ast.ClassDef, where: str, *, may_be_inherited: bool) -> dict[str, Any]:
    method = _method(found)
    if method is None:
        if may_be_inherited and found.bases:
            return {"type": "object"}
        raise ScraperInvalid(f"{where}:{found.lineno}: the class {found.name} has no method scrape; {_SCRAPE}")
    _check(method, where, "self")
    names = [arg.arg for arg, _ in _parameters(method.args)]
    return {"type": "object"} if names in [[name] for name in WHOLE_INPUT] else _schema(method.args)


def _method(found: ast.ClassDef) -> Function | None:
    named = [node for node in found.body if isinstance(node, Function) and node.name == "scrape"]
    return named[-1] if named else None


def _remedy(tree: ast.Module, function: str, where: str) -> str:
    """What to write instead: the class, if the file has one that scrapes."""
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef) and _method(node) is not None]
    if classes:
        return (
            f'to run the class {classes[-1]}, write entry = "{where.rpartition("/")[2]}:{classes[-1]}" in the manifest'
        )
    return f"write `async def {function}(ctx, …)` at the top level"


def _parse(source: bytes, where: str) -> ast.Module:
    if len(source) > MAX_BYTES:
        raise ScraperInvalid(f"{where}: larger than {MAX_BYTES // 1024} KB; split it into modules")
    try:
        with _PARSING:
            tree = ast.parse(source, where)
            # Finds what parsing alone does not, such as `return` outside a function. Nothing is executed.
            compile(tree, where, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise ScraperInvalid(f"{where}:{error.lineno or 1}: {error.msg}", file=where, line=error.lineno) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ScraperInvalid(f"{where}:1: cannot be parsed: {str(error) or 'too complex'}") from None
    return tree


def _find(tree: ast.Module, name: str) -> Function | ast.ClassDef | ast.ImportFrom | None:
    kinds = (Function, ast.ClassDef, ast.ImportFrom)
    named = [node for node in tree.body if isinstance(node, kinds) and name in _bound(node)]
    return named[-1] if named else None


def _bound(node: Function | ast.ClassDef | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [each.asname or each.name for each in node.names]
    return [node.name]


def _check(function: Function, where: str, first: str) -> None:
    """`first` is what the first parameter is called: `ctx`, or `self` of a method."""
    args, place = function.args, f"{where}:{function.lineno}"
    positional = [*args.posonlyargs, *args.args]
    if not positional:
        raise ScraperInvalid(f"{place}: {function.name} takes no {first}; write `{function.name}({first}, …)`")
    if args.vararg is not None:
        raise ScraperInvalid(f"{place}: *{args.vararg.arg} cannot be filled from an input; name each parameter")
    if len(args.posonlyargs) > 1:
        name = args.posonlyargs[1].arg
        raise ScraperInvalid(f"{place}: {name} is positional-only, and inputs are given by name; remove the `/`")


def _schema(args: ast.arguments) -> dict[str, Any]:
    parameters = _parameters(args)
    if not parameters and args.kwarg is None:
        return {"type": "object"}
    schema: dict[str, Any] = {"type": "object"}
    if parameters:
        schema["properties"] = {arg.arg: _property(arg, default) for arg, default in parameters}
    required = [arg.arg for arg, default in parameters if default is None]
    if required:
        schema["required"] = required
    rest = schema_of(args.kwarg.annotation) if args.kwarg else False
    if rest != {}:
        schema["additionalProperties"] = rest
    return schema


def _parameters(args: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    """Every parameter after ctx, with its default or None."""
    positional = [*args.posonlyargs, *args.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults))
    pairs = list(zip(positional, missing + list(args.defaults), strict=True))
    return pairs[1:] + list(zip(args.kwonlyargs, args.kw_defaults, strict=True))


def _property(arg: ast.arg, default: ast.expr | None) -> dict[str, Any]:
    schema = schema_of(arg.annotation)
    value = literal(default) if default is not None else NO_VALUE
    if value is NO_VALUE:
        return schema
    # `x: str = None` is common, and means that None may be given.
    return (with_null(schema) if value is None else schema) | {"default": value}
