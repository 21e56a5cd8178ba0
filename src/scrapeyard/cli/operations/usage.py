"""`usage`: what clients, scrapers and sites used."""

from typing import Annotated, Any

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, ServerUrl

_GROUPS = ("day", "client", "scraper", "site")
_COLUMNS = (
    "runs",
    "fetches",
    "failures",
    "megabytes",
    "residential_megabytes",
    "browser_seconds",
    "ai_tokens",
    "ai_cost",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(usage)


def usage(
    by: Annotated[
        list[str] | None, typer.Option(help="Group by day, client, scraper or site; may be repeated.", metavar="WHAT")
    ] = None,
    *,
    since: Annotated[str | None, typer.Option(help="First day, e.g. 2026-01-31. Default: 30 days ago.")] = None,
    until: Annotated[str | None, typer.Option(help="Last day. Default: today.")] = None,
    client: Annotated[str | None, typer.Option(help="Only this client.")] = None,
    scraper: Annotated[str | None, typer.Option(help="Only this scraper.")] = None,
    site: Annotated[str | None, typer.Option(help="Only this site.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with all columns.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show usage: runs, fetches, megabytes and browser seconds. Default grouping: day and client."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list

    where: dict[str, Any] = {
        "by": by,
        "since": since,
        "until": until,
        "client": client,
        "scraper": scraper,
        "site": site,
    }
    report = Server(url).get("/api/usage", **where)
    if as_csv:
        typer.echo(_csv(report), nl=False)
        return
    names = [*report["by"], *_COLUMNS]
    headers = tuple(name.upper().replace("_", " ") for name in names)
    show_list(report["rows"], as_json, headers, lambda row: tuple(_word(row[name]) for name in names), empty="no usage")
    if report["truncated"]:
        typer.echo("there are more rows; group by less, or name a client, scraper or site", err=True)


def _word(value: Any) -> str:
    return "-" if value == "" else str(value)


def _csv(report: dict[str, Any]) -> str:
    import csv
    import io

    names = [name for name in (report["rows"] or [{}])[0] if name not in _GROUPS or name in report["by"]]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(report["rows"])
    return text.getvalue()
