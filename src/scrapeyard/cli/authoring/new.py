"""`new`: a scraper from a template."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(new)


def new(
    scraper_id: Annotated[str, typer.Argument(metavar="SITE/TASK", help="The scraper's id, e.g. shop/product.")],
    template: Annotated[
        str, typer.Option(help="http: one page, one record; generator: a list over several pages, many records.")
    ] = "http",
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", "--dir", help="Where to write it; default: a folder named after the id.", file_okay=False
        ),
    ] = None,
) -> None:
    """Write a new scraper: a script, its manifest, and a recorded case to test it with."""
    from scrapeyard.authoring.template import create
    from scrapeyard.errors import BadRequest

    where = folder or Path(scraper_id)
    try:
        written = create(where, scraper_id, template)
    except OSError as error:
        raise BadRequest(f"{error.filename or where}: cannot be written: {error.strerror}") from None
    for path in written:
        typer.echo(str(path))
    page = "product/1" if template == "http" else "category/toys"
    typer.echo(_next_steps(where, scraper_id, f"http://127.0.0.1:8800/{page}"), err=True)


def _next_steps(where: Path, scraper_id: str, url: str) -> str:
    root = where.parent.parent if where.parts[-2:] == tuple(scraper_id.split("/")) else where
    return f"""
Next, see its recorded case pass, without a network:
  scrapeyard test {where}
Edit {where / "scraper.py"}, and try it on the practice shop of `scrapeyard demo-site`:
  scrapeyard run {where} url={url} --allow-private
Record what it does there as a case, and serve it:
  scrapeyard record {where} url={url} --allow-private
  scrapeyard up --scrapers {root} --allow-private
  scrapeyard scrape {scraper_id} url={url}"""
