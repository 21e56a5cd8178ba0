"""Quantiles of what was measured."""

import math
from collections.abc import Iterable, Sequence


def quantile(ordered: Sequence[float], part: float) -> float:
    """The nearest-rank quantile of sorted values; NaN when there are none."""
    if not ordered:
        return math.nan
    return ordered[min(len(ordered) - 1, max(0, math.ceil(part * len(ordered)) - 1))]


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the two in the middle; NaN when there are none."""
    ordered = sorted(value for value in values if not math.isnan(value))
    if not ordered:
        return math.nan
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
