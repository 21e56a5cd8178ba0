"""Two JSON values, and where they differ; masks for fields whose values are not compared."""

import difflib
import json
import re
from typing import Any

from scrapeyard.errors import ScraperInvalid

CONTEXT = 3
MAX_COMPARED = 2000
"""Lines on each side that are aligned, from the first difference on; of the rest only the number is reported."""
MAX_SHOWN = 200


def difference(expected: Any, real: Any) -> list[str]:
    """A unified diff of both as indented JSON with sorted keys; empty when they are equal.

    1, 1.0 and true are different. Long diffs are cut, and the last line says so.
    """
    before, after = _lines(expected), _lines(real)
    if before == after:
        return []
    start = _common(before, after)
    lead = max(0, start - CONTEXT)
    old, new = before[lead : lead + MAX_COMPARED], after[lead : lead + MAX_COMPARED]
    lines = ["--- expected.json", "+++ this run", *_hunks(old, new, lead)]
    left = len(lines) - MAX_SHOWN
    beyond = max(len(before), len(after)) - lead - MAX_COMPARED
    if left > 0 or beyond > 0:
        lines = [*lines[:MAX_SHOWN], f"… and {max(left, 0)} more lines" + (f", {beyond} not compared" * (beyond > 0))]
    return lines


def _lines(value: Any) -> list[str]:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).split("\n")


def _common(one: list[str], other: list[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _hunks(old: list[str], new: list[str], offset: int) -> list[str]:
    """difflib's lines without its file names; line numbers count from the start of the whole text."""
    lines = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        lines.append(
            f"@@ -{first[1] + offset + 1},{last[2] - first[1]} +{first[3] + offset + 1},{last[4] - first[3]} @@"
        )
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i1:i2]]
                continue
            lines += [f"-{line}" for line in old[i1:i2]]
            lines += [f"+{line}" for line in new[j1:j2]]
    return lines


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
