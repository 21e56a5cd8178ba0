"""What a benchmark hands back: tables to read, goals that pass or fail, and every number behind them."""

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from benchmarks.quantiles import median


class Options(Struct, frozen=True, kw_only=True):
    """How much to measure."""

    only: frozenset[str] = frozenset()
    """Parts to run; empty means all."""
    rounds: int = 3
    pace: float = 1.0
    """Every measured duration is multiplied by it."""
    clients: int = 32
    processes: int = 2
    slots: int = 8

    def wants(self, part: str) -> bool:
        """Whether this part was asked for."""
        return not self.only or part in self.only


class Table(Struct, frozen=True, kw_only=True):
    """Rows of words, the first column to the left and the others to the right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


class Goal(Struct, frozen=True, kw_only=True):
    """A bound and what was measured against it. NaN means that it was not measured."""

    name: str
    measured: float
    bound: float
    at_least: bool
    """Whether more is better."""
    unit: str = "x"
    aim: bool = False
    """An aim may be missed without a failure."""

    @property
    def met(self) -> bool | None:
        """None when it was not measured."""
        if math.isnan(self.measured):
            return None
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    @property
    def verdict(self) -> str:
        """In one word."""
        if self.met is None:
            return "not measured"
        if self.met:
            return "pass"
        return "missed (aim)" if self.aim else "fail"

    def row(self) -> tuple[str, str, str, str]:
        """For a table: name, measured, bound, verdict."""
        sign = "≥" if self.at_least else "≤"
        measured = "-" if self.met is None else figure(self.measured, self.unit)
        return self.name, measured, f"{sign} {figure(self.bound, self.unit)}", self.verdict


class Report(Struct, frozen=True, kw_only=True):
    """One benchmark, done."""

    bench: str
    tables: tuple[Table, ...]
    goals: tuple[Goal, ...] = ()
    failures: dict[str, str] = field(default_factory=dict)
    """Parts that could not be measured, and why."""
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def missed(self) -> tuple[str, ...]:
        """Goals that were measured and not met, aims left out."""
        return tuple(goal.name for goal in self.goals if goal.met is False and not goal.aim)


def figure(value: float, unit: str = "") -> str:
    """A number with three significant digits and its unit; a dash when there is none."""
    if math.isnan(value):
        return "-"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    space = "" if unit in ("", "x") else " "
    return f"{value:,.{digits}f}{space}{unit}"


def spread(values: Sequence[float]) -> str:
    """The median, and from where to where the rounds went: a wide spread means a busy machine."""
    if len(values) < 2:
        return figure(median(values))
    return f"{figure(median(values))} (from {figure(min(values))} to {figure(max(values))})"


def ratio(above: float, below: float) -> float:
    """NaN when either was not measured."""
    return math.nan if math.isnan(above) or math.isnan(below) or below == 0 else above / below
