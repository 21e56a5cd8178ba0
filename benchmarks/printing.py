"""Reports as a terminal, a document and a file show them."""

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.report import Goal, Report, Table

_PACKAGES = ("scrapeyard", "fastapi", "uvicorn", "uvloop", "rq", "celery", "redis", "selectolax", "httpx")
_GOALS = ("goal", "measured", "bound", "verdict")
_COLOURS = {"pass": "green", "fail": "bold red", "missed (aim)": "yellow", "not measured": "dim"}


def machine() -> dict[str, str]:
    """What it was measured on."""
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load before": f"{os.getloadavg()[0]:.1f}",
        **{name: _version(name) for name in _PACKAGES},
    }


def show(report: Report, console: Console) -> None:
    """Print tables, goals and failures."""
    for table in report.tables:
        console.print(_rich(table))
    if report.goals:
        console.print(_rich(_goals_table(report.goals), colour_last=True))
    for part, why in report.failures.items():
        console.print(f"[bold red]not measured:[/] {part}", highlight=False)
        console.print(why, markup=False, highlight=False)


def markdown(reports: Sequence[Report], about: dict[str, str]) -> str:
    """A fragment for the documentation."""
    lines = ["Measured on " + ", ".join(f"{name} {value}" for name, value in about.items()) + ".", ""]
    for report in reports:
        tables = [*report.tables, *([_goals_table(report.goals)] if report.goals else [])]
        for table in tables:
            lines += _markdown_table(table)
    return "\n".join(lines).rstrip() + "\n"


def as_json(reports: Sequence[Report], about: dict[str, str]) -> bytes:
    """Every number, for machines. What was not measured is null."""
    tree: dict[str, Any] = {
        "machine": about,
        "benches": {
            report.bench: {
                "missed": report.missed,
                "goals": [_goal_json(goal) for goal in report.goals],
                "failures": report.failures,
                "numbers": report.numbers,
            }
            for report in reports
        },
    }
    return msgspec.json.format(msgspec.json.encode(tree), indent=2) + b"\n"


def _goals_table(goals: Sequence[Goal]) -> Table:
    return Table(title="Goals", columns=_GOALS, rows=tuple(goal.row() for goal in goals))


def _goal_json(goal: Goal) -> dict[str, Any]:
    # msgspec writes NaN as null.
    return msgspec.structs.asdict(goal) | {"verdict": goal.verdict}


def _rich(table: Table, *, colour_last: bool = False) -> RichTable:
    shown = RichTable(title=table.title, caption=table.note or None, title_justify="left", caption_justify="left")
    for number, column in enumerate(table.columns):
        shown.add_column(column, justify="left" if number == 0 else "right")
    for row in table.rows:
        last = f"[{_COLOURS[row[-1]]}]{row[-1]}[/]" if colour_last else row[-1]
        shown.add_row(*row[:-1], last)
    return shown


def _markdown_table(table: Table) -> list[str]:
    rule = ["---", *["---:"] * (len(table.columns) - 1)]
    lines = [f"**{table.title}**", ""]
    lines += [f"| {' | '.join(row)} |" for row in (table.columns, rule, *table.rows)]
    return [*lines, "", *([table.note, ""] if table.note else [])]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"
