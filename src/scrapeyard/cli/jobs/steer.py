"""`jobs pause | resume | cancel | redrive | archive | restore | delete`: commands that change an existing job."""

from typing import Annotated, Any

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, JobId, ServerUrl


def add_to(group: typer.Typer) -> None:
    """Add the commands."""
    for command in (pause, resume, cancel, redrive, archive, restore, delete):
        group.command()(command)


def pause(job_id: JobId, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Hand nothing more out; items that run end by themselves."""
    _show(_asked(url, job_id, "pause"), as_json)


def resume(job_id: JobId, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Resume a job that was paused by hand, by its breaker or by its budget."""
    _show(_asked(url, job_id, "resume"), as_json)


def cancel(
    job_id: JobId,
    kill: Annotated[bool, typer.Option("--kill", help="Kill the items that are running.")] = False,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Cancel a job. Items that run may finish, unless --kill is given; all others are cancelled."""
    _show(_asked(url, job_id, "cancel", mode="kill" if kill else "drain"), as_json)


def redrive(
    job_id: JobId,
    *,
    status: Annotated[
        list[str] | None,
        typer.Option(
            help="Items with this status: success, error or cancelled; may be repeated. Default: error and cancelled."
        ),
    ] = None,
    exit_reason: Annotated[
        list[str] | None, typer.Option(help="Items that ended for this reason, e.g. fetch_timeout; may be repeated.")
    ] = None,
    site: Annotated[
        list[str] | None, typer.Option(help="Items of this site, e.g. shop.example; may be repeated.")
    ] = None,
    item: Annotated[list[str] | None, typer.Option(help="The item with this id; may be repeated.")] = None,
    scraper: Annotated[
        str | None, typer.Option(help="Run the job with this version of the scraper from now on.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Changes to the policy, as a JSON object or @file.")] = None,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Run items again that have ended. An item must match every filter."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.inputs import read_object
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.jobs.documents import path_of

    asked = {"statuses": status, "exit_reasons": exit_reason, "sites": site, "keys": item, "scraper": scraper}
    body: dict[str, Any] = {name: value for name, value in asked.items() if value}
    if policy is not None:
        body["policy"] = read_object(policy, "--policy")
    server = Server(url)
    _, answer = server.call("POST", f"{path_of(server, job_id)}/redrive", body=body)
    if as_json:
        show_json(answer)
    else:
        typer.echo(f"{answer['job']['id']}: {answer['items']:,} items run again; the job is {answer['job']['status']}")


def archive(job_id: JobId, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Move the items of a job that has ended from the database to the blob store."""
    _show_archive(_asked(url, job_id, "archive"), as_json)


def restore(job_id: JobId, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Move the items of an archived job back."""
    _show_archive(_asked(url, job_id, "restore"), as_json)


def delete(job_id: JobId, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Remove a job that has ended, with its items, results and exports."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.listing import whole_id
    from scrapeyard.cli.common.output import show_json

    server = Server(url)
    whole = whole_id(server, "job", job_id)
    server.call("DELETE", f"/api/jobs/{whole}")
    if as_json:
        show_json({"id": whole, "deleted": True})
    else:
        typer.echo(f"{whole}: deleted")


def _asked(url: str, job_id: str, what: str, **query: Any) -> dict[str, Any]:
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.jobs.documents import path_of

    server = Server(url)
    _, job = server.call("POST", f"{path_of(server, job_id)}/{what}", **query)
    return dict(job)


def _show_archive(job: dict[str, Any], as_json: bool) -> None:
    from scrapeyard.cli.common.output import show_json

    if as_json:
        show_json(job)
    else:
        typer.echo(f"{job['id']}: {job['archive'] or 'not archived'}; `scrapeyard jobs status` tells when it is done")


def _show(job: dict[str, Any], as_json: bool) -> None:
    from scrapeyard.cli.common.output import show_json
    from scrapeyard.cli.jobs.documents import summary

    if as_json:
        show_json(job)
    else:
        typer.echo(f"{job['id']}: {summary(job)}")
