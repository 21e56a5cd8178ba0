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
        help="Scraper: site/task or site/task@version. Default: that of the server, builtin/page.",
        autocompletion=complete_scrapers,
    ),
]
Exports = Annotated[
    list[str] | None,
    typer.Option(
        "--export", metavar="TYPE:FORMAT", help="Make this export when the job ends, e.g. full:csv; may be repeated."
    ),
]
Sinks = Annotated[
    list[str] | None,
    typer.Option(
        "--sink",
        metavar="NAME",
        help="Deliver results to this sink while the job runs; may be repeated. '': to none. Default: the server's.",
    ),
]


def add_to(group: typer.Typer) -> None:
    """Add the commands."""
    group.command()(create)
    group.command()(append)


def create(
    source: ListWords = None,
    *,
    urls: AreUrls = False,
    items_url: Annotated[str | None, typer.Option(help="Read the items from a list at this URL.")] = None,
    sitemap: Annotated[str | None, typer.Option(help="Read URLs from this sitemap, sitemap index, or site.")] = None,
    kafka_topic: Annotated[str | None, typer.Option(help="Read the items from this Kafka topic.")] = None,
    kafka_group: Annotated[
        str | None, typer.Option(help="Begin where this consumer group stands, and move it on.")
    ] = None,
    idle_seconds: Annotated[
        float | None, typer.Option(help="Read the topic until no record came for this long; needs --limit.")
    ] = None,
    start_url: Annotated[list[str] | None, typer.Option(help="Follow links from this URL; may be repeated.")] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="Take only URLs that match, e.g. /p/**; may be repeated.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Leave out URLs that match; may be repeated.")] = None,
    modified_since: Annotated[
        str | None, typer.Option(help="Take only sitemap entries modified since then (ISO 8601).")
    ] = None,
    depth: Annotated[
        int | None, typer.Option(help="Maximum number of links between a start URL and a page. Default: 1.")
    ] = None,
    any_site: Annotated[bool, typer.Option("--any-site", help="Also follow links to other sites.")] = False,
    links: Annotated[str | None, typer.Option(help="Name of the result field that holds the links.")] = None,
    limit: Annotated[int | None, typer.Option(help="Maximum number of URLs.", min=1)] = None,
    scraper: Scraper = None,
    profile: Annotated[
        Literal["site"] | None, typer.Option(help="Use the defaults for crawls of a whole site.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name to show in lists.")] = "",
    owner: Annotated[str, typer.Option(help="Owner of the job. Owners share the workers fairly.")] = "",
    priority: Annotated[Literal["high", "normal", "low"] | None, typer.Option(help="Priority among jobs.")] = None,
    lane: Annotated[str | None, typer.Option(help="Lane: only workers of this lane run it.")] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Create it paused. `jobs resume` starts it.")] = False,
    policy: Policy = None,
    rate: Rate = None,
    export: Exports = None,
    sink: Sinks = None,
    webhook: Annotated[str | None, typer.Option(help="Webhook to notify: a URL, a JSON object or @file.")] = None,
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
        str | None,
        typer.Option(
            "--idempotency-key", help="Repeating a call with the same key creates no second job.", show_default=False
        ),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show progress until the job ends.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Wait for the job to end, then write the results to this file (.csv, .xlsx, .json, …).",
        ),
    ] = None,
    kind: ExportType = None,
    strict: Strict = False,
    show: Annotated[bool, typer.Option("--print", help="Print the request as JSON instead of sending it.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Create a job and print its id. Its items come from FILE, - (stdin), --urls, --items-url, --sitemap,
    --kafka-topic or --start-url."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.jobs.calls import JobTerms, Origin

    origin = Origin(
        words=source or (),
        urls=urls,
        items_url=items_url,
        sitemap=sitemap,
        kafka={"topic": kafka_topic, "group": kafka_group, "idle_seconds": idle_seconds},
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
        sinks=sink,
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
    job = _created(server := Server(url), origin, terms, key)
    if watch or output:
        _await_end(server, job, output, kind, strict=strict, as_json=as_json)
    else:
        _show(job, as_json)


def _check_end(output: Path | None, kind: str | None, *, is_awaited: bool, strict: bool) -> None:
    from scrapeyard.cli.jobs.results import chosen_format
    from scrapeyard.errors import BadRequest

    chosen_format(output, None)  # refuses a name that tells no format
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
    server: "Server", job: dict[str, Any], output: Path | None, kind: str | None, *, strict: bool, as_json: bool
) -> None:
    """Watch the job to its end; then write its results where that was asked for, also those of a job that failed."""
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.jobs.documents import end
    from scrapeyard.cli.jobs.results import chosen_format, write_file
    from scrapeyard.cli.jobs.watch import watched

    if not as_json:
        typer.echo(job["id"])
        sys.stdout.flush()
    ended = watched(server, job["id"])
    if output is not None and ended["counts"]["total"]:
        write_file(server, ended, output, {"type": kind, "format": chosen_format(output, None)})
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
        str | None,
        typer.Option("--idempotency-key", help="Repeating a call with the same key adds nothing.", show_default=False),
    ] = None,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Add items from FILE, - (stdin) or --urls to a job that has not ended. Items that it has already are skipped."""
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
