"""Paths into data: `offers[0].price`, `offers.0.price`, `items[-1]`, `items[*].name`, `["a.b"].c`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_ABSENT = object()
"""There is nothing at a path."""
_STEP = re.compile(r"""\[(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(-?\d+|\*))\]|\.?([^.\[\]]+)""")


def look(value: Any, path: str, default: Any = None) -> Any:
    """What stands at a path; `default` if there is nothing. A `*` gives a list of what is there in each member.

    Raises ValueError for a path that cannot be read.
    """
    if isinstance(value, Mapping) and path in value:
        return value[path]
    found = _walk(value, list(_steps(path)))
    return default if found is _ABSENT else found


def _steps(path: str) -> Iterator[str]:
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise ValueError(f"{path[:100]!r} is not a path; write one like offers[0].price")
        at = step.end()
        yield next(part for part in step.groups() if part is not None)


def _walk(value: Any, steps: list[str]) -> Any:
    for number, step in enumerate(steps):
        if step == "*" and isinstance(value, (list, tuple, Mapping)):
            members = value.values() if isinstance(value, Mapping) else value
            found = (_walk(member, steps[number + 1 :]) for member in members)
            return [each for each in found if each is not _ABSENT]
        value = _step(value, step)
        if value is _ABSENT:
            return _ABSENT
    return value


def _step(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step, _ABSENT)
    if isinstance(value, (list, tuple)) and re.fullmatch(r"-?\d{1,9}", step) and -len(value) <= int(step) < len(value):
        return value[int(step)]
    return _ABSENT
