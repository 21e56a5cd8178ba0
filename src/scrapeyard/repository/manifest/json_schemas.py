"""JSON Schemas: checked when a scraper is read, used when a value enters or leaves it."""

import functools
from collections import OrderedDict
from typing import Any

import jsonschema_rs

from scrapeyard.model import Scraper
from scrapeyard.repository.manifest.schema_cost import SchemaRefused, Weight, weigh

MAX_ERRORS = 20
MAX_MESSAGE = 200
MAX_VALIDATORS = 512
MAX_EFFORT = 20_000
"""Parts of the schema times parts of the value, up to which every error is told; beyond it, the first alone."""

Fault = dict[str, str]
_PLAIN: Fault = {
    "path": "",
    "message": "does not fit the schema; too large or deep for a recursive schema to tell where",
}


def check_schema(schema: dict[str, Any]) -> None:
    """Raises SchemaRefused when the schema is wrong, refers outside itself, or could take too long to check."""
    weigh(schema)
    _compile(schema)


class InputChecker:
    """Checks values against scrapers' schemas. Compiles each schema once and keeps the last used.

    Never hangs, whatever the schema: patterns run on an engine in linear time, and errors are collected only where the
    sizes of schema and value bound the work.
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
    def _weight(self) -> Weight:
        return weigh(self._schema)

    def _explain(self, value: Any) -> list[Fault]:
        """The library collects all errors before it shows the first, so large work asks for one alone."""
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
    return {"path": "".join(f"/{step[:100]}" for step in steps)[:500], "message": _short(error.message)}


def _short(message: str) -> str:
    """The value stands at one end of the library's sentences and the reason at the other: the middle can go."""
    line = message.partition("\n\n")[0]
    return line if len(line) <= MAX_MESSAGE else f"{line[:70]} … {line[-120:]}"
