"""`new`: a scraper from a template."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(new)


def new(
    scraper_id: Annotated[str, typer.Argument(metavar="SITE/TASK", help="The scraper's id, e.g. shop/product.")],
    template: Annotated[str, typer.Option(help="http: one page, one result; generator: many records.")] = "http",
    folder: Annotated[
        Path | None, typer.Option(help="Where to write it; default: a folder named after the id.", file_okay=False)
    ] = None,
) -> None:
    """Write a new scraper: a script and its manifest."""
    from scrapeyard.errors import BadRequest
    from scrapeyard.repository.template import create

    where = folder or Path(scraper_id)
    try:
        written = create(where, scraper_id, template)
    except OSError as error:
        raise BadRequest(f"{error.filename or where}: cannot be written: {error.strerror}") from None
    for path in written:
        typer.echo(str(path))
    typer.echo(_next_steps(where, scraper_id), err=True)


def _next_steps(where: Path, scraper_id: str) -> str:
    root = where.parent.parent if where.parts[-2:] == tuple(scraper_id.split("/")) else where
    return f"""
Next, edit {where / "scraper.py"}, and try it with the walls and limits of a server, on the practice shop of
`scrapeyard demo-site`:
  scrapeyard run {where} url=http://127.0.0.1:8800/product/1 --allow-private
Then serve it:
  scrapeyard up --scrapers {root} --allow-private
  scrapeyard scrape {scraper_id} url=http://127.0.0.1:8800/product/1"""
