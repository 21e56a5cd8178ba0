"""`workers`: who takes work on a server."""

from typing import Any

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, ServerUrl


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(workers)


def workers(url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Workers whose heartbeat is fresh, with their load and lanes."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list

    found = Server(url).get("/api/workers")["workers"]
    headers = ("ID", "HOST", "BUSY", "LANES", "LOAD", "MEMORY", "DONE", "SEEN")
    show_list(found, as_json, headers, _row, empty="no workers")


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    return (
        each["id"],
        f"{each['host']}:{each['pid']}",
        "draining" if each["draining"] else f"{each['busy']}/{each['slots']}",
        ",".join(each["lanes"]),
        f"{each['load']:.2f}",
        f"{each['memory_mb']:.0f} MB",
        str(each["runs_done"]),
        f"{each['age_seconds']:.0f} s",
    )
