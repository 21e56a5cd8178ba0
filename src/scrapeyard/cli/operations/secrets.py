"""`secrets`: what is sealed in the database, and the master key."""

from pathlib import Path
from typing import Annotated

import typer

from scrapeyard.cli.common.options import Commands

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where embedded backends keep their files.")]
group = Commands(help="The master key: rotate-master.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="secrets")


@group.command("rotate-master")
def rotate_master(data_dir: DataDir = None) -> None:
    """Wrap the data keys with a new master key. Runs where the server's settings are; the server goes on."""
    import asyncio

    from scrapeyard.settings import load
    from scrapeyard.wiring.rotation import rotate

    typer.echo(asyncio.run(rotate(load({"data_dir": data_dir}))))
