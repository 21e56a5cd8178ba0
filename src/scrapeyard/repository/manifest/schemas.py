"""The [input] and [output] of a manifest: a JSON Schema in place, or in a file beside it."""

import json
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from scrapeyard.repository.manifest.json_schemas import SchemaRefused, check_schema
from scrapeyard.repository.manifest.values import Place, check_json

MAX_BYTES = 256 * 1024

ReadFile = Callable[[str], bytes]
"""Content of a file of the scraper's folder, by relative path. Raises OSError when it is not there."""


def read_schema(table: Any, place: Place, read_file: ReadFile | None) -> dict[str, Any]:
    """The schema: `table` itself, its `schema` key, or the .json file which that key names. Raises ScraperInvalid."""
    schema = table
    if isinstance(table, dict) and "schema" in table:
        if len(table) > 1:
            raise place.fault("has both schema and other keys; keep one of them")
        schema, place = table["schema"], Place(place.where, f"{place.key}.schema")
    if isinstance(schema, str):
        schema, place = _from_file(schema, place, read_file)
    if not isinstance(schema, dict):
        raise place.fault("must be a JSON Schema as a table, or the path of a .json file in quotes")
    check_json(schema, place)
    _check(schema, place)
    return schema


def _check(schema: dict[str, Any], place: Place) -> None:
    try:
        check_schema(schema)
    except SchemaRefused as error:
        raise place.fault(f"not a JSON Schema we take: {error}") from None
    kinds = schema.get("type", "object")
    if place.key.startswith("input") and kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
        raise place.fault('the input is always an object; write type = "object"')


def _from_file(name: str, place: Place, read_file: ReadFile | None) -> tuple[Any, Place]:
    path = PurePosixPath(name[:500])
    if path.suffix != ".json" or path.is_absolute() or ".." in path.parts or "\\" in name or not name.isprintable():
        raise place.fault("must be the path of a .json file inside the scraper's folder")
    if read_file is None:
        raise place.fault("names a file, and there is no folder to read it from; write the schema in place")
    try:
        text = read_file(str(path))
    except OSError as error:
        raise place.fault(f"{path} cannot be read: {error.strerror}") from None
    if len(text) > MAX_BYTES:
        raise place.fault(f"{path} is larger than {MAX_BYTES // 1024} KB")
    return _decode(text, place, path), Place(place.where, f"{place.key} ({path})")


def _decode(text: bytes, place: Place, path: PurePosixPath) -> Any:
    try:
        return json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise place.fault(f"{path} is not JSON in UTF-8: {str(error)[:200]}") from None
