"""`jobs results | export | exports`: files made of a job."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, ExportType, JobId, ServerUrl

if TYPE_CHECKING:
    from scrapeyard.cli.common.client import Server

_LOOK_SECONDS = 0.3
_BINARY = ("xlsx", "parquet")
ExportFormat = Annotated[
    Literal["csv", "xlsx", "json", "jsonl", "parquet"] | None,
    typer.Option("--format", help="File format. Default: the one that -o names, otherwise jsonl."),
]
NoBom = Annotated[
    bool, typer.Option("--no-bom", help="Write CSV without a byte order mark. Excel needs the mark to read UTF-8.")
]
Against = Annotated[
    str | None,
    typer.Option(metavar="JOB_ID", help="With --type diff: compare with this job instead of the previous crawl."),
]
ExportFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to this file (.csv, .xlsx, .json, .jsonl or .parquet)."),
]


def add_to(group: typer.Typer) -> None:
    """Add the commands."""
    for command in (results, export, exports):
        group.command()(command)


def results(
    job_id: JobId,
    *,
    output: ExportFile = None,
    kind: ExportType = None,
    form: ExportFormat = None,
    no_bom: NoBom = False,
    against: Against = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the job to end, and show its progress.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Write the results of a job to a file or to stdout. A job that still runs gives what has ended so far. With --json
    and -o, the description of the file goes to stdout."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.listing import whole_id
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.jobs.documents import FINAL, path_of
    from scrapeyard.cli.jobs.watch import watched

    form = chosen_format(output, form)
    check_stdout(output, form, as_json)
    server = Server(url)
    job = watched(server, job_id) if wait else server.get(path_of(server, job_id))
    against = whole_id(server, "job", against) if against else None
    if job["status"] not in FINAL:
        typer.echo(f"scrapeyard: the job is {job['status']}: these are the items that have ended so far", err=True)
    made = write_file(server, job, output, {"type": kind, "format": form, "bom": not no_bom, "against": against})
    if as_json:
        show_json(made)


def write_file(server: "Server", job: dict[str, Any], output: Path | None, wish: dict[str, Any]) -> dict[str, Any]:
    """Have a file made of a job, write it to `output` or stdout and return the export. A type of None is the job's."""
    wish = {"bom": True, "against": None, **wish, "type": wish["type"] or default_type(job["scraper"])}
    made = _awaited(server, _existing(server, job, wish) or _wished(server, f"/api/jobs/{job['id']}", wish))
    fetch_export(server, made, output)
    tell_notes(made["notes"])
    return made


def export(
    job_id: JobId,
    *,
    kind: ExportType = None,
    form: Annotated[
        Literal["csv", "xlsx", "json", "jsonl", "parquet"], typer.Option("--format", help="File format.")
    ] = "csv",
    no_bom: NoBom = False,
    against: Against = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the file is ready.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make an export of a job and keep it on the server. Prints the id of the export."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.listing import whole_id
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.jobs.documents import path_of

    server = Server(url)
    path = path_of(server, job_id)
    against = whole_id(server, "job", against) if against else None
    columns = kind or default_type(server.get(path)["scraper"])
    made = _wished(server, path, {"type": columns, "format": form, "bom": not no_bom, "against": against})
    made = _awaited(server, made) if wait else made
    if as_json:
        show_json(made)
    else:
        typer.echo(made["id"])


def exports(job_id: JobId, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Files that were made of a job, the oldest first."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import show_list
    from scrapeyard.cli.jobs.documents import path_of

    server = Server(url)
    found = server.get(f"{path_of(server, job_id)}/exports")["exports"]
    show_list(found, as_json, ("ID", "STATE", "TYPE", "FORMAT", "ROWS", "SIZE", "SHA256"), _row, empty="no exports")


def chosen_format(output: Path | None, form: str | None) -> Any:
    """The output format; from the file's name unless `form` is given. Raises BadRequest."""
    from scrapeyard.cli.jobs.calls import EXPORT_FORMATS
    from scrapeyard.errors import BadRequest

    if output is None:
        return form or "jsonl"
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise BadRequest(f"{output}: {'this is a folder' if output.is_dir() else 'there is no such folder'}")
    named = output.suffix.lower().removeprefix(".")
    if form is None and named not in EXPORT_FORMATS:
        raise BadRequest(f"{output}: results can be written as .{', .'.join(EXPORT_FORMATS)}; or give --format")
    return form or named


def default_type(scraper: str) -> str:
    """The default export type: pages have fixed columns; records of any other scraper have their own."""
    return "full" if scraper.partition("@")[0] in ("builtin/page", "builtin/product") else "records"


def check_stdout(output: Path | None, form: str, as_json: bool) -> None:
    """Check before any work. Raises BadRequest if there is no output file and the results cannot go to stdout."""
    from scrapeyard.errors import BadRequest

    if output is not None:
        return
    if as_json:
        raise BadRequest("--json needs -o FILE: results and document cannot both go to stdout")
    if form in _BINARY and sys.stdout.isatty():
        raise BadRequest(f"{form} is not for a terminal; give -o FILE, or send it into a pipe")


def _existing(server: "Server", job: dict[str, Any], wish: dict[str, Any]) -> dict[str, Any] | None:
    """An existing export of the job's current state: one it was created with, or one made since it ended."""
    from scrapeyard.cli.jobs.documents import FINAL

    if job["status"] not in FINAL:
        return None
    for made in reversed(server.get(f"/api/jobs/{job['id']}/exports")["exports"]):
        is_same = all(made[name] == wish[name] for name in wish)
        is_whole = made["id"].endswith(f"-{wish['type']}-{wish['format']}") or made["created_at"] > job["finished_at"]
        if is_same and is_whole and made["state"] != "failed":
            return dict(made)
    return None


def make_export(server: "Server", path: str, wish: dict[str, Any]) -> dict[str, Any]:
    """Have an export made of the job at this path, and return it when it is done. Raises DownloadFailed."""
    return _awaited(server, _wished(server, path, wish))


def _wished(server: "Server", path: str, wish: dict[str, Any]) -> dict[str, Any]:
    return dict(server.call("POST", f"{path}/exports", body=wish)[1])


def _awaited(server: "Server", made: dict[str, Any]) -> dict[str, Any]:
    """The export when it is done. Raises DownloadFailed."""
    from scrapeyard.cli.common.progress import share_bar
    from scrapeyard.cli.jobs.transfers import DownloadFailed

    with share_bar(f"making {made['type']} {made['format']}") as show:
        while made["state"] not in ("done", "failed"):
            show(made["progress"])
            time.sleep(_LOOK_SECONDS)
            made = server.get(f"/api/exports/{made['id']}")
    if made["state"] == "failed":
        raise DownloadFailed(f"the export failed: {made['error']}")
    return made


def fetch_export(server: "Server", made: dict[str, Any], output: Path | None) -> None:
    """Download a finished export into a file, or to stdout."""
    from scrapeyard.cli.common.inputs import whole_file
    from scrapeyard.cli.common.output import size
    from scrapeyard.cli.jobs.transfers import fetch_into, fetch_to_stdout

    if output is None:
        fetch_to_stdout(server, made)
        return
    with whole_file(output) as stream:
        fetch_into(server, made, stream)
    typer.echo(f"wrote {output}: {made['rows']:,} rows, {size(made['bytes'])}", err=True)


def tell_notes(notes: Sequence[str]) -> None:
    """Print on stderr what readers of a file must know."""
    from scrapeyard.cli.common.output import plain

    for note in notes:
        typer.echo(f"scrapeyard: note: {plain(note)}", err=True)


def _row(made: dict[str, Any]) -> tuple[str, ...]:
    from scrapeyard.cli.common.output import size

    state = f"{made['state']}: {made['error']}" if made["error"] else made["state"]
    sha = (made["sha256"] or "")[:16]
    return made["id"], state, made["type"], made["format"], str(made["rows"]), size(made["bytes"]), sha
