"""`jobs create` and `jobs append`: a list, addresses, a sitemap or links become items of a job."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from scrapeyard.cli.common.listing import complete_scrapers
from scrapeyard.cli.common.options import (
    DEFAULT_URL,
    AreUrls,
    AsJson,
    BadRows,
    Columns,
    Delimiter,
    ExportType,
    Given,
    JobId,
    ListFormat,
    ListWords,
    Names,
    Policy,
    Rate,
    ServerUrl,
    Strict,
)
from scrapeyard.cli.common.page_options import FieldPairs, Fields, Formats, PageOptions

if TYPE_CHECKING:
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.jobs.calls import JobTerms, Origin

MANNERS = "--rate and --policy change that"
_ROWS_SHOWN = 10
Scraper = Annotated[
    str | None,
    typer.Option(
        help="site/task or site/task@version; default: the server's, builtin/page.", autocompletion=complete_scrapers
    ),
]
Exports = Annotated[
    list[str] | None,
    typer.Option("--export", metavar="TYPE:FORMAT", help="A file to be made at the end, as full:csv; may be repeated."),
]


def add_to(group: typer.Typer) -> None:
    """Add the commands."""
    group.command()(create)
    group.command()(append)


def create(
    source: ListWords = None,
    *,
    urls: AreUrls = False,
    items_url: Annotated[str | None, typer.Option(help="A list at an address.")] = None,
    sitemap: Annotated[str | None, typer.Option(help="A sitemap, an index of them, or a site that has one.")] = None,
    start_url: Annotated[list[str] | None, typer.Option(help="Follow links from here; may be repeated.")] = None,
    include: Annotated[list[str] | None, typer.Option(help="Addresses like /p/**; may be repeated.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="None of these; may be repeated.")] = None,
    modified_since: Annotated[str | None, typer.Option(help="Pages of the sitemap not older, ISO 8601.")] = None,
    depth: Annotated[int | None, typer.Option(help="Links from a start to the farthest page; default 1.")] = None,
    any_site: Annotated[bool, typer.Option("--any-site", help="Follow links to other sites, too.")] = False,
    links: Annotated[str | None, typer.Option(help="Field of the results that has the links.")] = None,
    limit: Annotated[int | None, typer.Option(help="Addresses taken at most.", min=1)] = None,
    scraper: Scraper = None,
    profile: Annotated[Literal["site"] | None, typer.Option(help="Defaults for what is not given.")] = None,
    name: Annotated[str, typer.Option(help="For people.")] = "",
    owner: Annotated[str, typer.Option(help="Whose share of the workers it uses.")] = "",
    priority: Annotated[Literal["high", "normal", "low"] | None, typer.Option(help="Against other jobs.")] = None,
    lane: Annotated[str | None, typer.Option(help="Which workers take it.")] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Begin only with `jobs resume`.")] = False,
    policy: Policy = None,
    rate: Rate = None,
    export: Exports = None,
    webhook: Annotated[str | None, typer.Option(help="Who is told: an address, a JSON object or @file.")] = None,
    list_format: ListFormat = None,
    delimiter: Delimiter = None,
    names: Names = None,
    column: Columns = None,
    given: Given = None,
    formats: Formats = None,
    field: FieldPairs = None,
    fields: Fields = None,
    bad_rows: BadRows = None,
    key: Annotated[
        str | None, typer.Option("--idempotency-key", help="The same key and call make one job.", show_default=False)
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show its progress until it ends.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Wait for the end and write the results to this file (.csv, .xlsx, .json, …)."
        ),
    ] = None,
    kind: ExportType = None,
    strict: Strict = False,
    show: Annotated[bool, typer.Option("--print", help="Print the call as JSON instead of making it.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make a job and print its id: FILE.csv, FILE.jsonl, - (stdin), --urls, --items-url, --sitemap or --start-url."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.jobs.calls import JobTerms, Origin
    from scrapeyard.cli.jobs.results import chosen_format

    origin = Origin(
        words=source or (),
        urls=urls,
        items_url=items_url,
        sitemap=sitemap,
        start_urls=start_url or (),
        include=include or (),
        exclude=exclude or (),
        modified_since=modified_since,
        depth=depth,
        any_site=any_site,
        links=links,
        limit=limit,
    )
    terms = JobTerms(
        scraper=scraper,
        profile=profile,
        name=name,
        owner=owner,
        priority=priority,
        lane=lane,
        paused=paused,
        policy=policy,
        rate=rate,
        exports=export or (),
        webhook=webhook,
        format=list_format,
        delimiter=delimiter,
        names=names,
        columns=column or (),
        given=given,
        page=PageOptions(formats=formats, field=field, fields=fields).table(),
        bad_rows=bad_rows,
    )
    origin.check()
    _check_end(output, kind, is_awaited=watch or output is not None, strict=strict)
    if show:
        _print_call(origin, terms)
        return
    wish = {"type": kind, "format": chosen_format(output, None)}
    server = Server(url)
    job = _created(server, origin, terms, key)
    if not (watch or output):
        _show(job, as_json)
        return
    _await_end(server, job, output, wish, strict=strict, as_json=as_json)


def _check_end(output: Path | None, kind: str | None, *, is_awaited: bool, strict: bool) -> None:
    from scrapeyard.errors import BadRequest

    if strict and not is_awaited:
        raise BadRequest("--strict goes with --watch or -o")
    if kind is not None and output is None:
        raise BadRequest("--type goes with -o; --export has files made on the server")


def _show(job: dict[str, Any], as_json: bool) -> None:
    from scrapeyard.cli.common.output import show_json

    if as_json:
        show_json(job)
    else:
        typer.echo(job["id"])


def _print_call(origin: "Origin", terms: "JobTerms") -> None:
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.errors import BadRequest

    if origin.file is not None:
        raise BadRequest("--print shows calls that are all JSON; a list is sent as it is")
    show_json({**terms.table(), **origin.table()})


def _created(server: "Server", origin: "Origin", terms: "JobTerms", key: str | None) -> dict[str, Any]:
    from scrapeyard.cli.common.manners import tell_manners
    from scrapeyard.cli.jobs.transfers import send_list

    headers = {"Idempotency-Key": key} if key is not None else {}
    job: dict[str, Any]
    if origin.file is not None:
        doubt = "`scrapeyard jobs` tells whether the job was made"
        job = send_list(server, "/api/jobs", origin.file, terms.table(), headers, doubt=doubt)
    else:
        _, job = server.call("POST", "/api/jobs", body={**terms.table(), **origin.table()}, headers=headers)
    tell_manners(job, MANNERS)
    if rows := job.get("rows"):
        tell_rows(rows["bad"], [(row["line"], row["reason"]) for row in rows["first_bad"]])
    return job


def _await_end(
    server: "Server", job: dict[str, Any], output: Path | None, wish: dict[str, Any], *, strict: bool, as_json: bool
) -> None:
    """Watch the job to its end; then write its results where that was asked for, also those of a job that failed."""
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.jobs.documents import end
    from scrapeyard.cli.jobs.results import write_file
    from scrapeyard.cli.jobs.watch import watched

    if not as_json:
        typer.echo(job["id"])
        sys.stdout.flush()
    ended = watched(server, job["id"])
    if output is not None and ended["counts"]["total"]:
        write_file(server, ended, output, wish)
    if as_json:
        show_json(ended)
    end(ended, strict=strict)


def tell_rows(bad: int, first: Sequence[tuple[int, str]]) -> None:
    """Print on stderr how many rows of a list were skipped, with line and reason of the first."""
    from scrapeyard.cli.common.output import plain

    if not bad:
        return
    typer.echo(f"scrapeyard: {bad:,} rows cannot be used and were left out:", err=True)
    for line, reason in first[:_ROWS_SHOWN]:
        typer.echo(f"  line {line}: {plain(reason)}", err=True)
    if bad > _ROWS_SHOWN:
        typer.echo("  …", err=True)


def append(
    job_id: JobId,
    source: ListWords = None,
    *,
    urls: AreUrls = False,
    list_format: ListFormat = None,
    delimiter: Delimiter = None,
    names: Names = None,
    column: Columns = None,
    given: Given = None,
    bad_rows: BadRows = None,
    key: Annotated[
        str | None, typer.Option("--idempotency-key", help="The same key and list add once.", show_default=False)
    ] = None,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Add items to a job that has not ended: FILE.csv, FILE.jsonl, - (stdin) or --urls. Those it has are left out."""
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.jobs.calls import JobTerms, Origin

    origin = Origin(words=source or (), urls=urls)
    origin.check_appended()
    terms = JobTerms(
        format=list_format,
        delimiter=delimiter,
        names=names,
        columns=column or (),
        given=given,
        bad_rows=bad_rows,
    )
    added = _appended(url, job_id, origin, terms.table(), {"Idempotency-Key": key} if key is not None else {})
    tell_rows(added["bad"], [(row["line"], row["reason"]) for row in added["first_bad"]])
    if as_json:
        show_json(added)
    else:
        typer.echo(f"{job_id}: {_words(added['added'], added['twice'])}")


def _appended(
    url: str, job_id: str, origin: "Origin", table: dict[str, Any], headers: dict[str, str]
) -> dict[str, Any]:
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.jobs.documents import path_of
    from scrapeyard.cli.jobs.transfers import send_list

    server = Server(url)
    path = f"{path_of(server, job_id)}/items"
    if origin.file is not None:
        doubt = "send it again: items that the job has already are left out"
        return send_list(server, path, origin.file, table, headers, doubt=doubt)
    return dict(server.call("POST", path, body={**table, **origin.table()}, headers=headers)[1])


def _words(added: int, twice: int) -> str:
    told = f"{added:,} {'item' if added == 1 else 'items'} added"
    return f"{told}, {twice:,} {'was' if twice == 1 else 'were'} there already" if twice else told
