"""`secrets`: secrets of scrapers on a server, and the master key that they are encrypted under."""

import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, Commands, ServerUrl, add_group

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Folder for the files of the embedded backends.")]
Scrapers = Annotated[str, typer.Argument(metavar="SCRAPER", help="site/task, or site/* for all scrapers of a site.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The secret, as the manifest names it.")]
group = Commands(help="Secrets of scrapers: set, list, remove; rotate-master.")


def register(app: typer.Typer) -> None:
    """Add the group."""
    add_group(app, "secrets", group, lambda url: show(url=url))


@group.command("list")
def show(url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Names of secrets and who gets them; never values."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json, show_table

    document = Server(url).get("/api/secrets")
    if as_json:
        show_json(document)
        return
    rows = [(each["scrapers"], each["name"], each["changed_at"]) for each in document["secrets"]]
    show_table(("SCRAPERS", "NAME", "CHANGED"), rows, empty="no secrets")


@group.command("set")
def set_secret(scrapers: Scrapers, name: Name, url: ServerUrl = DEFAULT_URL) -> None:
    """Grant a secret to a scraper. The value is asked for, or read from stdin; it is never an argument, which other
    users of the machine could see."""
    from scrapeyard.cli.common.client import Server

    value = typer.prompt("Value", hide_input=True) if sys.stdin.isatty() else sys.stdin.read().removesuffix("\n")
    Server(url).call("PUT", _path(scrapers, name), body={"value": value})
    typer.echo(f"{name} is granted to {scrapers}")


@group.command("remove")
def remove(scrapers: Scrapers, name: Name, url: ServerUrl = DEFAULT_URL) -> None:
    """Remove a secret."""
    from scrapeyard.cli.common.client import Server

    Server(url).call("DELETE", _path(scrapers, name))
    typer.echo(f"{name} is removed from {scrapers}")


@group.command("rotate-master")
def rotate_master(data_dir: DataDir = None) -> None:
    """Wrap the data keys with a new master key. Runs where the server's settings are; the server goes on."""
    import asyncio

    from scrapeyard.settings import load
    from scrapeyard.wiring.local_commands import rotate

    typer.echo(asyncio.run(rotate(load({"data_dir": data_dir}))))


def _path(scrapers: str, name: str) -> str:
    from scrapeyard.errors import BadRequest

    site, slash, task = scrapers.partition("/")
    if not slash or "/" in task:
        raise BadRequest(f"{scrapers[:100]} is no scraper; write site/task, or site/* for all scrapers of a site")
    return f"/api/secrets/{quote(site, safe='')}/{quote(task, safe='*')}/{quote(name, safe='')}"
