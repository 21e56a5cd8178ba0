"""What tests cost in processor time, children included: `.venv/bin/pytest --costs tests/unit/store`.

The whole suite keeps every core busy, so this is what a test adds to it; seconds tell only how busy the machine was. A
process that outlives its parent, as a daemon does, is not seen. Looking at all processes takes milliseconds a test.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.leaks import descendants

_TICKS = os.sysconf("SC_CLK_TCK")
_SHOWN = 20
_spent: defaultdict[str, float] = defaultdict(float)
"""Seconds by test, in the process that prints them."""
_at = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Begin with what was spent before."""
    item.stash[_at] = _processor_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Tell with each phase what it took; pytest-xdist carries it to the process that prints."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    now = _processor_seconds()
    report.user_properties.append(("processor_seconds", now - item.stash.get(_at, now)))
    item.stash[_at] = now
    return report  # type: ignore[return-value]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Each phase of a test counts to the test; what a module shares, to the first that asks for it."""
    told = [seconds for name, seconds in report.user_properties if name == "processor_seconds"]
    if told and isinstance(told[-1], float):
        _spent[report.nodeid] += told[-1]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The most expensive files and tests."""
    files: defaultdict[str, float] = defaultdict(float)
    for test, seconds in _spent.items():
        files[test.partition("::")[0]] += seconds
    for what, costs in (("files", files), ("tests", _spent)):
        terminalreporter.write_line(f"processor seconds of {what}, {sum(costs.values()):.1f} in all:")
        for name, seconds in sorted(costs.items(), key=lambda cost: -cost[1])[:_SHOWN]:
            terminalreporter.write_line(f"{seconds:8.2f} {name}")


def _processor_seconds() -> float:
    """Of this process and its descendants, those that have ended among them."""
    return sum(map(_ticks, (os.getpid(), *(each.pid for each in descendants(os.getpid()))))) / _TICKS


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0  # it has just ended, and its parent has what it spent
    return sum(map(int, fields[11:15]))
