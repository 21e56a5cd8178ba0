"""How often parents are looked at."""

import math
from itertools import pairwise

import pytest

from scrapeyard.sandbox.handles.watch import tick_after

LOOKS = 10
"""Ticks of a tenth of a second between two looks at a parent."""


@pytest.mark.parametrize("idle", [0.0, 0.05, 0.1, 0.25, 0.5, 0.9, 0.99, 1.0, 60.0])
def test_parents_are_looked_at_once_a_second_however_runs_come(idle: float) -> None:
    """Each tick follows a rest of so many seconds, as where short runs come again and again."""
    tick, seconds, looks = 0, 0.0, list[float]()
    while len(looks) < 20:
        tick = tick_after(tick, idle)
        seconds += idle + 0.1
        if tick % LOOKS == 0:
            looks.append(seconds)
    rests = [later - earlier for earlier, later in pairwise(looks)]
    assert max(rests) <= max(2.0, math.ceil(idle) + 0.2)


def test_a_busy_worker_counts_tick_by_tick() -> None:
    assert [tick_after(tick, 0.0) for tick in range(12)] == list(range(1, 13))
