"""`cache`: pages that a server keeps; `forget`: everything that it keeps about a URL, a site or a client."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, Commands, ServerUrl, add_group

BATCH = 1000
MAX_URLS_FILE = 64 * 1024 * 1024
group = Commands(help="Cached pages: stats, invalidate, warm.")


def register(app: typer.Typer) -> None:
    """Add the group and the command."""
    add_group(app, "cache", group, lambda url: stats(url=url))
    app.command()(forget)


@group.command()
def stats(url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show the cache's settings, size and hits."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json, show_table

    document = Server(url).get("/api/cache")
    if as_json:
        show_json(document)
        return
    found = [document["shared"]] if document["shared"] else []
    headers = ("SHARED", "PAGES", "SIZE", "LIMIT", "HITS", "MISSES", "EVICTED")
    show_table(headers, [_row(each) for each in found], empty="no shared tier")
    if document["mode"] == "off" or not document["max_age_seconds"]:
        typer.echo("cached pages serve only calls and scrapers whose policy sets max_age_seconds", err=True)


@group.command()
def invalidate(
    what: Annotated[str | None, typer.Argument(metavar="[URL|SITE]", help="URL of a page, or name of a site.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All pages.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Remove pages from the cache, in every worker."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.errors import BadRequest

    if (what is None) != everything:
        raise BadRequest("give a URL or a site, or --all")
    body: dict[str, Any] = {"all": True} if what is None else {"url" if "://" in what else "site": what}
    _, document = Server(url).call("POST", "/api/cache/invalidate", body=body)
    if as_json:
        show_json(document)
    else:
        pages = "1 page" if document["dropped"] == 1 else f"{document['dropped']} pages"
        typer.echo(f"{pages} dropped")


@group.command()
def warm(
    urls: Annotated[list[str] | None, typer.Argument(metavar="[URL]...", help="Pages to fetch.")] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="File with one URL per line.", dir_okay=False, exists=True)
    ] = None,
    *,
    scraper: Annotated[str | None, typer.Option(help="Scraper to run for each URL; its input must have `url`.")] = None,
    max_age: Annotated[float | None, typer.Option(help="Skip pages cached less than this many seconds ago.")] = None,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Fetch pages into the cache in the background. Prints the id of each run."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list
    from scrapeyard.errors import BadRequest

    wanted = [*(urls or ()), *(_read(source) if source else ())]
    if not wanted:
        raise BadRequest("give URLs, or --from a file")
    more = {name: value for name, value in (("scraper", scraper), ("max_age_seconds", max_age)) if value is not None}
    runs: list[dict[str, Any]] = []
    for batch in _batches(wanted):
        _, document = Server(url).call("POST", "/api/cache/warm", body={"urls": batch, **more})
        runs += document["runs"]
    show_list(runs, as_json, ("ID", "STATUS"), lambda each: (each["id"], each["status"]), empty="no runs")


def forget(
    page: Annotated[str | None, typer.Option("--url", metavar="URL", help="Everything about this page.")] = None,
    site: Annotated[
        str | None, typer.Option(metavar="HOST", help="Everything about this host, e.g. shop.example.")
    ] = None,
    client: Annotated[str | None, typer.Option(metavar="NAME", help="Everything of this client.")] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed, without removing it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Remove everything about one URL, one site or one client. It cannot be undone."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json, show_table
    from scrapeyard.errors import BadRequest

    given = {name: value for name, value in (("url", page), ("site", site), ("client", client)) if value is not None}
    if len(given) != 1:
        raise BadRequest("give one of --url, --site and --client")
    if not (dry_run or yes):
        typer.confirm(f"Remove everything about {next(iter(given.values()))}?", abort=True)
    _, document = Server(url).call("POST", "/api/forget", body={**given, "dry_run": dry_run})
    if as_json:
        show_json(document)
        return
    rows = [(kind, str(count)) for kind, count in document["counts"].items() if count]
    show_table(("KIND", "WOULD GO" if dry_run else "GONE"), rows, empty="nothing about it")
    if document["restoring"] and not dry_run:
        typer.echo(f"{len(document['restoring'])} archived jobs are being restored: run it again in a minute", err=True)


def _read(source: Path) -> list[str]:
    from scrapeyard.errors import BadRequest

    if source.stat().st_size > MAX_URLS_FILE:
        raise BadRequest(f"{source} is larger than {MAX_URLS_FILE // 2**20} MB; cut it up")
    try:
        lines = source.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise BadRequest(f"{source} is not UTF-8 text") from None
    return [line.strip() for line in lines if line.strip()]


def _batches(urls: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(urls), BATCH):
        yield urls[start : start + BATCH]


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    size, limit = (f"{each[name] / 2**20:.1f} MB" for name in ("bytes", "limit_bytes"))
    counts = (str(each[name]) for name in ("hits", "misses", "evicted"))
    return each["kind"], str(each["pages"]), size, limit, *counts
