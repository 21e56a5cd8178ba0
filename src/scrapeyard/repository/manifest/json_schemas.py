"""JSON Schemas: estimating their cost, and checking values against them."""

import functools
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal
from urllib.parse import unquote

import jsonschema_rs
from msgspec import Struct

from scrapeyard.engines.http.checks import is_settable
from scrapeyard.engines.http.url import spell_url
from scrapeyard.model import Scraper

MAX_DEPTH = 32
"""Levels of nesting in the schema's text."""
MAX_CHAIN = 150
"""Steps through nesting and references together."""
MAX_WEIGHT = 20_000
"""Maximum parts of the schema with every reference expanded."""
MAX_PATTERNS = 64

_DATA = frozenset({"const", "default", "enum", "examples"})
_ASIDE = frozenset({"$defs", "definitions"})
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class SchemaRefused(Exception):
    """The schema is refused; the message says why and what to do."""


class SchemaCost(Struct, frozen=True, kw_only=True):
    """What checking one value may cost."""

    parts: int
    loops: int
    """Recursive references in the schema; with more than one, each level of a value multiplies the cost."""

    def effort(self, size: int, depth: int) -> int:
        """A practical upper bound of the work to report every error in a value with that many parts and levels."""
        return size * self.parts * self.loops ** min(max(depth, 2), 64) if self.loops > 1 else size * self.parts


def estimate_cost(schema: dict[str, Any]) -> SchemaCost:
    """Estimate a schema's cost. Raises SchemaRefused if it is too deep, too expensive or refers outside itself."""
    anchors: dict[str, Any] = {}
    patterns = 0
    for part in _parts(schema, 0):
        patterns += _count_patterns(part)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(part.get(keyword), str):
                anchors[part[keyword]] = part
        if part is not schema and isinstance(part.get("$id"), str):
            raise SchemaRefused("a $id inside the schema; remove it and refer by #/$defs/…")
    if patterns > MAX_PATTERNS:
        raise SchemaRefused(f"{patterns} patterns; at most {MAX_PATTERNS} are allowed")
    scale = _Scale(schema, anchors)
    parts, _ = scale.weigh(schema, 0)
    return SchemaCost(parts=parts, loops=scale.loops)


def _parts(node: Any, depth: int) -> Iterator[dict[str, Any]]:
    if depth > MAX_DEPTH:
        raise SchemaRefused(f"nested deeper than {MAX_DEPTH} levels; flatten it")
    if isinstance(node, dict):
        yield node
        for key, child in node.items():
            if key not in _DATA:
                yield from _parts(child, depth + 1)
    elif isinstance(node, list):
        for child in node:
            yield from _parts(child, depth + 1)


def _count_patterns(part: dict[str, Any]) -> int:
    named = part.get("patternProperties")
    return isinstance(part.get("pattern"), str) + (len(named) if isinstance(named, dict) else 0)


class _Scale:
    """Memoizes the cost: each part is computed once, however often it is referenced."""

    def __init__(self, root: dict[str, Any], anchors: dict[str, Any]) -> None:
        self._root = root
        self._anchors = anchors
        self._known: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()
        self.loops = 0

    def weigh(self, node: Any, chain: int) -> tuple[int, int]:
        """The number of parts, and of references back to a part that is being computed."""
        if not isinstance(node, (dict, list)):
            return 0, 0
        if id(node) in self._open:
            return 1, 1
        if id(node) not in self._known:
            self._known[id(node)] = self._sum(node, chain)
        return self._known[id(node)]

    def _sum(self, node: dict[str, Any] | list[Any], chain: int) -> tuple[int, int]:
        if chain > MAX_CHAIN:
            raise SchemaRefused(f"references and nesting go on for more than {MAX_CHAIN} steps; shorten them")
        self._open.add(id(node))
        below = [self.weigh(child, chain + 1) for child in self._children(node)]
        self._open.discard(id(node))
        parts, loops = 1 + sum(each[0] for each in below), sum(each[1] for each in below)
        if parts > MAX_WEIGHT:
            raise SchemaRefused(f"its references expand to more than {MAX_WEIGHT} parts; simplify it")
        self.loops = max(self.loops, loops)
        return parts, loops

    def _children(self, node: dict[str, Any] | list[Any]) -> Iterator[Any]:
        if isinstance(node, list):
            yield from node
            return
        for key, child in node.items():
            if key in _REFERENCES and isinstance(child, str):
                yield self._target(child)
            elif key not in _DATA and key not in _ASIDE:
                yield child

    def _target(self, reference: str) -> Any:
        if not reference.startswith("#"):
            raise SchemaRefused(f"{reference[:100]!r} refers outside the schema; put the part under $defs")
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return self._anchors.get(pointer)
        node: Any = self._root
        for step in pointer.split("/")[1:]:
            node = _step(node, step.replace("~1", "/").replace("~0", "~"))
        return node


def _step(node: Any, step: str) -> Any:
    if isinstance(node, dict):
        return node.get(step)
    if isinstance(node, list) and step.isdecimal() and int(step[:9]) < len(node):
        return node[int(step[:9])]
    return None


@functools.lru_cache(4096)
def _is_selector(text: str, kind: Literal["css", "xpath"] | None = None) -> bool:
    from scrapeyard_sdk.extract.selectors import parse_selector  # noqa: PLC0415 - loads a parser that few inputs need

    try:
        parse_selector(text, kind)
    except ValueError:
        return False
    return True


@functools.lru_cache(4096)
def _is_expression(text: str) -> bool:
    import regex  # noqa: PLC0415 - loads slowly, and few inputs need it

    try:
        regex.compile(text)
    except (regex.error, ValueError, OverflowError, RecursionError):
        return False
    return True


# The checks are cached: the items of a job share their selectors.
FORMATS: dict[str, Callable[[str], bool]] = {
    "selector": _is_selector,
    "css-selector": functools.partial(_is_selector, kind="css"),
    "xpath": functools.partial(_is_selector, kind="xpath"),
    "python-regex": _is_expression,
    "request-header": is_settable,
}
"""Formats of text beside those of JSON Schema, each with its check. `selector` is CSS or XPath."""
MAX_ERRORS = 20
MAX_MESSAGE = 200
MAX_VALIDATORS = 512
MAX_EFFORT = 20_000
"""Up to this product of schema parts and value parts, every error is reported; beyond it, only the first."""

Fault = dict[str, str]
_PLAIN: Fault = {
    "path": "",
    "message": "does not fit the schema; too large or deep for a recursive schema to tell where",
}


def check_schema(schema: dict[str, Any]) -> None:
    """Raises SchemaRefused when the schema is wrong, refers outside itself, or could take too long to check."""
    estimate_cost(schema)
    _compile(schema)


def spell_urls(schema: dict[str, Any], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The input with every field of `format: uri` spelled as a browser spells it. A copy, if something changed."""
    properties = schema.get("properties")
    spelled = {
        name: plain
        for name, field in (properties.items() if isinstance(properties, dict) else ())
        if isinstance(field, dict) and field.get("format") == "uri" and isinstance(given := value.get(name), str)
        if (plain := spell_url(given)) != given
    }
    return {**value, **spelled} if spelled else value


class InputChecker:
    """Checks values against scrapers' schemas. Compiles each schema once and keeps the last used.

    Never hangs, whatever the schema: patterns run in linear time, and all errors are collected only if the sizes of
    schema and value bound the work.
    """

    def __init__(self, capacity: int = MAX_VALIDATORS) -> None:
        self._capacity = capacity
        self._validators: OrderedDict[tuple[str, str], _Validator] = OrderedDict()

    def errors(self, scraper: Scraper, value: Any) -> list[Fault]:
        """What is wrong with an input: `path` (a JSON pointer, empty for the whole) and `message`. Empty when good."""
        return self._validator(scraper, "input", scraper.input_schema).errors(value)

    def output_errors(self, scraper: Scraper, value: Any) -> list[Fault]:
        """What is wrong with a result. Empty when it is good or the scraper has no output schema."""
        if scraper.output_schema is None:
            return []
        return self._validator(scraper, "output", scraper.output_schema).errors(value)

    def _validator(self, scraper: Scraper, side: str, schema: dict[str, Any]) -> "_Validator":
        key = (scraper.ref.digest or str(scraper.ref), side)
        if key not in self._validators:
            self._validators[key] = _Validator(schema)
            if len(self._validators) > self._capacity:
                self._validators.popitem(last=False)
        self._validators.move_to_end(key)
        return self._validators[key]


class _Validator:
    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._compiled = _compile(schema)

    def errors(self, value: Any) -> list[Fault]:
        try:
            return [] if self._compiled.is_valid(value) else self._explain(value)
        except ValueError as error:
            return [{"path": "", "message": _short(f"cannot be checked: {error}")}]

    @functools.cached_property
    def _weight(self) -> SchemaCost:
        return estimate_cost(self._schema)

    def _explain(self, value: Any) -> list[Fault]:
        """The library collects all errors before it returns the first, so for large work only one is requested."""
        size, depth = _measure(value, MAX_EFFORT // self._weight.parts)
        if self._weight.effort(size, depth) > MAX_EFFORT:
            return [_PLAIN] if self._weight.loops > 1 else self._first(value)
        return [_fault(error) for error, _ in zip(self._compiled.iter_errors(value), range(MAX_ERRORS), strict=False)]

    def _first(self, value: Any) -> list[Fault]:
        try:
            self._compiled.validate(value)
        except jsonschema_rs.ValidationError as error:
            return [_fault(error)]
        return []


def _compile(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=True,
            offline=True,
            formats=FORMATS,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=1 << 19, dfa_size_limit=1 << 19),
        )
    except jsonschema_rs.ValidationError as error:
        place = "/".join(str(step) for step in error.instance_path)
        hint = " (look-around and back-references are not supported)" if "regex" in error.message else ""
        raise SchemaRefused(f"{place + ': ' if place else ''}{_short(error.message)}{hint}") from None
    except (ValueError, RecursionError) as error:
        raise SchemaRefused(_short(str(error))) from None


def _measure(value: Any, enough: int) -> tuple[int, int]:
    """How many parts a value has and how deep it goes; counting ends a little after `enough`."""
    size, depth, level = 1, 0, [value]
    while level and size <= enough:
        below: list[Any] = []
        for node in level:
            if isinstance(node, (dict, list, tuple)):
                below.extend(node.values() if isinstance(node, dict) else node)
        size += len(below)
        depth += bool(below)
        level = below
    return size, depth


def _fault(error: jsonschema_rs.ValidationError) -> Fault:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in error.instance_path)
    return {"path": "".join(f"/{step[:100]}" for step in steps)[:500], "message": _short(_message(error))}


def _message(error: jsonschema_rs.ValidationError) -> str:
    """The library's words; but a value that is none of the known ones is told all of them, if they are words."""
    kind = error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.FalseSchema):
        return "does not go with the other fields that are given"
    if not isinstance(kind, jsonschema_rs.ValidationErrorKind.Enum):
        return error.message
    words = kind.options if isinstance(kind.options, list) else []
    known = ", ".join(each for each in words if isinstance(each, str))
    if not known or len(known) > MAX_MESSAGE - 50:
        return error.message
    return f"{json.dumps(error.instance)[:30]} is not one of {known}"


def _short(message: str) -> str:
    """Cut the middle: the library's messages begin with the value and end with the reason, or the reverse."""
    line = message.partition("\n\n")[0]
    return line if len(line) <= MAX_MESSAGE else f"{line[:70]} … {line[-120:]}"
