"""What is wanted of a page: fields with types, from a line of words or a JSON schema; and texts read as their types."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

import jsonschema_rs
import msgspec
from msgspec import Struct

from scrapeyard.builtin.extracting import KINDS, MAX_DESCRIPTION, MAX_FIELDS, Kind
from scrapeyard.errors import BadRequest
from scrapeyard_sdk.extract import parse_date, parse_number, parse_price
from scrapeyard_sdk.extract.patterns.tree import fold

MAX_SCHEMA = 64 * 1024
"""Bytes of a JSON schema."""
_MAX_DEPTH = 4
NAME = r"[^\W\d]\w{0,63}(?:\.[^\W\d]\w{0,63}){0,3}"
"""Of a field; dots lead into objects."""
_FIELD = re.compile(rf"\s*({NAME})(\?)?\s*(?::\s*([a-z]+)(\[\])?)?\s*(?:\(([^()]*)\))?\s*")
_ALIASES = {"string": "text", "str": "text", "float": "number", "price": "number", "int": "integer", "boolean": "bool"}
_YES = re.compile(
    r"\b(?:true|yes|y|ja|oui|s[ií]|in ?stock|available|on sale|ships|add to (?:cart|basket|bag)|auf lager|en stock|"
    r"disponible|lieferbar|open|instock)\b",
    re.IGNORECASE,
)
_NO = re.compile(
    r"\b(?:false|no|n|nein|non|not|un(?:available)|out ?of ?stock|sold out|ausverkauft|agotado|[ée]puis[ée]|"
    r"discontinued|closed|nicht|outofstock)\b",
    re.IGNORECASE,
)


class FieldSpec(Struct, frozen=True, kw_only=True):
    """One field."""

    name: str
    kind: Kind = "text"
    many: bool = False
    required: bool = True
    """Whether the ladder goes on until it is found."""
    description: str = ""


class WantedFields(Struct, frozen=True, kw_only=True):
    """All that is wanted of a page."""

    fields: tuple[FieldSpec, ...]
    schema: dict[str, Any] | None = None
    """JSON schema that the data must fit; None: any field may be null."""

    @property
    def key(self) -> str:
        """The same for the same fields, whatever their order; patterns are kept under it."""
        said = sorted((each.name, each.kind, each.many, each.description) for each in self.fields)
        return hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:16]

    def data(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values as an object: dotted names lead into objects. Without a schema, what is missing is null."""
        data: dict[str, Any] = {}
        for field in self.fields:
            if field.name not in values and self.schema is not None:
                continue
            *path, last = field.name.split(".")
            place = data
            for step in path:
                place = place.setdefault(step, {})
            place[last] = values.get(field.name)
        return data

    def faults(self, data: dict[str, Any]) -> list[str]:
        """Where the data do not fit the schema."""
        if self.schema is None:
            return []
        validator = jsonschema_rs.validator_for(self.schema)
        return [f"{'.'.join(map(str, each.instance_path)) or 'data'}: {each.message}"[:300] for each in
                validator.iter_errors(data)][:20]  # fmt: skip


def wanted_of(given: Mapping[str, Any]) -> WantedFields:
    """From `fields` (a line, or a table) or `schema`. Raises BadRequest."""
    if "schema" in given:
        return _of_schema(given["schema"])
    fields = given.get("fields") or ""
    specs = list(_of_line(fields) if isinstance(fields, str) else _of_table(fields))
    if not 0 < len(specs) <= MAX_FIELDS or len({each.name for each in specs}) < len(specs):
        raise BadRequest(f"fields: name 1 to {MAX_FIELDS} fields, each once, as in `title, price: number`")
    return WantedFields(fields=tuple(specs))


def _of_line(line: str) -> Iterator[FieldSpec]:
    for part in line.split(",") if line.strip() else ():
        match = _FIELD.fullmatch(part)
        if match is None:
            raise BadRequest(f"fields: {part.strip()[:100]!r} is not a field; write `name`, `name: type` or `name?`")
        name, optional, kind, many, description = match.groups()
        yield _spec(name, kind or "text", many=bool(many), required=not optional, description=description or "")


def _of_table(table: Mapping[str, Any]) -> Iterator[FieldSpec]:
    for name, rule in table.items():
        if re.fullmatch(NAME, name) is None:
            raise BadRequest(f"fields: {name[:100]!r} is not a name; use letters, digits and underscores")
        said = {"type": rule} if isinstance(rule, str) else rule
        kind = str(said.get("type", "text"))
        many = kind.endswith("[]")
        yield _spec(
            name,
            kind.removesuffix("[]"),
            many=many,
            required=bool(said.get("required", True)),
            description=str(said.get("description", "")),
        )


def _spec(name: str, kind: str, *, many: bool, required: bool, description: str) -> FieldSpec:
    kind = _ALIASES.get(kind, kind)
    if kind not in KINDS:
        raise BadRequest(f"fields: {name}: no type {kind[:40]!r}; there are {', '.join(KINDS)}, each also with []")
    return FieldSpec(
        name=name,
        kind=kind,  # type: ignore[arg-type]  # it is one of them
        many=many,
        required=required,
        description=description.strip()[:MAX_DESCRIPTION],
    )


def _of_schema(schema: Any) -> WantedFields:
    if not isinstance(schema, dict) or len(msgspec.json.encode(schema)) > MAX_SCHEMA:
        raise BadRequest(f"schema: give a JSON schema of an object, of at most {MAX_SCHEMA // 1024} KB")
    if b'"$ref"' in msgspec.json.encode(schema):
        raise BadRequest("schema: $ref is not supported here; write the properties out")
    try:
        jsonschema_rs.validator_for(schema)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise BadRequest(f"schema: {str(error)[:300]}") from None
    specs = tuple(_properties(schema, "", _MAX_DEPTH, required=True))
    if not 0 < len(specs) <= MAX_FIELDS:
        raise BadRequest(f"schema: give an object with 1 to {MAX_FIELDS} properties, those of objects in it included")
    return WantedFields(fields=specs, schema=schema)


def _properties(schema: Mapping[str, Any], path: str, depth: int, *, required: bool) -> Iterator[FieldSpec]:
    needed = schema.get("required") or ()
    for name, each in (schema.get("properties") or {}).items():
        if re.fullmatch(NAME, name) is None or "." in name or not isinstance(each, dict):
            raise BadRequest(f"schema: {name[:100]!r} is not a name; use letters, digits and underscores")
        is_needed = required and name in needed
        kinds = _types(each)
        if "object" in kinds and depth > 1:
            yield from _properties(each, f"{path}{name}.", depth - 1, required=is_needed)
            continue
        many = "array" in kinds
        inner = each.get("items") if many else each
        yield _spec(
            f"{path}{name}",
            _kind(inner if isinstance(inner, dict) else {}, f"{path}{name}"),
            many=many,
            required=is_needed,
            description=str(each.get("description") or ""),
        )


def _types(schema: Mapping[str, Any]) -> set[str]:
    said = schema.get("type", "object" if "properties" in schema else "string")
    return set(said if isinstance(said, list) else [said])


def _kind(schema: Mapping[str, Any], name: str) -> str:
    kinds = _types(schema)
    if kinds & {"object", "array"}:
        raise BadRequest(f"schema: {name}: lists of objects are not read here; `builtin/list` reads repeated records")
    form = {"uri": "url", "url": "url", "date": "date", "date-time": "date"}.get(str(schema.get("format")))
    for kind in ("integer", "number", "boolean"):
        if kind in kinds:
            return kind
    return form or "string"


def read_text(text: str, kind: Kind, base: str = "") -> Any:
    """The value of that kind in a text of a page; None if there is none."""
    text = fold(text)
    match kind:
        case "number" | "integer":
            return _number(text, kind)
        case "bool":
            return _truth(text)
        case "url":
            return _link(text, base)
        case "date":
            day = parse_date(text)
            return day.isoformat() if day is not None else None
    return text or None


def _number(text: str, kind: str) -> int | float | None:
    if len(text) > 200:
        return None
    price = parse_price(text)
    number = price.amount if price.amount is not None and price.currency else parse_number(text)
    if number is None:
        return None
    return int(number) if number == number.to_integral_value() else (float(number) if kind == "number" else None)


def _truth(text: str) -> bool | None:
    if len(text) > 200:
        return None
    if _NO.search(text):
        return False
    return True if _YES.search(text) else None


def _link(text: str, base: str) -> str | None:
    try:
        link = urljoin(base, text)
    except ValueError:
        return None
    return link if link.startswith(("http://", "https://")) and " " not in link else None


def same(one: Any, other: Any) -> bool:
    """Whether two values mean the same: white space and case of texts do not count, nor the form of numbers."""
    if isinstance(one, list) or isinstance(other, list):
        return (
            isinstance(one, list)
            and isinstance(other, list)
            and len(one) == len(other)
            and all(same(x, y) for x, y in zip(one, other, strict=True))
        )
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-9 * max(1.0, abs(one))
    return fold(str(one)).casefold() == fold(str(other)).casefold()
