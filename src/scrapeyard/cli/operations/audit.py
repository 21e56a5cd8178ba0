"""`audit`: who changed what on a server, and whether the record of it is whole."""

from typing import Annotated, Any

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, Commands, ServerUrl, add_group

_HEADERS = ("NUMBER", "AT", "CLIENT", "ADDRESS", "ACTION", "RESOURCE", "RESULT")
group = Commands(help="The audit: list, verify.")


def register(app: typer.Typer) -> None:
    """Add the group."""
    add_group(app, "audit", group, lambda url: list_audit(url=url))


@group.command("list")
def list_audit(
    *,
    client: Annotated[str | None, typer.Option(help="Only calls of this client.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this operation, e.g. put_site.")] = None,
    resource: Annotated[str | None, typer.Option(help="Only paths that begin with this.")] = None,
    refused: Annotated[
        bool | None, typer.Option("--refused/--done", help="Only refused calls, or only changes that were made.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="From this time on, in ISO 8601.")] = None,
    until: Annotated[str | None, typer.Option(help="Before this time, in ISO 8601.")] = None,
    most: Annotated[int, typer.Option("--limit", min=1, help="Maximum number to list.")] = 50,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List changes and refused calls, newest first."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.listing import pages
    from scrapeyard.cli.common.output import show_list

    where = {
        "client": client,
        "action": action,
        "resource": resource,
        "refused": None if refused is None else str(refused).lower(),
        "since": since,
        "until": until,
    }
    rows = list(pages(Server(url), "/api/audit", "rows", most, **where))
    show_list(rows, as_json, _HEADERS, _row, empty="nothing was changed or refused")


@group.command()
def verify(
    expect: Annotated[
        str | None,
        typer.Option(metavar="NUMBER:HASH", help="A row that must exist, as an earlier `verify` printed it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check in the database itself that no row was changed, added or removed. Exits with 1 if one was."""
    import asyncio

    from msgspec import to_builtins

    from scrapeyard.cli.common.output import show_json
    from scrapeyard.wiring.local_commands import check_audit

    check = asyncio.run(check_audit(_expected(expect)))
    if as_json:
        show_json(to_builtins(check))
    elif check.fault is not None:
        typer.echo(f"row {check.fault.number}: {check.fault.reason}", err=True)
    else:
        typer.echo(f"{check.rows} rows are whole; the last is {check.last}:{check.hash}")
    if check.fault is not None:
        raise typer.Exit(1)


def _expected(given: str | None) -> tuple[int, str] | None:
    from scrapeyard.errors import BadRequest

    if given is None:
        return None
    number, _, known = given.partition(":")
    if not number.isdecimal() or len(number) > 15 or not known:
        raise BadRequest("--expect: write NUMBER:HASH, as an earlier verify printed it")
    return int(number), known


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    result = str(row["status"] or "done") + (f" {row['code']}" if row["code"] else "")
    times = f" x{row['count']}" if row["count"] > 1 else ""
    return str(row["number"]), row["at"], row["client"], row["address"], row["action"], row["resource"], result + times
