"""`jobs append`: more items for a job that has not ended."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from scrapeyard.cli.job_options import AreUrls, BadRows, Columns, Delimiter, Given, ListFormat, ListWords, Names
from scrapeyard.cli.jobs.create import tell_rows
from scrapeyard.cli.options import DEFAULT_URL, AsJson, JobId, ServerUrl

if TYPE_CHECKING:
    from scrapeyard.cli.jobs.calls import Origin


def add_to(group: typer.Typer) -> None:
    """Add the command."""
    group.command()(append)


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
    from scrapeyard.cli.jobs.calls import Origin, Terms
    from scrapeyard.cli.output import show_json

    origin = Origin(words=source or (), urls=urls)
    origin.check_appended()
    terms = Terms(
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
    from scrapeyard.cli.client import Server
    from scrapeyard.cli.jobs.documents import path_of
    from scrapeyard.cli.jobs.transfers import send_list

    server, path = Server(url), f"{path_of(job_id)}/items"
    if origin.file is not None:
        doubt = "send it again: items that the job has already are left out"
        return send_list(server, path, origin.file, table, headers, doubt=doubt)
    return dict(server.call("POST", path, body={**table, **origin.table()}, headers=headers)[1])


def _words(added: int, twice: int) -> str:
    told = f"{added:,} {'item' if added == 1 else 'items'} added"
    return f"{told}, {twice:,} {'was' if twice == 1 else 'were'} there already" if twice else told
