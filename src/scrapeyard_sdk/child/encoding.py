"""A script's result as strict JSON; an error names the place in the value as a JSON pointer.

Beyond what JSON has: date, time and datetime in ISO 8601; Decimal as a number, or as text if a float cannot hold it;
UUID as text; an Enum as its value; sets as sorted lists; dataclasses, attrs, pydantic models and msgspec Structs
as objects; scalars and arrays of numpy.
"""

import json
import math
from collections.abc import Iterator
from typing import Any

from scrapeyard_sdk.child.explain import ResultInvalid

_MAX_LOOKS = 1_000_000
"""Values that are searched for the one that cannot be encoded."""
_MAX_POINTER = 500
_MAX_DEPTH = 200
_UNKNOWN = object()
_NOT_A_NUMBER = 'is no number in JSON; use None, or write nan = "null" in the manifest'
_CONVERT = "convert it to text, a number, a list or a dict"
_BYTES = "bytes; decode them to text, or save them with ctx.artifact"


def to_json(value: Any, place: str = "", *, nan: str = "error") -> bytes:
    """Strict JSON as UTF-8. Raises ResultInvalid naming the value that cannot be encoded; `place` is the pointer to
    `value` itself. With `nan="null"`, NaN and the infinities become null."""
    try:
        return _encode(value, nan)
    except RecursionError:
        raise ResultInvalid(f"the result is nested too deeply, or refers to itself{_at(place)}") from None
    except (TypeError, ValueError) as error:
        pointer, why = next(_faults(value, place), (place, f"it is not JSON: {error}"))
        raise ResultInvalid(f"the result cannot be JSON{_at(pointer)}: {why}") from None


def _encode(value: Any, nan: str) -> bytes:
    try:
        return _encode_value(value).encode("utf-8")
    except ValueError:
        if nan != "null":
            raise
    return _encode_value(_without_nan(value)).encode("utf-8")


def _default(value: Any) -> Any:
    """A value that JSON has, for one that it has not. Raises TypeError for any other, and ValueError for NaN."""
    plain = plain_value(value)
    if plain is _UNKNOWN:
        raise TypeError(type(value).__name__)
    return plain


_encode_value = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default).encode


def plain_value(value: Any) -> Any:
    """The value in terms of JSON, one level deep; `_UNKNOWN` for a type without a rule."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=_order)
    named = _fields(value)
    if named is not None:
        return named
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return _of_numpy(value)
    return _of_standard_type(value)


def _order(value: Any) -> tuple[str, Any]:
    """Numbers by size, text by letters; the members of a set are always written in the same order."""
    if isinstance(value, (int, float)):
        return "", value
    return type(value).__name__, value if isinstance(value, str) else repr(value)


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of an object by name; None if it is of no kind that has them."""
    kind = type(value)
    if hasattr(kind, "model_dump") and hasattr(kind, "model_fields"):
        return dict(value.model_dump())
    if hasattr(kind, "__struct_encode_fields__"):
        names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
        return {written: getattr(value, name) for name, written in names}
    if hasattr(kind, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in kind.__dataclass_fields__ if hasattr(value, name)}
    if hasattr(kind, "__attrs_attrs__"):
        return {each.name: getattr(value, each.name) for each in kind.__attrs_attrs__}
    return None


def _of_numpy(value: Any) -> Any:
    if value.dtype.kind not in "mM":
        return value.tolist()
    if value.dtype.kind == "m" or getattr(value, "ndim", 0):
        return _UNKNOWN
    return math.nan if _is_nan(value) else str(value)


def _of_standard_type(value: Any) -> Any:
    from datetime import date, time
    from decimal import Decimal
    from enum import Enum
    from uuid import UUID

    if isinstance(value, (date, time)):
        return value.isoformat() if not _is_nan(value) else math.nan
    if isinstance(value, Decimal):
        return _of_decimal(value)
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, UUID) else _UNKNOWN


def _of_decimal(value: Any) -> Any:
    """A number; text if it has more digits than a float holds."""
    if not value.is_finite():
        return math.nan
    if value == value.to_integral_value() and abs(value) < 2**53:
        return int(value)
    near = float(value)
    return near if type(value)(repr(near)) == value else str(value)


def _is_nan(value: Any) -> bool:
    return bool(value != value)  # noqa: PLR0124 - what is not a number, or not a time, alone differs from itself


def _without_nan(value: Any, depth: int = 0) -> Any:
    """A copy in which NaN and the infinities are None."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(inner, depth + 1) for inner in value]
    if value is None or isinstance(value, (str, int)):
        return value
    plain = plain_value(value)
    return value if plain is _UNKNOWN else _without_nan(plain, depth + 1)


def _at(pointer: str) -> str:
    return f" at {pointer[:_MAX_POINTER]}" if pointer else ""


def _faults(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Pointers to what cannot be encoded, and why."""
    waiting = [(place, value)]
    seen: set[int] = set()
    for _ in range(_MAX_LOOKS):
        if not waiting:
            return
        pointer, each = waiting.pop()
        if id(each) in seen or len(pointer) > _MAX_POINTER:
            continue
        if isinstance(each, (dict, list, tuple)):
            seen.add(id(each))
        if isinstance(each, dict):
            yield from ((pointer, f"the key {key!r:.100} is not text") for key in each if not _is_key(key))
            waiting.extend((f"{pointer}/{_step(key)}", inner) for key, inner in reversed(each.items()))
        elif isinstance(each, (list, tuple)):
            waiting.extend((f"{pointer}/{n}", each[n]) for n in range(len(each) - 1, -1, -1))
        elif why := _fault(each):
            yield pointer, why
        elif (plain := _plain(each)) is not _UNKNOWN:
            waiting.append((pointer, plain))


def _plain(value: Any) -> Any:
    """As `plain_value`, and `_UNKNOWN` for what JSON has itself."""
    return _UNKNOWN if value is None or isinstance(value, (str, int, float)) else plain_value(value)


def _is_key(key: Any) -> bool:
    return key is None or isinstance(key, (str, int, float))


def _step(key: Any) -> str:
    return str(key).encode("utf-8", "replace").decode().replace("~", "~0").replace("/", "~1")


def _fault(value: Any) -> str:
    if value is None or isinstance(value, (bool, int)):
        return ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{value} {_NOT_A_NUMBER}"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _BYTES
    if not isinstance(value, str):
        known = plain_value(value) is not _UNKNOWN
        return "" if known else f"a value of type {type(value).__name__}; {_CONVERT}"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return "the result holds text with lone surrogates; decode it with errors='replace'"
    return ""
