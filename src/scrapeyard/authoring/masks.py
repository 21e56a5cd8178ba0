"""Fields whose values are not compared: `scraped_at`, `items[].id`, `[].seen`, `pages[0].took`.

A name steps into an object, `[]` into every member of a list, `[2]` into one. The value is passed over, not the field:
one that is missing on one side is still a difference.
"""

import re
from typing import Any

from scrapeyard.errors import ScraperInvalid

MASKED = "(ignored)"
MAX_MASKS = 100
_PATH = re.compile(r"(?:[^.\[\]\s]+|\[\d{0,6}\])(?:\.[^.\[\]]+|\[\d{0,6}\])*")
_STEP = re.compile(r"\[(\d*)\]|([^.\[\]]+)")

Step = str | int | None
"""A key, an index, or None for every member of a list."""


def parse_mask(path: str, where: str) -> tuple[Step, ...]:
    """The steps of a path. Raises ScraperInvalid, which begins with `where`."""
    if len(path) > 500 or _PATH.fullmatch(path) is None:
        raise ScraperInvalid(f'{where}: {path[:100]!r} is not a path; write "scraped_at", "items[].id" or "[].id"')
    return tuple(
        name if name else int(index) if index else None
        for index, name in (found.groups() for found in _STEP.finditer(path))
    )


def masked(value: Any, masks: tuple[tuple[Step, ...], ...]) -> Any:
    """The same value with each masked field replaced by a fixed word. The original is left as it is."""
    for steps in masks:
        value = _mask(value, steps)
    return value


def _mask(value: Any, steps: tuple[Step, ...]) -> Any:
    if not steps:
        return MASKED
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        return {**value, step: _mask(value[step], rest)} if isinstance(value, dict) and step in value else value
    if not isinstance(value, list):
        return value
    return [_mask(each, rest) if step is None or at == step else each for at, each in enumerate(value)]
