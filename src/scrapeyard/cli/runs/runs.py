"""`runs`: what ran on a server, how it went and what it left."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, Commands, OfScraper, Output, RunId, ServerUrl, add_group

if TYPE_CHECKING:
    from scrapeyard.cli.common.client import Server

_INPUT_SHOWN = 80
_PAUSE_SECONDS = 0.5
group = Commands(help="Runs on a server: list, show, logs, cancel, explain, artifacts.")


def register(app: typer.Typer) -> None:
    """Add the group."""
    add_group(app, "runs", group, lambda url: list_runs(url=url))


@group.command("list")
def list_runs(
    status: Annotated[
        list[str] | None,
        typer.Option(help="Runs with this status: queued, running, succeeded, failed or cancelled; may be repeated."),
    ] = None,
    scraper: OfScraper = None,
    limit: Annotated[int, typer.Option(help="Maximum number to list.", min=1, max=100_000)] = 20,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.listing import pages
    from scrapeyard.cli.common.output import show_list

    found = list(pages(Server(url), "/api/scrape", "runs", limit, status=status or None, scraper=scraper))
    show_list(found, as_json, ("ID", "STATUS", "SCRAPER", "AGE", "TOOK", "INPUT"), _row, empty="no runs")


@group.command()
def show(
    run_id: RunId,
    result: Annotated[bool, typer.Option("--result", help="Print only the result.")] = False,
    url: ServerUrl = DEFAULT_URL,
    output: Output = None,
) -> None:
    """Show a run, or only its result, as JSON. -o writes the result to a file."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.inputs import check_output, write_result
    from scrapeyard.cli.common.output import show_json

    check_output(output)
    server = Server(url)
    run = server.get(_path(server, run_id))
    if output is not None:
        write_result(output, run["result"])
    else:
        show_json(run["result"] if result else run)


@group.command()
def logs(
    run_id: RunId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines until the run ends.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show the log of a run. --follow also works while it runs: first the lines so far, then each new line."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json

    server = Server(url)
    if follow:
        _follow(server, run_id, as_json)
        return
    document = server.get(f"{_path(server, run_id)}/logs")
    if as_json:
        show_json(document)
        return
    for line in document["lines"]:
        _print(line)
    if document["cut"]:
        typer.echo("scrapeyard: the script wrote more than its log limit; the rest was cut", err=True)


@group.command()
def cancel(run_id: RunId, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Stop a run. One that has ended stays as it is."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json

    server = Server(url)
    _, run = server.call("DELETE", _path(server, run_id))
    if as_json:
        show_json(run)
        return
    told = {"running": "told to stop", "cancelled": "cancelled"}
    typer.echo(f"{run['id']}: {told.get(run['status'], 'had ended already: ' + run['status'])}")


@group.command()
def explain(run_id: RunId, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Where the time went, each fetch, limits used against limits allowed, and what to do."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.runs.summary import explanation

    server = Server(url)
    document = server.get(f"{_path(server, run_id)}/explain")
    if as_json:
        show_json(document)
    else:
        typer.echo(explanation(document))


@group.command()
def artifacts(
    run_id: RunId,
    name: Annotated[str | None, typer.Argument(help="Artifact to download.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """What a run kept: a list, or the bytes of one to stdout or a file."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list
    from scrapeyard.errors import BadRequest

    server = Server(url)
    if name is not None:
        _download(server, run_id, name, output)
        return
    if output is not None:
        raise BadRequest("-o needs the name of an artifact; leave it out to list them")
    kept = server.get(f"{_path(server, run_id)}/artifacts")["artifacts"]
    show_list(kept, as_json, ("NAME", "TYPE", "SIZE"), _artifact_row, empty="this run kept nothing")


def _path(server: "Server", run_id: str) -> str:
    from scrapeyard.cli.common.listing import whole_id

    return f"/api/scrape/{whole_id(server, 'run', run_id)}"


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    from scrapeyard.cli.common.listing import input_words
    from scrapeyard.cli.common.output import age, took

    version = f"@{run['version']}" if run["version"] else ""
    given = input_words(run["input"] or {}, _INPUT_SHOWN)
    return run["id"], _ending(run), run["scraper"] + version, age(run["created_at"]), took(run), given


def _artifact_row(kept: dict[str, Any]) -> tuple[str, ...]:
    from scrapeyard.cli.common.output import size

    return kept["name"], kept["content_type"], size(kept["size"])


def _ending(run: dict[str, Any]) -> str:
    """The status, and what it waits for, or the exit reason if that says more."""
    from scrapeyard.cli.common.progress import clock_time

    status, reason = str(run["status"]), run["exit_reason"]
    if wait := run.get("waiting"):
        return f"{status}: {wait['reason']} until {clock_time(wait['until'])}"
    return status if reason in (None, status) else f"{status}: {reason}"


def _follow(server: "Server", run_id: str, as_json: bool) -> None:
    """Follow the log. If a stopping gateway ends the stream early, goes on after the last line that was shown."""
    last = 0
    path = _path(server, run_id)
    while True:
        with server.events(f"{path}/events", last) as events:
            for name, event, number in events:
                if name == "log" and (number is None or number > last):
                    last = number or last
                    _print(event, as_json)
                elif name == "progress":
                    _tell_progress(event, as_json)
                elif name == "end":
                    _tell_end(event)
                    return
        time.sleep(_PAUSE_SECONDS)


def _tell_progress(event: dict[str, Any], as_json: bool) -> None:
    from scrapeyard.cli.common.output import plain

    if as_json:
        _print(event, as_json)
        return
    of = "" if event["total"] is None else f" of {event['total']:g}"
    words = f"{event['done']:g}{of} {event['message']}".strip()
    typer.echo(f"scrapeyard: {plain(words)}", err=True)


def _tell_end(event: dict[str, Any]) -> None:
    from scrapeyard.cli.common.output import plain

    error = f": {event['error']['message']}" if event.get("error") else ""
    typer.echo(f"scrapeyard: {plain(_ending(event) + error)}", err=True)


def _print(line: dict[str, Any], as_json: bool = False) -> None:
    from scrapeyard.cli.common.output import encode, log_line

    typer.echo(encode(line, pretty=False) if as_json else log_line(line))


def _download(server: "Server", run_id: str, name: str, output: Path | None) -> None:
    from urllib.parse import quote

    from scrapeyard.cli.common.inputs import whole_file
    from scrapeyard.cli.common.output import write
    from scrapeyard.errors import BadRequest

    if output is None and sys.stdout.isatty():
        raise BadRequest("an artifact may hold anything; give -o FILE, or send it into a pipe")
    with server.download(f"{_path(server, run_id)}/artifacts/{quote(name, safe='')}") as pieces:
        if output is None:
            for piece in pieces:
                write(piece)
            return
        with whole_file(output) as stream:
            for piece in pieces:
                stream.write(piece)
    typer.echo(f"wrote {output}", err=True)
