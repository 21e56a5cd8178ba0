"""Python values as DynamoDB has them, and back."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

Item = dict[str, Any]
"""A row: `pk`, `sk` and attributes. An attribute that is None is not stored."""
Key = tuple[str, str]
Wire = dict[str, Any]


class Columns(dict[str, Any]):
    """A row in which a column that is not stored is None."""

    def __missing__(self, name: str) -> None:
        return None


_TIMES: Final = ("_at", "_until", "_before", "_after", "_due", "_seconds")
_WHOLE: Final = re.compile(r"-?\d+")


def to_wire(value: Any) -> Wire:
    """One value. Raises TypeError for a type that we do not store: write it as JSON."""
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, str):
        return {"S": str(value)}
    if isinstance(value, bytes):
        return {"B": value}
    if isinstance(value, int | float):
        return {"N": _digits(value)}
    raise TypeError(f"{type(value).__name__} is not stored as it is; write it as JSON")


def _digits(value: float) -> str:
    """As DynamoDB writes it back: the same request sent again has then the same words as the row."""
    if isinstance(value, int) or value.is_integer():
        return str(int(value))
    text = repr(value)
    return format(Decimal(text), "f") if "e" in text else text


def from_wire(name: str, wire: Mapping[str, Any]) -> Any:
    """One value. DynamoDB does not tell 5.0 from 5: times, by their names, are floats; other numbers without a fraction
    are ints."""
    ((kind, value),) = wire.items()
    if kind == "N":
        return float(value) if name.endswith(_TIMES) or name == "at" or not _WHOLE.fullmatch(value) else int(value)
    return value


def to_wires(item: Mapping[str, Any]) -> dict[str, Wire]:
    """The attributes that are not None."""
    return {name: to_wire(value) for name, value in item.items() if value is not None}


def from_wires(wires: Mapping[str, Mapping[str, Any]]) -> Item:
    """A row as it was read."""
    return {name: from_wire(name, wire) for name, wire in wires.items()}


def key_of(item: Mapping[str, Any]) -> Key:
    """Where a row stands."""
    return item["pk"], item["sk"]


def wire_key(key: Key) -> dict[str, Wire]:
    """A key for a request."""
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}


def size_of(item: Mapping[str, Any]) -> int:
    """Bytes of a row as DynamoDB counts them, or a few more."""
    return sum(len(name) + _size(value) for name, value in item.items() if value is not None)


def _size(value: Any) -> int:
    if isinstance(value, bytes):
        return len(value)
    return len(value.encode()) if isinstance(value, str) else 21
