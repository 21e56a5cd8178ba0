"""Reads a scraper's entry function from its text. The script is parsed, never imported.

What each parameter takes is told by its hint; what a hint does not tell is accepted. A function of `ctx` alone takes
any object and reads it from `ctx.input`.
"""

import ast
import threading
from typing import Any

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.manifest.hints import NO_VALUE, literal, schema_of, with_null

MAX_BYTES = 512 * 1024
_PARSING = threading.Lock()
"""Python counts the depth of a tree it builds once for all threads, and a thread that comes between is an error."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_signature(source: bytes, function: str, where: str, *, may_be_imported: bool = False) -> dict[str, Any]:
    """The JSON Schema of what `function` takes beside `ctx`. Raises ScraperInvalid with the line number.

    Only a `def` or `async def` at the top level of the file counts; the last one of that name wins, as in Python.
    `may_be_imported`: also a function that the file imports by name, where something else tells what it takes.
    """
    found = _find(_parse(source, where), function)
    if isinstance(found, ast.ImportFrom) and may_be_imported:
        return {"type": "object"}
    if not isinstance(found, Function):
        raise ScraperInvalid(f"{where}: no function {function}; write `async def {function}(ctx, …)` at the top level")
    _check(found, where)
    return _schema(found.args)


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


def _find(tree: ast.Module, name: str) -> Function | ast.ImportFrom | None:
    named = [node for node in tree.body if isinstance(node, (Function, ast.ImportFrom)) and name in _bound(node)]
    return named[-1] if named else None


def _bound(node: Function | ast.ImportFrom) -> list[str]:
    return [node.name] if isinstance(node, Function) else [each.asname or each.name for each in node.names]


def _check(function: Function, where: str) -> None:
    args, place = function.args, f"{where}:{function.lineno}"
    positional = [*args.posonlyargs, *args.args]
    if not positional:
        raise ScraperInvalid(f"{place}: {function.name} takes no ctx; write `{function.name}(ctx, …)`")
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
