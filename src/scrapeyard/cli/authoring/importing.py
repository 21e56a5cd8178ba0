"""`import`: scrapers made of projects of other frameworks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from scrapeyard.repository.scrapy.project import SpiderProject

_imports = typer.Typer(help="Make scrapers of projects of other frameworks.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    app.add_typer(_imports, name="import")


@_imports.command("scrapy")
def import_scrapy(
    project: Annotated[
        Path, typer.Argument(metavar="PROJECT", help="A folder with scrapy.cfg, or a file with spiders.", exists=True)
    ],
    *,
    to: Annotated[
        Path | None, typer.Option(help="Folder to write the scrapers to; default: scrapers.", file_okay=False)
    ] = None,
    site: Annotated[str, typer.Option(help="First part of the ids; default: the name of the project.")] = "",
    version: Annotated[str, typer.Option(help="Version of the scrapers.")] = "1.0.0",
    force: Annotated[bool, typer.Option("--force", help="Replace scrapers that are already there.")] = False,
) -> None:
    """Write a scraper for each spider of a Scrapy project. Nothing of the project is run."""
    from scrapeyard.errors import BadRequest
    from scrapeyard.repository.scrapy.project import read_project
    from scrapeyard.repository.scrapy.scrapers import write_scrapers
    from scrapeyard.settings.repository import USUAL_SCRAPERS

    found = read_project(project)
    try:
        done = write_scrapers(found, to or USUAL_SCRAPERS, site=site, version=version, replace=force)
    except OSError as error:
        raise BadRequest(f"{error.filename or to}: cannot be written: {error.strerror}") from None
    for folder in done.folders:
        typer.echo(str(folder))
    _tell(found, done.notes)
    typer.echo(f"\nRun one:\n  scrapeyard run {done.folders[0]}", err=True)


def _tell(project: "SpiderProject", notes: tuple[str, ...]) -> None:
    """What becomes of the settings, on stderr."""
    from scrapeyard.repository.scrapy.told import settings_told

    told = settings_told(project)
    honoured = [each.name for each in told if not each.instead]
    if honoured:
        typer.echo(f"honoured: {', '.join(honoured)}", err=True)
    for each in told:
        if each.instead:
            typer.echo(f"replaced: {each.name}: {each.instead}", err=True)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
