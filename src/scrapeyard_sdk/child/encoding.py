"""A script's result as strict JSON; an error names the place in the value as a JSON pointer."""

import json
import math
from collections.abc import Iterator
from typing import Any

from scrapeyard_sdk.child.explain import ResultInvalid

_encode_value = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_MAX_LOOKS = 1_000_000
"""Values that are searched for the one that cannot be encoded."""
_MAX_POINTER = 500


def to_json(value: Any, place: str = "") -> bytes:
    """Strict JSON as UTF-8. Raises ResultInvalid naming the value that cannot be encoded; `place` is the pointer to
    `value` itself."""
    try:
        return _encode_value(value).encode("utf-8")
    except RecursionError:
        raise ResultInvalid(f"the result is nested too deeply, or refers to itself{_at(place)}") from None
    except (TypeError, ValueError) as error:
        pointer, why = next(_faults(value, place), (place, f"it is not JSON: {error}"))
        raise ResultInvalid(f"the result cannot be JSON{_at(pointer)}: {why}") from None


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


def _is_key(key: Any) -> bool:
    return key is None or isinstance(key, (str, int, float))


def _step(key: Any) -> str:
    return str(key).encode("utf-8", "replace").decode().replace("~", "~0").replace("/", "~1")


def _fault(value: Any) -> str:
    if value is None or isinstance(value, (bool, int)):
        return ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{value} is no number in JSON; use None"
    if not isinstance(value, str):
        return f"a value of type {type(value).__name__}; convert it to text, a number, a list or a dict"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return "the result holds text with lone surrogates; decode it with errors='replace'"
    return ""
