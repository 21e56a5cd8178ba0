"""`plan`: what a load needs, counted by `capacity`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scrapeyard.cli.common.options import AsJson

if TYPE_CHECKING:
    from scrapeyard.cli.operations.capacity import PlannedFigure


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)


def plan(
    pages: Annotated[str, typer.Option(help="How many: 50e6/day, 2e6/h, 600/s.", metavar="NUMBER/TIME")],
    seconds: Annotated[float, typer.Option(help="Seconds that a page takes, most of it waiting.", min=0.001, max=3600)],
    *,
    browser: Annotated[str, typer.Option(help="Share of pages that need a browser: 5% or 0.05.")] = "0%",
    calls: Annotated[bool, typer.Option("--calls", help="Single calls, each with a child, instead of jobs.")] = False,
    peak: Annotated[float, typer.Option(help="The busiest hour, as a multiple of the average.", min=1, max=100)] = 1.5,
    page_kb: Annotated[float, typer.Option(help="Size of a page.", min=0, max=1e6)] = 100.0,
    input_kb: Annotated[float, typer.Option(help="Size of an input.", min=0, max=1e4)] = 0.2,
    result_kb: Annotated[float, typer.Option(help="Size of a result in the database.", min=0, max=64)] = 2.0,
    keep_kb: Annotated[float, typer.Option(help="Bytes of a page kept in the blob store.", min=0, max=1e6)] = 0.0,
    days: Annotated[float | None, typer.Option(help="Days kept; as the settings.", min=0.01, max=3650)] = None,
    cores: Annotated[int, typer.Option(help="Cores of a worker's machine.", min=1, max=512)] = 4,
    memory_gb: Annotated[float, typer.Option(help="Memory of a worker's machine.", min=1, max=16_384)] = 8.0,
    prices: Annotated[
        Path | None, typer.Option(help="TOML file with what you pay; without it, no money.", dir_okay=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Workers, slots, memory, database, storage for a load, and money by your prices. docs/tuning.md tells how."""
    from scrapeyard.cli.common.output import show_json, show_table
    from scrapeyard.cli.operations.capacity import (
        CapacityPlan,
        Workload,
        kept_days,
        read_prices,
        read_rate,
        read_share,
    )

    given = Workload(
        kind="calls" if calls else "jobs",
        per_second=read_rate(pages),
        peak=peak,
        seconds=seconds,
        browser=read_share(browser),
        page_kb=page_kb,
        input_kb=input_kb,
        result_kb=result_kb,
        keep_kb=keep_kb,
        days=days if days is not None else kept_days(calls),
        cores=cores,
        memory_gb=memory_gb,
    )
    found = CapacityPlan(given, read_prices(prices) if prices else None)
    if as_json:
        show_json(found.document())
        return
    show_table(("WHAT", "NEEDED", "HOW"), [_row(each) for each in found.figures()], empty="nothing is needed")
    for note in found.notes():
        typer.echo(f"note: {note}", err=True)


def _row(line: "PlannedFigure") -> tuple[str, str, str]:
    value = f"{line.value:,.0f}" if line.value >= 100 or not line.unit else f"{line.value:,.2f}"
    return line.name.replace("_", " "), f"{value} {line.unit}".strip(), line.how
