"""What each property of the API means, and examples: of properties, of parameters and of whole answers.

A struct tells what is particular to it. What a property of the same name means everywhere stands once, in
`properties.toml`.
"""

from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec
from msgspec import Struct

from scrapeyard.gateway.http.patterns import EXAMPLE_TIME

TIMES: Final = frozenset({"at", "deadline", "next_run", "next_runs", "not_before", "timestamp"})
"""Properties that are times, beside those whose name ends in `_at`."""
_REFERENCE: Final = "#/components/schemas/"
_PLAIN: Final[dict[str, Any]] = {"string": "", "integer": 0, "number": 0.0, "boolean": False}
_KINDS: Final = {
    bool: {"boolean"},
    int: {"integer", "number"},
    float: {"number"},
    str: {"string"},
    dict: {"object"},
    list: {"array"},
}


class PropertyTexts(Struct, frozen=True):
    """The file `properties.toml`. Keys are `property` or `Schema.property`; of examples also `operation` and
    `operation.parameter`."""

    meanings: dict[str, str]
    examples: dict[str, Any]
    absent: frozenset[str]
    """Properties that are null in examples, which show what went well."""

    def meaning(self, owner: str, name: str) -> str | None:
        """What a property of a schema means; None if that is told nowhere."""
        return self.meanings.get(f"{owner}.{name}", self.meanings.get(name))

    def example(self, owner: str, name: str) -> Any:
        """A value of a property or parameter; None if there is none."""
        return self.examples.get(f"{owner}.{name}", self.examples.get(name))


@cache
def texts() -> PropertyTexts:
    """The file, read once."""
    file = files("scrapeyard.gateway.document").joinpath("properties.toml")
    return msgspec.toml.decode(file.read_bytes(), type=PropertyTexts)


def complete(owner: str, schema: dict[str, Any]) -> None:
    """Give each property of a schema its meaning, an example and the format of a time, where it has none."""
    for name, field in schema.get("properties", {}).items():
        if "description" not in field and (meaning := texts().meaning(owner, name)):
            field["description"] = meaning
        if name.endswith("_at") or name in TIMES:
            _mark_time(field)
        example = texts().example(owner, name)
        if not texts().absent.isdisjoint((name, f"{owner}.{name}")) and _may_be_null(field):
            field["examples"] = [None]
        elif example is not None and fits(field, example):
            field.setdefault("examples", [example])


def _mark_time(field: dict[str, Any]) -> None:
    for part in (field, *field.get("anyOf", ()), field.get("items", {})):
        if part.get("type") == "string":
            part["format"] = "date-time"


def _may_be_null(field: dict[str, Any]) -> bool:
    return {"type": "null"} in field.get("anyOf", ())


def fits(field: dict[str, Any], example: Any) -> bool:
    """Whether an example is of the type of a field: one name may stand for a number here and a list there."""
    if "$ref" in field:
        return isinstance(example, str)
    kinds = {kind for part in (field, *field.get("anyOf", ())) for kind in _types(part)}
    return not kinds or bool(kinds & _KINDS[type(example)])


def _types(schema: dict[str, Any]) -> list[str]:
    given = schema.get("type", [])
    return [given] if isinstance(given, str) else given


def example_of(schema: dict[str, Any], components: dict[str, Any]) -> Any:
    """A value that a schema allows, made of the examples of its parts. A part that may be null and has no example is
    null, unless it is a document."""
    for told in ("example", "const"):
        if told in schema:
            return schema[told]
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return example_of(components[schema["$ref"].removeprefix(_REFERENCE)], components)
    if "anyOf" in schema:
        first = schema["anyOf"][0]
        return None if _may_be_null(schema) and "$ref" not in first else example_of(first, components)
    return schema["enum"][0] if "enum" in schema else _made_up(schema, components)


def _made_up(schema: dict[str, Any], components: dict[str, Any]) -> Any:
    kinds = _types(schema)
    if kinds == ["object"]:
        known, needed = schema.get("properties", {}), schema.get("required", ())
        fields = {name: field for name, field in known.items() if name in needed}
        return {name: example_of(field, components) for name, field in fields.items()}
    if kinds == ["array"]:
        first = example_of(schema["items"], components) if schema.get("items") else ""
        return [] if first == "" else [first]
    if schema.get("format") == "date-time":
        return EXAMPLE_TIME
    return schema.get("minimum", _PLAIN[kinds[0]] if len(kinds) == 1 else None)
