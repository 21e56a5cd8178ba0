"""What the walls cost: `scrapeyard up` with every wall the kernel has, and with none, by turns."""

import math
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from benchmarks.load import Load, Plan, drive
from benchmarks.quantiles import median, quantile
from benchmarks.report import Goal, Options, Table, figure
from benchmarks.systems import Ground, embedded

_MODES = ("auto", "off")
_SECONDS = 1.5
_COLD = {"SCRAPEYARD_WORKER__AHEAD": "0"}
"""No child waits ahead of need, so that each call pays for its fork and its walls."""


class Cost(Struct, frozen=True, kw_only=True):
    """Medians over the rounds, in milliseconds, by sandbox mode."""

    cold_start: dict[str, float]
    """From asking for a child to a child holding the run, none forked ahead."""
    cold_call: dict[str, float]
    """The whole call, none forked ahead."""
    warm_call: dict[str, float]
    """The whole call, as it ships."""

    def table(self) -> Table:
        """One row for each way to look at it."""
        named = (
            ("start of a cold child", self.cold_start),
            ("whole call, cold child", self.cold_call),
            ("whole call, child forked ahead", self.warm_call),
        )
        rows = tuple((name, figure(by["auto"]), figure(by["off"]), figure(_added(by))) for name, by in named)
        return Table(title="The walls, p50 ms", columns=("one client", "walls", "no walls", "cost"), rows=rows)

    def goals(self) -> tuple[Goal, ...]:
        """At most two milliseconds, in the child and in the call."""
        named = (("start of a cold child", self.cold_start), ("whole call", self.warm_call))
        return tuple(
            Goal(name=f"walls: added to the {name}", measured=_added(by), bound=2, at_least=False, unit="ms")
            for name, by in named
        )


def measure(ground: Ground, options: Options, say: Callable[[str], None]) -> Cost:
    """Alternate modes for every round. Raises StartFailed or LoadFailed."""
    cold: dict[str, list[Load]] = {mode: [] for mode in _MODES}
    warm: dict[str, list[Load]] = {mode: [] for mode in _MODES}
    for _ in range(min(options.rounds, 2)):
        for found, extra in ((cold, _COLD), (warm, {})):
            # Both modes of one kind right after each other: the difference is small beside a busy machine's noise.
            for mode in _MODES:
                say(f"walls {mode}, {'cold child' if extra else 'child forked ahead'}")
                found[mode].append(_calls(ground, options, mode, extra))
    return Cost(
        cold_start={mode: median(_start_p50(load) for load in cold[mode]) for mode in _MODES},
        cold_call={mode: median(load.p50_ms for load in cold[mode]) for mode in _MODES},
        warm_call={mode: median(load.p50_ms for load in warm[mode]) for mode in _MODES},
    )


def _calls(ground: Ground, options: Options, mode: str, extra: dict[str, str]) -> Load:
    with embedded(ground, {"SCRAPEYARD_SANDBOX__MODE": mode, **extra}) as running:
        return drive(Plan(target=running.target, clients=1, seconds=_SECONDS * options.pace, keep_timing=True))


def _start_p50(load: Load) -> float:
    return quantile(sorted(_child_start(timing) for timing in load.timing), 0.5)


def _child_start(timing: dict[str, Any]) -> float:
    return float(timing.get("child_start_ms", math.nan))


def _added(by: dict[str, float]) -> float:
    return by["auto"] - by["off"]
