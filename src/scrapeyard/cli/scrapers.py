"""`scrapers`: what a server can run, or what a folder holds."""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from scrapeyard.cli.options import DEFAULT_URL, AsJson, ScrapersFolder, ServerUrl

group = typer.Typer(help="Scrapers: list, show, refresh.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="scrapers")


@group.callback(invoke_without_command=True)
def _bare(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_scrapers(url=os.environ.get("SCRAPEYARD_URL") or DEFAULT_URL)


@group.command("list")
def list_scrapers(scrapers: ScrapersFolder = None, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Every scraper by id; an invalid one says why it cannot run. With --scrapers no server is asked."""
    from scrapeyard.cli.server import Server

    found = asyncio.run(_in_folder(scrapers)) if scrapers else Server(url).get("/api/scrapers")["scrapers"]
    _show(found, as_json)
    if scrapers is not None and not all(each["valid"] for each in found):
        raise typer.Exit(1)


@group.command()
def show(
    scraper_id: Annotated[str, typer.Argument(metavar="ID", help="site/task")], url: ServerUrl = DEFAULT_URL
) -> None:
    """How a scraper is called, as JSON: schemas, limits, hosts it may reach."""
    from scrapeyard.cli.screen import show_json
    from scrapeyard.cli.server import Server

    show_json(Server(url).get(path_of(scraper_id)))


@group.command()
def refresh(url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Make the server and its workers look at their scrapers now, and list them."""
    from scrapeyard.cli.server import Server

    _, document = Server(url).call("POST", "/api/scrapers/refresh")
    _show(document["scrapers"], as_json)


def path_of(scraper_id: str) -> str:
    """Where a server describes a scraper. Raises BadRequest when that is not an id."""
    from scrapeyard.errors import BadRequest
    from scrapeyard.model import SCRAPER_ID

    if SCRAPER_ID.fullmatch(scraper_id) is None:
        raise BadRequest(f"{scraper_id[:100]!r} is not a scraper's id; write site/task, e.g. shop/product")
    return f"/api/scrapers/{scraper_id}"


def _show(found: list[dict[str, Any]], as_json: bool) -> None:
    from scrapeyard.cli.screen import show_json, show_table

    if as_json:
        show_json(found)
        return
    rows = [(each["id"], each["version"], each["problem"] or each["description"] or each["name"]) for each in found]
    show_table(("ID", "VERSION", "ABOUT"), rows, empty="no scrapers")


async def _in_folder(folder: Path) -> list[dict[str, Any]]:
    import tempfile

    from scrapeyard.cli.local import catalogue_of
    from scrapeyard.settings import LogSettings, load
    from scrapeyard.telemetry.events import configure

    configure(LogSettings(level="error"))
    settings = load({"repository": {"scrapers": folder}})
    with tempfile.TemporaryDirectory(prefix="scrapeyard-list-") as cache:
        catalogue = catalogue_of(settings, Path(cache))
        await catalogue.refresh()
        return [_brief(listing) for listing in catalogue.listings()]


def _brief(listing: Any) -> dict[str, Any]:
    scraper = listing.scraper
    return {
        "id": listing.id,
        "version": listing.version,
        "name": scraper.name if scraper else "",
        "description": scraper.description if scraper else "",
        "builtin": scraper.is_builtin if scraper else False,
        "valid": scraper is not None,
        "problem": listing.problem,
    }
