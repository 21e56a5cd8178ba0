"""JSON Schemas of inputs that are written as structs: one definition for the check, the API and the docs.

msgspec makes the schema. Two things are changed, so that a fault is told with its place. A union becomes a chain of
`if` and `then` by its tag, because `anyOf` says only that nothing fits. And the lists of steps in steps are described
once for all of them, because an input check that meets many ways back into itself tells no place.
"""

from typing import Any

import msgspec
from msgspec import Struct

_STEPS = "Steps"


def input_schema(kind: type[Struct], nested: tuple[str, ...] = ()) -> dict[str, Any]:
    """The schema of an input. `nested` names the properties of steps that hold steps again."""
    parts: dict[str, Any] = msgspec.json.schema(kind)["$defs"]
    root = parts.pop(kind.__name__)
    for part in (root, *parts.values()):
        part.pop("title", None)
        for name, field in part.get("properties", {}).items():
            if "discriminator" not in field.get("items", ()):
                part["properties"][name] = _one_of_types(field)
            elif part is root:
                part["properties"][name] = {**_words(field), "$ref": f"#/$defs/{_STEPS}"}
                steps = {"type": "array", "maxItems": field["maxItems"], "items": _by_tag(field["items"], nested)}
            else:  # checked by `patternProperties` of every step
                part["properties"][name] = _words(field)
    parts[_STEPS] = steps
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": parts}


def _words(field: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in field.items() if key in ("description", "default", "minItems")}


def _by_tag(union: dict[str, Any], nested: tuple[str, ...]) -> dict[str, Any]:
    tag, kinds = union["discriminator"]["propertyName"], union["discriminator"]["mapping"]
    below = {"patternProperties": {f"^({'|'.join(nested)})$": {"$ref": f"#/$defs/{_STEPS}"}}} if nested else {}
    return {
        "type": "object",
        "required": [tag],
        "properties": {tag: {"enum": sorted(kinds), "description": "What the step does."}},
        **below,
        "allOf": [
            {"if": {"properties": {tag: {"const": name}}, "required": [tag]}, "then": {"$ref": reference}}
            for name, reference in sorted(kinds.items())
        ],
    }


def _one_of_types(field: dict[str, Any]) -> dict[str, Any]:
    """A union with null as one list of types, whose faults are told plainly."""
    choices = field.get("anyOf", ())
    if len(choices) != 2 or choices[1] != {"type": "null"} or not isinstance(choices[0].get("type"), str):
        return field
    kept = {key: value for key, value in field.items() if key != "anyOf"}
    return {**kept, **choices[0], "type": [choices[0]["type"], "null"]}
