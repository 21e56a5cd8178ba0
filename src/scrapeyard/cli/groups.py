"""Groups of commands that speak to a server. Imports nothing heavy, so that `--help` is quick."""

import os
from collections.abc import Callable

import typer

from scrapeyard.cli.options import DEFAULT_URL


def add_group(app: typer.Typer, name: str, group: typer.Typer, bare: Callable[[str], None]) -> None:
    """Add a group to the program; called without a command it does `bare` with the server's address."""

    @group.callback(invoke_without_command=True)
    def _bare(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            bare(os.environ.get("SCRAPEYARD_URL") or DEFAULT_URL)

    app.add_typer(group, name=name)
